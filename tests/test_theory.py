"""The bounds equal hand-computed values, and hold where their assumptions do."""

from __future__ import annotations

import contextlib
import io
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedra
from fedra import theory

Floats = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, tuple[int, ...]], Floats]

PAGE = Path(__file__).parents[1] / "docs" / "theory.md"

# All of mean 0 and variance 1. Those in STRICT satisfy Assumption 1: their moment generating function is at most a
# Gaussian's. Laplace and exponential do not (their fourth or third cumulant is positive), but Lemmas 1 and 2 need only
# the variance.
STRICT: dict[str, Noise] = {
    "gaussian": lambda rng, shape: rng.normal(size=shape),
    "uniform": lambda rng, shape: rng.uniform(-math.sqrt(3), math.sqrt(3), size=shape),
    "rademacher": lambda rng, shape: rng.choice([-1.0, 1.0], size=shape),
}
LOOSE: dict[str, Noise] = {
    "laplace": lambda rng, shape: rng.laplace(scale=math.sqrt(0.5), size=shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape) - 1,
}
SIGMA = np.array([0.2, 1.0, 3.0])
MEAN = np.array([5.0, -1.0, 0.0])


def honest(noise: Noise, rng: np.random.Generator, trials: int, quantity: int) -> Floats:
    """Return (trials, 3) updates, each the mean gradient of `quantity` samples."""
    updates: Floats = MEAN + SIGMA * noise(rng, (trials, quantity, 3)).mean(axis=1)
    return updates


def assert_below(samples: Floats, bound: float) -> None:
    error = samples.std(ddof=1) / math.sqrt(len(samples))
    assert samples.mean() + 5 * error <= bound


def most_trusted(updates: Floats, quantities: Floats, num_malicious: int) -> int:
    scores = fedra.quantity_robust_scores(updates, quantities, num_malicious=num_malicious, gamma=0.5, threads=1)
    return int(np.argmin(scores))


def selection_errors(
    updates: Floats, quantities: Floats, num_malicious: int, mean: Floats | float
) -> tuple[float, float, int]:
    """Return sqrt(q)|g - g_bar|_1 and sqrt(q)|g - mu|_1 of the client of least score, and that client."""
    n = len(quantities)
    best = most_trusted(updates, quantities, num_malicious)
    apart = np.abs(updates - updates[best]).sum(axis=1) / np.sqrt(1 / quantities + 1 / quantities[best])
    apart[best] = np.inf
    neighbours = np.argsort(apart, kind="stable")[: n - num_malicious - 2]
    benign = neighbours[neighbours < n - num_malicious]
    around = np.average(updates[benign], axis=0, weights=quantities[benign])
    root = math.sqrt(quantities[best])
    return root * np.abs(updates[best] - around).sum(), root * np.abs(updates[best] - mean).sum(), best


def test_lemmas_equal_hand_computed_values() -> None:
    assert theory.distance_bound(1, 1, sigma=1) == pytest.approx(1.6651092223)
    assert theory.distance_bound(4, 12, sigma=[1, 2]) == pytest.approx(1.1774100226 * 3 / math.sqrt(3))
    assert theory.error_bound(sigma=[0.5, 1.5]) == pytest.approx(2.3548200450)
    assert theory.largest_error_bound(4, 9, sigma=3) == pytest.approx(2.0393339803)
    assert theory.largest_error_bound(1, 1, sigma=1) == pytest.approx(theory.error_bound(sigma=1))


def test_proposition_equals_hand_computed_values() -> None:
    bounds = theory.selection_bounds([3, 1, 2, 2, 4], [2], sigma=[0.5, 1.5])
    assert bounds.count_factor == pytest.approx(6.7489740708)
    assert bounds.quantity_factor == pytest.approx(5 / 3)
    assert bounds.offset == pytest.approx(3.2167440029)
    assert bounds.to_neighbours == pytest.approx(22.496580236)
    assert bounds.to_mean == pytest.approx(28.930068242)


def test_collusion_bounds_equal_hand_computed_values() -> None:
    bounds = theory.collusion_bounds([3, 1, 2, 2, 4], [2], sigma=[0.5, 1.5])
    assert bounds.count_factor == pytest.approx(6.7489740708)
    assert bounds.quantity_factor == pytest.approx(5)
    assert bounds.offset == pytest.approx(2.0393339803 * math.sqrt(2))
    assert bounds.to_mean == pytest.approx(67.489740708 + 4 * 2.0393339803 / math.sqrt(2))
    assert theory.collusion_bounds([3, 1, 2, 1, 4], [3], sigma=1).offset == pytest.approx(2.0393339803)


def test_theorem_equals_hand_computed_value() -> None:
    assert theory.gradient_bound(smoothness=2, initial_gap=3, round_errors=[1, 2, 3, 4]) == pytest.approx(10.5)


@pytest.mark.parametrize("malicious", [[0, 3], np.array([True, False, False, True, False, False, False, False])])
def test_condition_of_a_round(malicious: Any) -> None:
    # Benign: 1, 2, 3, 4, 50, 60; B is the four smallest of them.
    condition = theory.quantity_condition([9, 1, 3, 10, 2, 50, 60, 4], malicious=malicious)
    assert not condition.holds
    assert (condition.largest_malicious, condition.sum_smallest, condition.margin) == (10, 10, 0)
    assert condition.largest_claim == 9
    assert theory.quantity_condition([9, 1, 3, 9.5, 2, 50, 60, 4], malicious=[0, 3]).holds


def test_bound_to_the_mean_is_infinite_without_the_condition() -> None:
    quantities = [1, 2, 3, 4, 3]
    broken = theory.selection_bounds(quantities, [4], sigma=1)
    assert broken.to_mean == math.inf
    assert math.isfinite(broken.to_neighbours)
    assert math.isfinite(theory.collusion_bounds(quantities, [4], sigma=1).to_mean)
    assert theory.gradient_bound(smoothness=1, initial_gap=1, round_errors=[broken.to_mean]) == math.inf


def test_nobody_malicious() -> None:
    condition = theory.quantity_condition([1, 2, 3], malicious=[])
    assert condition == theory.quantity_condition([1, 2, 3], num_malicious=0)
    assert (condition.holds, condition.largest_malicious, condition.sum_smallest) == (True, 0, 1)
    assert condition.largest_claim == 0


@given(st.data())
def test_counting_malicious_clients_is_the_worst_case(data: st.DataObject) -> None:
    quantities = data.draw(st.lists(st.integers(1, 60), min_size=5, max_size=12))
    count = data.draw(st.integers(0, (len(quantities) - 3) // 2))
    named = data.draw(st.permutations(range(len(quantities))))[:count]
    worst = theory.quantity_condition(quantities, num_malicious=count)
    actual = theory.quantity_condition(quantities, malicious=named)
    assert worst.margin <= actual.margin
    assert actual.holds or not worst.holds


@given(st.lists(st.integers(1, 10**6), min_size=5, max_size=12))
def test_largest_claim_is_the_last_that_holds(quantities: list[int]) -> None:
    last = theory.quantity_condition([*quantities, 1], malicious=[len(quantities)]).largest_claim
    for claim, holds in ((last, True), (last + 1, False)):
        assert claim < 1 or theory.quantity_condition([*quantities, claim], malicious=[len(quantities)]).holds is holds


@given(st.lists(st.integers(1, 10**6), min_size=5, max_size=12), st.integers(1, 10**9))
def test_collusion_bound_is_the_weaker_promise(quantities: list[int], claim: int) -> None:
    round_ = [*quantities, claim]
    printed = theory.selection_bounds(round_, [len(quantities)], sigma=1)
    assert theory.collusion_bounds(round_, [len(quantities)], sigma=1).to_neighbours >= printed.to_neighbours


@pytest.mark.filterwarnings("error")
def test_huge_quantities_do_not_overflow() -> None:
    huge = [1e308] * 8
    condition = theory.quantity_condition(huge, malicious=[0])
    assert condition.holds
    assert condition.sum_smallest == math.inf
    assert condition.largest_claim == np.finfo(np.float64).max
    for make in (theory.selection_bounds, theory.collusion_bounds):
        bounds = make(huge, [0], sigma=1)
        neighbours = 5 if make is theory.selection_bounds else 4
        assert bounds.quantity_factor == pytest.approx(1e154 / neighbours)
        assert math.isfinite(bounds.to_mean)
        mixed = make([1.0] * 6 + [1e308, 1e308], [7], sigma=0)
        assert mixed.quantity_factor == pytest.approx(1e308 / neighbours)
        assert mixed.to_neighbours == 0
    assert not theory.quantity_condition([1.0] * 7 + [1e308], malicious=[7]).holds
    assert theory.distance_bound(1e308, 1e308, sigma=1) == pytest.approx(1.6651092223e-154)
    assert theory.gradient_bound(smoothness=1, initial_gap=0, round_errors=[1e200]) == math.inf
    assert theory.gradient_bound(smoothness=1, initial_gap=0, round_errors=[1e153] * 1000) == pytest.approx(1e306)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: theory.quantity_condition([1] * 6, num_malicious=2), ValueError, r"2m\+2 < n, but n = 6 and m = 2"),
        (lambda: theory.quantity_condition([1] * 6, num_malicious=9), ValueError, "n = 6 and m = 9"),
        (lambda: theory.selection_bounds([1] * 4, [0], sigma=1), ValueError, "n = 4 and m = 1"),
        (lambda: theory.collusion_bounds([], [], sigma=1), ValueError, "n = 0 and m = 0"),
        (lambda: theory.quantity_condition([1] * 6), TypeError, "give one of them"),
        (lambda: theory.quantity_condition([1] * 6, malicious=[0], num_malicious=1), TypeError, "give one of them"),
        (lambda: theory.quantity_condition([1] * 6, num_malicious=0.0), TypeError, "num_malicious=0.0"),  # type: ignore[arg-type]
        (lambda: theory.quantity_condition([1] * 6, malicious=[6]), ValueError, "index 6, but n = 6"),
        (lambda: theory.quantity_condition([1] * 6, malicious=[-1]), ValueError, "index -1"),
        (lambda: theory.quantity_condition([1] * 6, malicious=[1, 1]), ValueError, "index 1 twice"),
        (lambda: theory.quantity_condition([1] * 6, malicious=[0.5]), TypeError, "float64"),
        (lambda: theory.quantity_condition([1] * 6, malicious=[True]), ValueError, "mask of 1 values for n = 6"),
        (lambda: theory.quantity_condition([1] * 6, malicious=[[1]]), ValueError, r"shape \(1, 1\)"),
        (lambda: theory.quantity_condition([1, 1, 0, 1, 1], num_malicious=1), ValueError, r"quantities\[2\]=0"),
        (lambda: theory.quantity_condition([1, math.nan, 1], num_malicious=0), ValueError, r"quantities\[1\]=nan"),
        (lambda: theory.quantity_condition([1, 1, 10**400], num_malicious=0), ValueError, r"quantities\[2\]=a whole"),
        (lambda: theory.quantity_condition([1, "5", 1], num_malicious=0), TypeError, r"quantities\[1\]='5'"),
        (lambda: theory.quantity_condition([1, True, 1], num_malicious=0), TypeError, r"quantities\[1\]=True"),
        (lambda: theory.distance_bound(0.5, 1, sigma=1), ValueError, "first_quantity=0.5"),
        (lambda: theory.largest_error_bound(0, 1, sigma=1), ValueError, "num_clients=0"),
        (lambda: theory.error_bound(sigma=[1, -2]), ValueError, "sigma holds -2.0"),
        (lambda: theory.error_bound(sigma=math.inf), ValueError, "sigma holds inf"),
        (lambda: theory.error_bound(sigma=[[1]]), ValueError, r"shape \(1, 1\)"),
        (lambda: theory.gradient_bound(smoothness=-1, initial_gap=1, round_errors=[1]), ValueError, "smoothness=-1"),
        (lambda: theory.gradient_bound(smoothness=1, initial_gap=1, round_errors=[]), ValueError, "T >= 1"),
        (lambda: theory.gradient_bound(smoothness=1, initial_gap=1, round_errors=[math.nan]), ValueError, "hold nan"),
    ],
)
def test_mistakes_are_named(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", [*STRICT, *LOOSE])
@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, 20), (7, 3)])
def test_lemmas_1_and_2_hold(name: str, first: int, second: int) -> None:
    rng = np.random.default_rng([1, first, second])
    noise = {**STRICT, **LOOSE}[name]
    one, other = honest(noise, rng, 5000, first), honest(noise, rng, 5000, second)
    assert_below(np.abs(one - other).sum(axis=1), theory.distance_bound(first, second, sigma=SIGMA))
    assert_below(math.sqrt(first) * np.abs(one - MEAN).sum(axis=1), theory.error_bound(sigma=SIGMA))


@pytest.mark.parametrize("name", STRICT)
@pytest.mark.parametrize("clients", [1, 10, 200])
def test_lemma_3_holds(name: str, clients: int) -> None:
    rng = np.random.default_rng([2, clients])
    for quantity in (1, 6):
        updates = honest(STRICT[name], rng, 500 * clients, quantity).reshape(500, clients, 3)
        worst = np.abs(updates - MEAN).sum(axis=2).max(axis=1)
        assert_below(worst, theory.largest_error_bound(clients, quantity, sigma=SIGMA))


def test_lemma_3_needs_light_tails() -> None:
    harmonic = sum(1 / i for i in range(1, 1001))
    # The largest of n Laplace magnitudes of scale b is b times the n-th harmonic number in expectation.
    assert harmonic / math.sqrt(2) > 1.3 * theory.largest_error_bound(1000, 1, sigma=1)


def largest_selected(benign: Floats, quantities: Floats, num_malicious: int, direction: Floats) -> Floats:
    """Return the round in which colluders stand as far along `direction` as still gets one of them selected."""
    centre = np.average(benign, axis=0, weights=quantities[: len(benign)])
    low, high = 0.0, 20.0
    for _ in range(9):
        middle = (low + high) / 2
        updates = np.vstack([benign, np.tile(centre + middle * direction, (num_malicious, 1))])
        chosen = most_trusted(updates, quantities, num_malicious) >= len(benign)
        low, high = (middle, high) if chosen else (low, middle)
    return np.vstack([benign, np.tile(centre + low * direction, (num_malicious, 1))])


@pytest.mark.parametrize("name", STRICT)
@pytest.mark.parametrize(("claim", "selected"), [(1, 0.9), (2, 0.5), (18, 0.0)])
def test_proposition_holds_against_attackers_who_see_everything(name: str, claim: int, selected: float) -> None:
    rng = np.random.default_rng([3, claim])
    n, m = 14, 3
    benign_quantities = np.array([1, 1, 1, 2, 2, 3, 4, 5, 8, 12, 20])
    quantities = np.concatenate([benign_quantities, np.full(m, claim)]).astype(np.float64)
    assert theory.quantity_condition(quantities, malicious=range(n - m, n)).largest_claim >= claim
    errors = []
    for _ in range(80):
        benign = np.vstack([honest(STRICT[name], rng, 1, q) for q in benign_quantities])
        direction = SIGMA * rng.choice([-1.0, 1.0], size=3)
        errors.append(selection_errors(largest_selected(benign, quantities, m, direction), quantities, m, MEAN))
    to_neighbours, to_mean, chosen = np.array(errors).T
    assert (chosen >= n - m).mean() >= selected
    for make in (theory.selection_bounds, theory.collusion_bounds):
        bounds = make(quantities, range(n - m, n), sigma=SIGMA)
        assert_below(to_neighbours, bounds.to_neighbours)
        assert_below(to_mean, bounds.to_mean)


@pytest.mark.parametrize(("quantity", "factor"), [(1, 9), (1000, 140)])
def test_proposition_is_as_loose_as_the_page_says(quantity: int, factor: float) -> None:
    rng = np.random.default_rng(7)
    n, m = 14, 3
    quantities = np.full(n, float(quantity))
    spread = SIGMA / math.sqrt(quantity)
    errors = []
    for _ in range(80):
        benign = MEAN + spread * rng.normal(size=(n - m, 3))
        direction = spread * rng.choice([-1.0, 1.0], size=3)
        errors.append(selection_errors(largest_selected(benign, quantities, m, direction), quantities, m, MEAN)[0])
    bounds = theory.selection_bounds(quantities, range(n - m, n), sigma=SIGMA)
    assert bounds.to_neighbours / np.mean(errors) == pytest.approx(factor, rel=0.15)


def test_colluders_exceed_the_printed_proposition_but_not_the_collusion_bound() -> None:
    rng = np.random.default_rng(4)
    m, d = 30, 50
    n = 2 * m + 3
    quantities = np.ones(n)
    errors = []
    for _ in range(20):
        updates = rng.normal(size=(n, d))
        updates[n - m :] = 0.45 * (m + 1)
        errors.append(selection_errors(updates, quantities, m, 0.0))
    to_neighbours, to_mean, chosen = np.array(errors).T
    assert (chosen >= n - m).all()
    printed = theory.selection_bounds(quantities, range(n - m, n), sigma=np.ones(d))
    assert to_neighbours.min() > 1.6 * printed.to_neighbours
    assert to_mean.min() > 1.1 * printed.to_mean
    safe = theory.collusion_bounds(quantities, range(n - m, n), sigma=np.ones(d))
    assert_below(to_neighbours, safe.to_neighbours)
    assert_below(to_mean, safe.to_mean)


def test_theorem_holds_on_a_quadratic_loss() -> None:
    rng = np.random.default_rng(5)
    curvatures, start, smoothness = np.array([2.0, 0.5, 0.1]), np.array([3.0, -4.0, 10.0]), 2.0
    n, m, rounds, runs = 9, 2, 12, 40
    quantities = np.array([1.0, 1, 2, 2, 3, 5, 9, 5, 5])
    gradients = np.empty((runs, rounds + 1))
    for run in range(runs):
        point = start
        for t in range(rounds + 1):
            gradient = curvatures * point
            gradients[run, t] = np.square(gradient).sum()
            updates = gradient + SIGMA * rng.normal(size=(n, 3)) / np.sqrt(quantities)[:, np.newaxis]
            updates[n - m :] = updates[: n - m].mean(axis=0) - 0.3 * SIGMA * np.sign(gradient)
            point = point - updates[most_trusted(updates, quantities, m)] / smoothness
    bounds = theory.selection_bounds(quantities, range(n - m, n), sigma=SIGMA)
    bound = theory.gradient_bound(
        smoothness=smoothness,
        initial_gap=float((curvatures * start**2).sum() / 2),
        round_errors=[bounds.to_mean] * rounds,
    )
    assert_below(gradients[:, gradients.mean(axis=0).argmin()], bound)


def test_every_snippet_of_the_page_prints_what_it_says() -> None:
    snippets = re.findall(r"```python\n(.*?)```\s*```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(snippets) == 2
    for code, expected in snippets:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, {})
        assert printed.getvalue() == expected
