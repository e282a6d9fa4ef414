"""Divide and conquer: subsets of coordinates, whom they drop, and how they are drawn."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests import reference
from tests.comparing import assert_near, clear_cut
from tests.reference.spectral import principal
from tests.strategies import make_round, rounds

import fedra
from fedra.seeding import generator


def draws(rule, dimension, number):
    """The subsets of one round, as the rule draws them."""
    rng = generator(rule.seed, "rules/dnc", number)
    size = rule.coordinates
    return [np.sort(rng.choice(dimension, size, replace=False, shuffle=False)) for _ in range(rule.subsets)]


@given(rounds(least_clients=5, most_dimension=60), st.integers(0, 4), st.sampled_from([1, 3, 8]), st.integers(0, 2))
def test_it_is_the_mean_of_those_whom_no_subset_drops(cohort, malicious, subsets, number):
    assume(2 * malicious < len(cohort))
    dimension = cohort.updates.shape[1]
    rule = fedra.DnC(num_malicious=malicious, subsets=subsets, coordinates=max(1, dimension // 2), seed=5)
    chosen = draws(rule, dimension, number) if dimension > rule.coordinates else [np.arange(dimension)]
    for subset in chosen:
        scores = principal(cohort.updates[:, subset].astype(np.float64), np.ones(len(cohort)))[1]
        assume(clear_cut(scores, len(cohort) - malicious))
    expected, good = reference.dnc(cohort.updates, malicious, chosen)
    verdict = rule(cohort.updates, cohort.quantities, state={"rounds": np.asarray(number)})
    assert int(verdict.state["rounds"]) == number + 1
    assert verdict.num_malicious == malicious
    if good:
        assert np.flatnonzero(verdict.kept).tolist() == good
        assert_near(verdict.update, expected, cohort.updates)
    else:
        assert verdict.kept.sum() == len(cohort) - malicious
    assert (verdict.scores[~verdict.kept] >= verdict.cut).all()


def test_by_hand():
    updates = np.array([[0.0, 1.0], [0.0, -1.0], [0.0, 0.0], [1.0, 0.0], [9.0, 0.0]])
    verdict = fedra.DnC(num_malicious=1)(updates, [1] * 5)
    assert verdict.kept.tolist() == [True, True, True, True, False]
    assert verdict.update.tolist() == [0.25, 0.0]
    # The mean is (2, 0): 4, 4, 4, 1 and 49, in units of the largest kept.
    np.testing.assert_allclose(verdict.scores, [1, 1, 1, 0.25, 12.25])
    assert fedra.DnC(num_malicious=1, dropped_per_malicious=2.0)(updates, [1] * 5).kept.sum() == 3


def test_each_round_and_each_seed_draws_other_coordinates():
    """On one coordinate out of many, another one is dropped each time."""
    made = make_round(1, 20, 500)
    rule = fedra.DnC(num_malicious=2, subsets=1, coordinates=1)
    first = rule(made.updates, made.quantities)
    again = rule(made.updates, made.quantities)
    second = rule(made.updates, made.quantities, state=first.state)
    other = fedra.DnC(num_malicious=2, subsets=1, coordinates=1, seed=1)(made.updates, made.quantities)
    assert again.update.tobytes() == first.update.tobytes()
    assert len({verdict.update.tobytes() for verdict in (first, second, other)}) == 3
    assert [int(verdict.state["rounds"]) for verdict in (first, second)] == [1, 2]


def test_where_nobody_passes_all_subsets_those_of_least_score_are_taken():
    made = make_round(3, 7, 300)
    verdict = fedra.DnC(num_malicious=3, subsets=40, coordinates=2)(made.updates, made.quantities)
    assert verdict.kept.sum() == 4
    assert np.isfinite(verdict.update).all()
    assert (verdict.scores[~verdict.kept] >= verdict.cut).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outliers_far_away_are_dropped(dtype):
    made = make_round(4, 20, 30_000, dtype)
    made.updates[:3] += dtype(5)
    verdict = fedra.DnC(num_malicious=3)(made.updates, made.quantities)
    assert not verdict.kept[:3].any()
    assert verdict.kept[3:].all()
    for threads in (2, None):
        found = fedra.DnC(num_malicious=3)(made.updates, made.quantities, threads=threads)
        assert found.update.tobytes() == verdict.update.tobytes()


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"rounds": np.asarray(-1)},
        {"rounds": np.asarray(1.0)},
        {"rounds": np.zeros(2, dtype=np.int64)},
        {"rounds": 3},
        {"rounds": np.asarray(1), "more": np.asarray(1)},
    ],
)
def test_a_state_that_is_not_its_own_gives_no_update(state):
    verdict = fedra.DnC()(np.eye(5), [1] * 5, state=state)
    assert verdict.update is None
    assert "state" in verdict.note


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"subsets": 0}, "subsets=0; give a whole number of at least 1"),
        ({"coordinates": 0}, "coordinates=0; give a whole number of at least 1"),
        ({"dropped_per_malicious": 0}, "dropped_per_malicious=0"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        fedra.DnC(**parameters)


def test_too_many_assumed_names_the_condition():
    with pytest.raises(ValueError, match=r"dnc needs n > 2m for m .* has n = 4 and m = 2"):
        fedra.DnC(num_malicious=2)(np.zeros((4, 2)), [1] * 4)
