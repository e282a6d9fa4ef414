"""Some attackers lie far away, so that the others look like everybody else."""

from itertools import product

import numpy as np
import pytest
from flwr.serverapp.strategy import FedAvg
from hypothesis import given
from hypothesis import strategies as st
from tests.flower.federation import MemoryGrid, arrays_of, model, one_round, record, reply_to
from tests.security.synthetic import KINDS_OF_QUANTITIES, Decoys, default, honest_clients, judged
from tests.strategies import SEEDS

import fedra
from fedra.flower import Guard

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


def test_the_lines_of_the_readme_hold():
    """100 nodes of which 10 collude, two of them far away; half of the nodes are asked."""
    steps = {node: np.float32(0.01) for node in range(1, 101)}
    steps |= dict.fromkeys((1, 2), np.float32(-1e7)) | dict.fromkeys(range(3, 11), np.float32(-0.1))
    rngs = {node: np.random.default_rng(node) for node in steps}

    def client(node):
        def reply(message):
            arrays = {
                name: array + steps[node] * (1 + np.float32(0.5) * rngs[node].standard_normal(array.shape, np.float32))
                for name, array in arrays_of(message.content["arrays"]).items()
            }
            return reply_to(message, arrays, {"loss": 0.5, "num-examples": 10**6 if node < 11 else 10 + node})

        return reply

    reports = []
    strategy = Guard(FedAvg(fraction_train=0.5), rule=fedra.FedRA(malicious_ratio=0.1), on_round=reports.append)
    grid = MemoryGrid({node: client(node) for node in steps})
    arrays = start = record(model(shapes={"weight": (20, 20)}))
    for number in range(1, 11):
        arrays, _ = one_round(strategy, grid, arrays, number)
    moved = arrays_of(arrays)["weight"] - arrays_of(start)["weight"]
    assert moved.mean() == pytest.approx(0.1, rel=0.1)
    asked = [client for report in reports for client in report.clients if client["client"] < 11]
    assert len(asked) > 20
    assert sum(client["weight"] for client in asked) < 0.01


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
    """Whoever is far enough to be left out may be anywhere: what is decided about all others is the same."""
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
