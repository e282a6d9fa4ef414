"""Some attackers lie far away, so that the others look like everybody else."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.security.synthetic import KINDS_OF_QUANTITIES, Decoys, default, honest_clients, judged
from tests.strategies import SEEDS

import fedra

FAR = {
    "none": (),
    "one": (1e9,),
    "two": (1e9, 1e9),
    "four": (1e9, 1e9, 1e9, 1e9),
    "ladder": (1e3, 1e6, 1e9, 1e12),
    "near": (30.0, 30.0),
}
ATTACKERS = {10: 2, 20: 2, 50: 5, 100: 10}


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("way", [0.05, 0.1, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("claim", [1, 100, 1e4])
def test_the_result_still_points_to_the_truth(far, way, claim):
    for jitter, clusters in product((False, True), (1, 2)):
        attack = Decoys(distances=FAR[far], way=way, claim=claim, jitter=jitter, clusters=clusters)
        cosines = []
        for clients, quantities, seed in product(ATTACKERS, KINDS_OF_QUANTITIES, range(3)):
            rng = np.random.default_rng([seed, clients])
            honest = honest_clients(rng, clients - ATTACKERS[clients], quantities)
            _, _, cosine = judged(default(), honest, *attack(rng, honest, ATTACKERS[clients]))
            cosines.append(cosine)
        assert np.mean(cosines) >= 0.4, (attack, sorted(cosines)[:5])


@pytest.mark.parametrize("far", ["one", "two", "four", "ladder"])
def test_those_who_hide_behind_decoys_get_no_weight(far):
    attack = Decoys(distances=FAR[far], way=1.0, claim=100)
    for clients, seed in product(ATTACKERS, range(10)):
        rng = np.random.default_rng([seed, clients])
        honest = honest_clients(rng, clients - ATTACKERS[clients])
        _, weight, _ = judged(default(), honest, *attack(rng, honest, ATTACKERS[clients]))
        assert weight < 0.01, (clients, seed)


def test_one_decoy_and_one_insider_of_ten():
    """A federation of 20, of which 10 are asked."""
    rule = fedra.FedRA(malicious_ratio=0.1, num_clients=20)
    attack = Decoys(distances=(1e9,), way=1.0, claim=1e3)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        honest = honest_clients(rng, 8)
        _, weight, cosine = judged(rule, honest, *attack(rng, honest, 2))
        assert weight < 0.01
        assert cosine > 0.4


@given(
    SEEDS,
    st.integers(8, 40),
    st.sampled_from(KINDS_OF_QUANTITIES),
    st.lists(st.floats(3, 100), min_size=1, max_size=4),
    st.floats(0, 12),
)
def test_how_far_away_others_lie_changes_not_a_bit(seed, clients, quantities, powers, claim):
    """Whoever is far enough to be left out may be anywhere: kept, weights, scores, reasons of all others are the same."""
    rng = np.random.default_rng(seed)
    honest = honest_clients(rng, clients, quantities, dimension=60)
    far = min(len(powers), default().most_malicious(clients))
    directions = rng.standard_normal((far, 60))
    claims = np.full(far, 10.0**claim)

    def verdict(exponents):
        rows = directions * (10.0 ** np.array(exponents[:far]))[:, np.newaxis]
        found, _, _ = judged(default(), honest, rows, claims)
        return found

    reference, moved = verdict([3.0] * far), verdict(powers)
    assert not reference.kept[clients:].any()
    assert not moved.kept[clients:].any()
    assert moved.update.tobytes() == reference.update.tobytes()
    for field in ("kept", "weights", "scores", "implied_quantities"):
        np.testing.assert_array_equal(getattr(moved, field)[:clients], getattr(reference, field)[:clients], field)
    assert moved.reasons[:clients] == reference.reasons[:clients]


@given(SEEDS, st.sampled_from(sorted(ATTACKERS)), st.sampled_from(KINDS_OF_QUANTITIES), st.data())
def test_decoys_anywhere_do_not_make_insiders_heavier(seed, clients, quantities, data):
    """What an insider weighs with decoys beside it is about what it weighs alone."""
    rng = np.random.default_rng(seed)
    attackers = ATTACKERS[clients]
    honest = honest_clients(rng, clients - attackers, quantities)
    attack = Decoys(
        distances=tuple(10.0**power for power in data.draw(st.lists(st.floats(1, 12), min_size=1, max_size=4))),
        way=data.draw(st.floats(0.3, 1)),
        claim=10.0 ** data.draw(st.floats(1, 4)),
    )
    rows, claims = attack(rng, honest, attackers)
    far = len(attack.distances[: attackers - 1])
    _, weight, _ = judged(default(), honest, rows, claims)
    _, alone, _ = judged(default(), honest, rows[far:], claims[far:])
    assert weight <= alone + 0.1
