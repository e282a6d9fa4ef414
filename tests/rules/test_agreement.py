"""The step that no few clients can turn, against a hull that is written down, and against whoever tries to turn it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.concord import all_means, shortest_in_hull
from tests.strategies import SEEDS

from fedra.rules.agreement import agreed_weights, least_agreeing


def drawn(seed, clients, dimension, signal=0.5):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(dimension)
    weights = np.exp(rng.normal(0, 1.5, clients))
    noise = rng.standard_normal((clients, dimension)) / np.sqrt(weights)[:, np.newaxis]
    return signal * truth + noise, weights


@given(SEEDS, st.integers(4, 9), st.integers(1, 12), st.integers(0, 3), st.sampled_from([0.0, 0.5, 3.0]))
def test_it_is_the_shortest_vector_of_the_hull(seed, clients, dimension, count, signal):
    updates, weights = drawn(seed, clients, dimension, signal)
    agreed = agreed_weights(updates @ updates.T, weights, count)
    assert (agreed >= 0).all()
    assert agreed.sum() == pytest.approx(1)
    means = np.array(list(all_means(updates, weights, count)))
    found, expected = agreed @ updates, shortest_in_hull(means, steps=3000)
    scale = np.abs(updates).max()
    assert found @ found <= expected @ expected * 1.001 + 1e-6 * scale**2
    assert (means @ found >= 0.9999 * (found @ found) - 1e-6 * scale**2).all()


@given(SEEDS, st.integers(4, 8), st.integers(1, 12), st.integers(0, 3), st.sampled_from([0.0, 0.5, 3.0]))
def test_by_several_weights_it_is_the_shortest_vector_of_all_their_means(seed, clients, dimension, count, signal):
    updates, weights = drawn(seed, clients, dimension, signal)
    several = np.vstack([weights, np.ones(clients), weights[::-1]])
    agreed = agreed_weights(updates @ updates.T, several, count)
    means = np.array(list(all_means(updates, several, count)))
    found, expected = agreed @ updates, shortest_in_hull(means, steps=3000)
    scale = np.abs(updates).max()
    assert found @ found <= expected @ expected * 1.001 + 1e-6 * scale**2
    assert (means @ found >= 0.9999 * (found @ found) - 1e-6 * scale**2).all()


@given(SEEDS, st.integers(3, 9), st.integers(1, 3))
def test_the_mean_that_agrees_least_is_the_least_of_all(seed, clients, count):
    rng = np.random.default_rng(seed)
    weights, agreement = np.exp(rng.normal(0, 2, clients)), rng.standard_normal(clients)
    count = min(count, clients - 1)
    chosen = least_agreeing(agreement, weights, count)
    least = min(float(mean[0]) for mean in all_means(agreement[:, np.newaxis], weights, count))
    assert chosen @ agreement == pytest.approx(least, rel=1e-9, abs=1e-12)
    assert (chosen == 0).sum() <= count


@given(SEEDS, st.integers(3, 9), st.integers(1, 3), st.sampled_from([2.0**40, 2.0**53]))
def test_it_is_so_beside_a_weight_beside_which_others_cannot_be_seen(seed, clients, count, giant):
    rng = np.random.default_rng(seed)
    weights, agreement = np.ones(clients), rng.standard_normal(clients)
    weights[rng.integers(clients)] = giant
    count = min(count, clients - 1)
    chosen = least_agreeing(agreement, weights, count)
    least = min(float(mean[0]) for mean in all_means(agreement[:, np.newaxis], weights, count))
    assert chosen @ agreement == pytest.approx(least, rel=1e-9, abs=1e-12)


@given(SEEDS, st.integers(4, 30), st.integers(1, 3), st.integers(1, 8))
def test_updates_that_cancel_exactly_are_decided(seed, clients, dimension, count):
    rng = np.random.default_rng(seed)
    updates = rng.choice([-3.0, 3.0], (clients, dimension))
    for weights in (np.ones(clients), rng.choice([1.0, 2.0], (2, clients))):
        agreed = agreed_weights(updates @ updates.T, weights, min(count, clients - 1))
        assert (agreed >= 0).all()
        assert agreed.sum() == pytest.approx(1)


@given(SEEDS, st.integers(1, 4), st.floats(-3, 6), st.floats(0, 8), st.sampled_from([-1.0, 1.0, None]))
def test_whichever_few_lie_the_step_does_not_point_against_the_others(seed, count, far, claim, along):
    rng = np.random.default_rng(seed)
    updates, weights = drawn(seed, 14, 30)
    honest = weights @ updates / weights.sum()
    direction = rng.standard_normal((count, 30)) if along is None else np.tile(along * honest, (count, 1))
    everyone = np.vstack([updates, 10**far * direction])
    believed = np.concatenate([weights, np.full(count, 10**claim)])
    step = agreed_weights(everyone @ everyone.T, believed, count) @ everyone
    # Both are rounded relative to the longest of the updates.
    slack = 1e-6 * np.linalg.norm(everyone, axis=1).max() * np.linalg.norm(honest)
    assert step @ honest >= -0.02 * np.linalg.norm(step) * np.linalg.norm(honest) - slack


def test_where_all_agree_it_is_nearly_the_mean():
    updates, weights = drawn(3, 40, 200, signal=100.0)
    mean = weights @ updates / weights.sum()
    step = agreed_weights(updates @ updates.T, weights, 5) @ updates
    assert step @ mean / np.linalg.norm(step) / np.linalg.norm(mean) > 0.999
    assert np.linalg.norm(step) > 0.99 * np.linalg.norm(mean)


def test_without_liars_it_is_the_mean():
    updates, weights = drawn(0, 8, 5)
    np.testing.assert_array_equal(agreed_weights(updates @ updates.T, weights, 0), weights / weights.sum())


@pytest.mark.parametrize(
    "updates", [np.zeros((6, 4)), np.ones((6, 4)), np.full((6, 4), 1e150), np.full((6, 4), 1e-200)]
)
def test_updates_that_are_alike_or_nothing(updates):
    with np.errstate(over="ignore"):
        agreed = agreed_weights(updates @ updates.T, np.arange(1.0, 7.0), 2)
    assert np.isfinite(agreed).all()
    assert agreed.sum() == pytest.approx(1)
