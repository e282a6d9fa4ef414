"""Concord: FedRA's evidence, and the step that no few clients can turn."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.reference.concord import all_means, flattened, shortest_in_hull, supported
from tests.reference.evidence import evidence, most_liars
from tests.strategies import SEEDS

import fedra
from fedra.redteam import worst_case
from fedra.rules.concord import LEAST_FORGIVING


def honest_round(seed, clients, dimension=300, signal=0.3):
    rng = np.random.default_rng(seed)
    quantities = np.maximum(1, np.floor(np.exp(rng.normal(3, 1, clients))))
    truth = signal * rng.standard_normal(dimension)
    return truth, truth + rng.standard_normal((clients, dimension)) / np.sqrt(quantities)[:, np.newaxis], quantities


def believed(updates, quantities, difference=0.3):
    """The weights by evidence of claims in full, and of flattened ones."""
    return np.array([evidence(updates, flattened(quantities, each))[2] for each in (0, difference)])


@given(SEEDS, st.integers(5, 9))
def test_it_is_the_reference(seed, clients):
    _, updates, quantities = honest_round(seed, clients, 12, 1.0)
    counted = believed(updates, quantities)
    means = list(all_means(updates, counted, most_liars(clients, "0.1")))
    expected = shortest_in_hull(means, steps=3000)
    update = fedra.Concord(least_agreement=0, least_forgiving=0, least_support=1, few_clients=0)(
        updates, quantities
    ).update
    assert update @ update <= expected @ expected * 1.03 + 1e-9
    assert min(mean @ update for mean in means) >= 0.98 * (update @ update) - 1e-9


@given(SEEDS, st.integers(5, 9), st.sampled_from([0.0, 0.15, 0.6]), st.sampled_from([0.1, 0.4, 1.0]))
def test_it_leaves_out_no_more_than_it_must(seed, clients, support, signal):
    _, updates, quantities = honest_round(seed, clients, 12, signal)
    counted = believed(updates, quantities)
    liars = most_liars(clients, "0.1")
    rule = fedra.Concord(least_agreement=0, least_forgiving=0, least_support=support, few_clients=0)
    update = rule(updates, quantities).update
    means = list(all_means(updates, counted, liars))
    assert min(mean @ update for mean in means) >= (support - 0.02) * (update @ update) - 1e-9
    expected = supported(updates, counted, liars, support, steps=3000)
    # A step that is supported by a hair in one of them may not be in the other: then it is the next of them.
    slacked = supported(updates, counted, liars, support + 0.02, steps=3000)
    scale = np.abs(expected).max()
    assert min(np.abs(update - one).max() for one in (expected, slacked)) <= 0.05 * scale + 1e-9


@given(SEEDS, st.integers(7, 9), st.integers(0, 3), st.floats(0.3, 3), st.floats(0.5, 3))
def test_what_the_second_weights_shorten_too_far_is_the_step_of_the_first(seed, clients, liars, claim, far):
    truth, updates, quantities = honest_round(seed, clients, 12, 0.3)
    updates[:liars], quantities[:liars] = -far * truth, 10**claim * np.median(quantities)
    counted = believed(updates, quantities)
    left_out = most_liars(clients, "0.1")
    one, both = (supported(updates, some, left_out, 0.15, steps=3000) for some in (counted[:1], counted))
    share = np.linalg.norm(both) / np.linalg.norm(one)
    assume(abs(share - LEAST_FORGIVING) > 0.05)
    expected, chosen = (one, counted[:1]) if share < LEAST_FORGIVING else (both, counted)
    update = fedra.Concord(least_agreement=0, few_clients=0)(updates, quantities).update
    # A step that is supported by a hair in one of them may not be in the other: then it is the next of them.
    slacked = supported(updates, chosen, left_out, 0.17, steps=3000)
    scale = np.abs(expected).max()
    assert min(np.abs(update - each).max() for each in (expected, slacked)) <= 0.05 * scale + 1e-9


@given(SEEDS, st.integers(5, 9))
def test_a_round_of_few_is_the_mean_by_evidence(seed, clients):
    _, updates, quantities = honest_round(seed, clients, 12, 1.0)
    ours, theirs = fedra.Concord()(updates, quantities), fedra.FedRA()(updates, quantities)
    np.testing.assert_array_equal(ours.kept, theirs.kept)
    np.testing.assert_allclose(ours.weights, theirs.weights, rtol=1e-12)
    np.testing.assert_allclose(ours.update, theirs.update, rtol=1e-9, atol=1e-12)


@given(SEEDS, st.integers(5, 30))
def test_difference_is_allowed_for_in_rounds_of_twice_as_many(seed, clients):
    _, updates, quantities = honest_round(seed, clients, 12, 0.1)
    verdicts = [fedra.Concord(difference=each)(updates, quantities) for each in (0, 0.3)]
    if clients < 20:
        np.testing.assert_array_equal(verdicts[0].weights, verdicts[1].weights)
    else:
        assert verdicts[1].kept.sum() >= verdicts[0].kept.sum() or verdicts[1].note


@pytest.mark.parametrize(("clients", "liars"), [(50, 15), (50, 10), (20, 4), (19, 4), (10, 3), (10, 2)])
def test_who_claims_beyond_all_bounds_is_forgiven_nothing(clients, liars):
    truth, updates, quantities = honest_round(5, clients - liars)
    everyone = np.vstack([updates, np.tile(-truth, (liars, 1))])
    verdict = fedra.Concord()(everyone, np.append(quantities, np.full(liars, 1e9)))
    assert not verdict.kept[-liars:].any()
    assert (verdict.weights[-liars:] == 0).all()
    assert truth @ verdict.update / np.linalg.norm(truth) / np.linalg.norm(verdict.update) > 0.9


@given(SEEDS, st.integers(20, 40), st.integers(1, 9), st.floats(0, 7), st.floats(-2.5, 2.5), st.floats(0, 0.6))
def test_who_is_forgiven_does_not_end_a_round_that_has_a_step_without_them(seed, clients, liars, claim, far, signal):
    truth, updates, quantities = honest_round(seed, clients - liars, 60, signal)
    direction = quantities @ updates / np.linalg.norm(quantities @ updates)
    lies = np.tile(far * np.median(np.linalg.norm(updates - truth, axis=1)) * direction, (liars, 1))
    given = np.vstack([updates, lies]), np.append(quantities, np.full(liars, 10**claim))
    alone, both = (fedra.Concord(difference=each)(*given) for each in (0, 0.3))
    assert alone.update is None or both.update is not None


@pytest.mark.parametrize("claims", [30, 100, 1000])
@pytest.mark.parametrize(("clients", "liars"), [(20, 4), (30, 6), (50, 8), (50, 10)])
def test_where_the_forgiven_part_the_weights_those_by_claims_decide(clients, liars, claims):
    """More liars than assumed, who claim many medians and pull the second weights against the first."""
    for seed in range(4):
        truth, updates, quantities = honest_round(seed, clients - liars, 100, 0.15)
        direction = -(quantities @ updates) / np.linalg.norm(quantities @ updates)
        for far in (0.5, 1, 2):
            lies = np.tile(far * np.median(np.linalg.norm(updates - truth, axis=1)) * direction, (liars, 1))
            given = np.vstack([updates, lies]), np.append(quantities, np.full(liars, claims * np.median(quantities)))
            update = fedra.Concord()(*given).update
            assert truth @ update > 0.8 * np.linalg.norm(truth) * np.linalg.norm(update)


def test_a_round_of_nothing_but_lies_is_decided():
    rng = np.random.default_rng(0)
    updates = rng.standard_normal((30, 20)) * 10.0 ** rng.integers(-3, 60, (30, 1))
    for few in (0, 10):
        assert np.isfinite(fedra.Concord(few_clients=few)(updates, np.full(30, 2.0**53)).weights).all()


@pytest.mark.parametrize("claim", [20.0, 500.0])
def test_large_clients_that_differ_are_not_silenced(claim):
    """Ten kinds of clients, and large ones of a kind each: by claims they are taken for liars."""
    rng = np.random.default_rng(0)
    kinds = 4 * rng.standard_normal((10, 300))
    quantities = np.append(np.ones(40), np.full(10, claim))
    updates = np.array([kinds[i % 10] for i in range(50)])
    updates += rng.standard_normal(updates.shape) / np.sqrt(quantities)[:, np.newaxis]
    verdict = fedra.Concord(malicious_ratio=0.05)(updates, quantities)
    assert verdict.kept.all()
    assert not verdict.warnings
    truth = kinds.mean(axis=0)
    error = np.linalg.norm(verdict.update - truth)
    assert error < np.linalg.norm(fedra.FedRA(malicious_ratio=0.05)(updates, quantities).update - truth)


@given(SEEDS)
def test_where_clients_are_alike_claims_count(seed):
    """The flattened mean has more noise, so that the shorter one is that by claims."""
    truth, updates, quantities = honest_round(seed, 50, signal=0.0)
    even, ours = updates.mean(axis=0), fedra.Concord(least_agreement=0, malicious_ratio=0)(updates, quantities)
    flat = fedra.Concord(least_agreement=0, least_support=0)(updates, quantities)
    assert np.linalg.norm(ours.update - truth) < np.linalg.norm(even - truth)
    assert np.linalg.norm(flat.update - truth) < np.linalg.norm(even - truth)


@pytest.mark.parametrize("seed", range(5))
def test_who_sees_everything_does_not_turn_it(seed):
    _, updates, quantities = honest_round(seed, 45)
    found = worst_case(fedra.Concord(), updates, quantities, 5, budget=150, seed=seed)
    assert found.cosine > -0.1


def test_where_clients_do_not_agree_the_round_has_no_update_and_says_so():
    _, updates, quantities = honest_round(0, 40, dimension=2, signal=0.0)
    verdict = fedra.Concord()(updates, quantities)
    assert verdict.update is None
    assert "do not agree" in verdict.note
    assert not verdict.kept.any()
    assert np.isfinite(verdict.scores).all()
    assert fedra.Concord(least_agreement=0)(updates, quantities).update is not None


def test_a_clear_round_loses_nobody():
    truth, updates, quantities = honest_round(2, 50, signal=1.0)
    verdict = fedra.Concord()(updates, quantities)
    assert verdict.kept.all()
    assert truth @ verdict.update / np.linalg.norm(truth) / np.linalg.norm(verdict.update) > 0.95


def test_far_away_makes_no_difference():
    _, updates, quantities = honest_round(3, 40)
    liars = -updates[:3]
    rule = fedra.Concord()
    near, far = (
        rule(np.vstack([updates, distance * liars]), np.append(quantities, [50, 50, 50])) for distance in (1e3, 1e100)
    )
    np.testing.assert_array_equal(near.weights, far.weights)
    np.testing.assert_array_equal(near.update, far.update)


def test_least_agreement_is_a_share():
    with pytest.raises(ValueError, match="least_agreement"):
        fedra.Concord(least_agreement=1.5)
    with pytest.raises(ValueError, match="least_support"):
        fedra.Concord(least_support=-0.1)
    with pytest.raises(ValueError, match="least_forgiving"):
        fedra.Concord(least_forgiving=2)
    with pytest.raises(ValueError, match="difference"):
        fedra.Concord(difference=-0.1)
    with pytest.raises(ValueError, match="few_clients"):
        fedra.Concord(few_clients=-1)
