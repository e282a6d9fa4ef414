"""Centred clipping: the formula over several rounds, and how little one client can do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import reference
from tests.comparing import assert_near, assert_same_verdict
from tests.strategies import DTYPES, SEEDS, make_round, rounds

import fedra

RADII = st.sampled_from([None, None, 1e-3, 0.5, 10.0, 1e9])
ITERATIONS = st.sampled_from([1, 3, 7])


def run(rule, many, **options):
    """Return the verdicts of several rounds, the state carried on."""
    verdicts, state = [], None
    for cohort in many:
        verdicts.append(rule(cohort.updates, cohort.quantities, state=state, **options))
        state = verdicts[-1].state
    return verdicts


def several(seed, count, clients, dimension, dtype=np.float64, **options):
    return [make_round(seed + number, clients, dimension, dtype, **options) for number in range(count)]


@given(SEEDS, st.integers(1, 15), st.integers(1, 60), DTYPES, RADII, ITERATIONS, st.sampled_from([1.0, 1e-6, 1e6]))
def test_several_rounds_are_the_formula(seed, clients, dimension, dtype, radius, iterations, scale):
    many = several(seed, 4, clients, dimension, dtype, base=1.0, liars=clients // 4, scale=scale)
    rule = fedra.CenteredClipping(radius=radius, iterations=iterations)
    centre = None
    for cohort, verdict in zip(many, run(rule, many), strict=True):
        centre = reference.centered_clipping(cohort.updates, centre, radius, iterations)
        assert_near(verdict.update, centre, cohort.updates, factor=4)
        assert verdict.kept.all()
        assert verdict.weights is verdict.scores is verdict.num_malicious is None


@pytest.mark.parametrize("spread", [1.0, 1e-3])
@pytest.mark.parametrize("radius", [None, 0.1, 50.0])
def test_long_float32_updates_are_as_near(spread, radius):
    """Beyond 4096 values distances are taken in float32."""
    many = several(3, 4, 15, 6000, np.float32, spread=spread, base=1.0, liars=3)
    centre = None
    for cohort, verdict in zip(many, run(fedra.CenteredClipping(radius=radius), many), strict=True):
        centre = reference.centered_clipping(cohort.updates, centre, radius)
        assert_near(verdict.update, centre, cohort.updates, factor=4)


def test_by_hand():
    rule = fedra.CenteredClipping(radius=2.0, iterations=1)
    first = rule(np.array([[1.0, 0.0], [0.0, 8.0], [0.0, 0.0], [-3.0, -4.0]]), [1] * 4)
    # 1 counts in full, 8 and 5 are cut to 2: (1, 0), (0, 2), (0, 0), (-1.2, -1.6), divided by 4.
    assert first.update.tolist() == pytest.approx([-0.05, 0.1])
    second = rule(np.array([[-0.05, 0.1], [-0.05, 4.1]]), [1] * 2, state=first.state)
    assert second.update.tolist() == pytest.approx([-0.05, 1.1])


def test_claims_do_not_matter():
    many = several(1, 1, 9, 6)
    rule = fedra.CenteredClipping()
    one, other = rule(many[0].updates, [1] * 9), rule(many[0].updates, [10**k for k in range(9)])
    assert one.update.tobytes() == other.update.tobytes()


@given(rounds(), rounds(), RADII, SEEDS)
def test_the_order_of_clients_does_not_matter(first, second, radius, seed):
    rule = fedra.CenteredClipping(radius=radius)
    dimension = min(first.updates.shape[1], second.updates.shape[1])
    state = rule(first.updates[:, :dimension].copy(), first.quantities).state
    updates = second.updates[:, :dimension].copy()
    order = np.random.default_rng(seed).permutation(len(second))
    plain, moved = (rule(some, np.ones(len(some)), state=state).update for some in (updates, updates[order]))
    # The centre is one of the values that the result is made of.
    among = np.vstack([updates, state["centre"].astype(updates.dtype)])
    assert_near(moved, plain.astype(np.float64), among, factor=2)


@given(
    SEEDS,
    st.integers(2, 12),
    st.sampled_from([0.01, 1.0, 30.0]),
    st.integers(1, 5),
    st.sampled_from([0.0, 1e-3, 1.0, 40.0, 1e10, 1e100]),
)
def test_one_attacker_moves_the_result_by_at_most_its_share_of_each_step(seed, clients, radius, iterations, length):
    """Compared with a client that has no part in any step; those of the others bring two centres no farther apart."""
    rng = np.random.default_rng(seed)
    rule = fedra.CenteredClipping(radius=radius, iterations=iterations)
    state, silent = None, np.zeros(20)
    for number in range(1, 4):
        updates = rng.standard_normal((clients, 20))
        updates[0] = length * rng.standard_normal(20)
        silent = reference.centered_clipping(updates[1:], silent, radius, iterations, count=clients)
        verdict = rule(updates, [1] * clients, state=state)
        state = verdict.state
        assert np.linalg.norm(verdict.update - silent) <= number * iterations * radius / clients * (1 + 1e-9) + 1e-12


def test_a_minority_far_away_hardly_moves_the_median_radius():
    many = several(5, 6, 20, 40, base=1.0, spread=0.1)
    honest = run(fedra.CenteredClipping(), [_without(cohort, 4) for cohort in many])[-1].update
    for cohort in many:
        cohort.updates[:4] = 1e12
    assert np.linalg.norm(run(fedra.CenteredClipping(), many)[-1].update - honest) < 0.5 * np.linalg.norm(honest)


def _without(cohort, count):
    return type(cohort)(cohort.updates[count:], cohort.quantities[count:], cohort.description)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("radius", [None, 1.0])
def test_any_number_of_threads_gives_the_same_bits_over_rounds(dtype, radius):
    many = several(7, 3, 11, 50_001, dtype, liars=1)
    rule = fedra.CenteredClipping(radius=radius)
    one = run(rule, many, threads=1)
    for threads in (2, 3, None):
        for found, expected in zip(run(rule, many, threads=threads), one, strict=True):
            assert_same_verdict(found, expected)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("radius", [None, 5e-324, 1.0, 1e308])
@pytest.mark.parametrize("dimension", [3, 5000])
@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (np.float32, [3.4e38, -3.4e38, 1e-45, 0.0, 1.0, -1e30]),
        (np.float64, [1e140, -1e140, 5e-324, 0.0, 1.0, 1e-160]),
    ],
)
def test_huge_tiny_and_equal_updates_never_give_nan(dtype, values, dimension, radius):
    rule = fedra.CenteredClipping(radius=radius)
    rng = np.random.default_rng(dimension)
    state = None
    for value in (*values, *values[::-1]):
        mixed = np.full((5, dimension), value, dtype=dtype)
        mixed[:2] = rng.choice(values, (2, dimension))
        for updates in (np.full((4, dimension), value, dtype=dtype), mixed):
            verdict = rule(updates, [1] * len(updates), state=state)
            state = verdict.state
            assert np.isfinite(verdict.update).all()
            assert np.isfinite(state["centre"]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("clients", [1, 2, 7, 10, 13])
def test_clients_that_agree_are_followed_at_once_however_far_the_centre_was(dtype, clients):
    """All are within their median distance, and nothing of the old centre is left."""
    rule = fedra.CenteredClipping()
    far = rule(np.full((clients, 6), 1e30, dtype=dtype), [1] * clients).state
    row = np.array([0.1, -3.0, 0.0, 7e-5, 1e-20, 1e5], dtype=dtype)
    verdict = rule(np.tile(row, (clients, 1)), [1] * clients, state=far)
    np.testing.assert_allclose(verdict.update, row, rtol=1e-7 if dtype == np.float32 else 1e-14)


def test_clients_at_the_centre_leave_it_there():
    """All distances are 0, and so is the radius; a stranger counts for nothing."""
    rule = fedra.CenteredClipping()
    state = {"centre": np.array([0.5, -2.0])}
    updates = np.tile(state["centre"], (5, 1))
    assert rule(updates, [1] * 5, state=state).update.tolist() == [0.5, -2.0]
    updates[3] = 1e100
    assert rule(updates, [1] * 5, state=state).update.tolist() == [0.5, -2.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_state_is_the_last_result_bit_for_bit(dtype):
    for verdict in run(fedra.CenteredClipping(), several(9, 3, 8, 30, dtype)):
        assert verdict.update.dtype == dtype
        assert verdict.state["centre"].dtype == np.float64
        assert verdict.state["centre"].astype(dtype).tobytes() == verdict.update.tobytes()
        assert not np.shares_memory(verdict.state["centre"], verdict.update)


@pytest.mark.filterwarnings("error")
def test_a_centre_beyond_float32_stays_finite_when_clients_change_their_type():
    rule = fedra.CenteredClipping()
    state = rule(np.full((5, 4), -1e120), [1] * 5).state
    verdict = rule(np.ones((5, 4), dtype=np.float32), [1] * 5, state=state)
    assert verdict.update.tolist() == [1.0] * 4
    clipping = fedra.CenteredClipping(radius=1.0)
    assert np.isfinite(clipping(np.ones((5, 4), dtype=np.float32), [1] * 5, state=state).update).all()


def test_it_starts_at_zero():
    rule = fedra.CenteredClipping(radius=1.0, iterations=1)
    assert rule.init(3)["centre"].tolist() == [0.0, 0.0, 0.0]
    updates = np.full((4, 3), 5.0)
    started = rule(updates, [1] * 4, state=rule.init(3))
    assert started.update.tobytes() == rule(updates, [1] * 4).update.tobytes()


@pytest.mark.parametrize("radius", [0, -1.0, float("nan"), float("inf")])
def test_a_radius_that_is_not_positive_and_finite_is_refused(radius):
    with pytest.raises(ValueError, match=f"radius={radius!r}; give a positive number, or None for the median distance"):
        fedra.CenteredClipping(radius=radius)


def test_wrong_types_are_refused():
    with pytest.raises(TypeError, match="radius='1'; give a positive number"):
        fedra.CenteredClipping(radius="1")
    with pytest.raises(ValueError, match="iterations=0; give a whole number of at least 1"):
        fedra.CenteredClipping(iterations=0)
    with pytest.raises(TypeError, match=r"iterations=2\.5"):
        fedra.CenteredClipping(iterations=2.5)
