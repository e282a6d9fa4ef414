"""MCNE, the malicious client number estimator."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests import reference
from tests.comparing import clear_best
from tests.reference.mcne import log_prior, prior_mass
from tests.strategies import SEEDS

import fedra
from fedra.rules import mcne

VARIANCE = st.sampled_from(["separate", "pooled", "pooled-root"])
PRIOR = st.sampled_from(["number", "set"])
RATIOS = st.sampled_from(["0", "0.05", "0.1", "0.3", "0.49"])


@st.composite
def score_lists(draw, least=3, most=60):
    """Skewed honest scores, some of them larger, some of those equal."""
    rng = np.random.default_rng(draw(SEEDS))
    count = draw(st.integers(least, most))
    scores = rng.lognormal(0, draw(st.sampled_from([0.1, 1.0])), count)
    bad = draw(st.integers(0, count // 2))
    scores[:bad] += draw(st.sampled_from([1.0, 10.0, 1e6]))
    if draw(st.booleans()):
        scores[:bad] = scores[0]
    return rng.permutation(scores)


@given(score_lists(), RATIOS, st.sampled_from([None, 60, 3025]), VARIANCE, PRIOR)
def test_the_estimate_is_the_likeliest_split(scores, ratio, num_clients, variance, prior):
    options = {"ratio": ratio, "num_clients": num_clients, "variance": variance, "prior": prior}
    values = reference.log_likelihoods(scores, **options) if len(set(scores)) > 1 else [0.0]
    assume(max(values) > -math.inf)
    assume(max(values) == math.inf or clear_best(values, margin=1e-6))
    found = fedra.estimate_num_malicious(
        scores, malicious_ratio=float(ratio), num_clients=num_clients, variance=variance, prior=prior
    )
    assert found == reference.estimate_num_malicious(scores, **options)


@given(score_lists(least=5), st.integers(0, 20))
def test_quadratic_terms_add_up(scores, m):
    """The oracle: with ddof = 1 the quadratic terms sum to (n - 2)/2, and to (n - 1)/2 for m = 0."""
    n = len(scores)
    assume(m <= (n - 3) // 2)
    values = np.sort(scores) / np.std(scores, ddof=1)
    benign, malicious = values[: n - m], values[n - m :]
    assume(np.std(benign, ddof=1) > 1e-5)
    assume(m < 2 or np.std(malicious, ddof=1) > 1e-5)
    logarithms = (n - m) * math.log(np.std(benign, ddof=1))
    if m:
        logarithms += m * math.log(np.std(malicious if m > 1 else benign, ddof=1))
    expected = (n - 1) / 2 if m == 0 else (n - 2) / 2
    assert -mcne._separate(values, m) - logarithms == pytest.approx(expected, rel=1e-6)
    assert reference.quadratic_terms(scores, m) == pytest.approx(expected, rel=1e-6)


@given(score_lists(), RATIOS, VARIANCE)
def test_a_prior_of_sets_counts_no_more_than_one_of_numbers(scores, ratio, variance):
    """C(n, m) grows with m up to n/2, so what it takes away grows too."""
    options = {"malicious_ratio": float(ratio), "variance": variance}
    sets, numbers = (fedra.estimate_num_malicious(scores, prior=prior, **options) for prior in ("set", "number"))
    assert sets <= numbers


def test_a_prior_of_sets_counts_far_fewer_in_gaussian_scores_and_still_all_far_ones():
    rng = np.random.default_rng(0)
    counts = {"number": [], "set": []}
    for _ in range(40):
        scores = 10 + rng.normal(0, 1, 50)
        for prior, found in counts.items():
            found.append(fedra.estimate_num_malicious(scores, variance="pooled", prior=prior))
        scores[:5] += 10
        assert fedra.estimate_num_malicious(scores, variance="pooled", prior="set") == 5
    assert np.mean(counts["set"]) < np.mean(counts["number"]) / 3


@given(score_lists(), VARIANCE, st.sampled_from([2.0**-40, 2.0**60, 2.0**-500, 2.0**500]))
def test_rescaling_all_scores_changes_nothing(scores, variance, factor):
    assert fedra.estimate_num_malicious(scores * factor, variance=variance) == fedra.estimate_num_malicious(
        scores, variance=variance
    )


@given(score_lists(), VARIANCE, SEEDS)
def test_the_order_of_scores_does_not_matter(scores, variance, seed):
    shuffled = np.random.default_rng(seed).permutation(scores)
    assert fedra.estimate_num_malicious(shuffled, variance=variance) == fedra.estimate_num_malicious(
        scores, variance=variance
    )


@pytest.mark.parametrize("clients", [10, 50])
@pytest.mark.parametrize("num_clients", [None, 100, 3025])
def test_the_prior_is_the_reference_up_to_a_constant(clients, num_clients):
    found = mcne.log_prior(clients, 0.1, num_clients)
    expected = np.array([log_prior(clients, m, "0.1", num_clients) for m in range(len(found))])
    assert len(found) == (clients - 3) // 2 + 1
    np.testing.assert_array_equal(np.isneginf(found), np.isneginf(expected))
    possible = np.isfinite(expected)
    np.testing.assert_allclose((found - found[0])[possible], (expected - expected[0])[possible], rtol=1e-8, atol=1e-8)


def test_the_reference_priors_are_distributions():
    assert sum(prior_mass(50, m, "0.1") for m in range(51)) == pytest.approx(1)
    assert sum(prior_mass(50, m, "0.1", 3025) for m in range(51)) == pytest.approx(1)


def test_the_papers_tail_probability():
    """p(m > 15) for n = 50, N = 3025, M = 302 is the paper's "1.54^-5", computed 1.38e-5."""
    assert sum(prior_mass(50, m, "0.1", 3025) for m in range(16, 51)) == pytest.approx(1.38e-5, rel=0.01)


def test_an_unknown_federation_is_the_limit_of_large_ones():
    unknown = mcne.log_prior(30, 0.1, None)
    large = mcne.log_prior(30, 0.1, 10**9)
    np.testing.assert_allclose(unknown - unknown[0], large - large[0], rtol=1e-4)


@pytest.mark.parametrize("variance", ["separate", "pooled", "pooled-root"])
@pytest.mark.parametrize(
    ("clients", "ratio", "num_clients", "mode"),
    [(50, 0.1, 3025, 5), (50, 0.1, None, 5), (20, 0.0, None, 0), (9, 0.3, 9, 2)],
)
def test_equal_scores_give_the_mode_of_the_prior(variance, clients, ratio, num_clients, mode):
    for value in (0.0, 0.1, 1e-310, 1e300):
        scores = np.full(clients, value)
        found = fedra.estimate_num_malicious(scores, malicious_ratio=ratio, num_clients=num_clients, variance=variance)
        assert found == mode


def test_the_floor_defuses_ties_among_colluders():
    scores = np.concatenate([np.linspace(1.0, 2.0, 45), np.full(5, 9.0)])
    assert fedra.estimate_num_malicious(scores) == 5


def test_pooled_takes_the_smallest_exact_split():
    assert fedra.estimate_num_malicious([1.0] * 9 + [4.0] * 3, variance="pooled") == 3


def test_roots_are_taken_of_no_negative_score():
    assert fedra.estimate_num_malicious([-1.0] + [1.0] * 8, variance="pooled") == 0
    with pytest.raises(ValueError, match=r"a score is -1.0; variance='pooled-root' takes scores of at least 0"):
        fedra.estimate_num_malicious([-1.0] + [1.0] * 8, variance="pooled-root")


def test_pooled_never_returns_an_impossible_number():
    """Two exact groups would split at 2, but at most one client is malicious, or none."""
    scores = [1.0] * 6 + [2.0] * 2
    assert fedra.estimate_num_malicious(scores, malicious_ratio=0.0, variance="pooled") == 0
    assert fedra.estimate_num_malicious(scores, malicious_ratio=0.05, num_clients=20, variance="pooled") <= 1


def test_more_malicious_than_any_m_gives_the_largest_m():
    """Everybody was sampled and 24 of 50 are malicious, one more than n > 2m + 2 allows."""
    found = fedra.estimate_num_malicious(np.arange(50.0), malicious_ratio=0.49, num_clients=50)
    assert found == 23


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e300])
def test_scores_at_the_ends_of_the_float_range(scale):
    scores = np.array([10.0, 11.0, 12.0, 10.0, 11.0, 12.0, 900.0]) * scale
    assert fedra.estimate_num_malicious(scores) in range(3)
    close = np.array([1000.0, 1001.0, 1000.0, 1002.0, 1001.0, 1000.0, 1001.0]) * scale
    assert fedra.estimate_num_malicious(close) in range(3)


def test_the_number_of_malicious_clients_in_the_federation_is_exact():
    assert mcne.malicious_total(3025, 0.1) == 302
    assert mcne.malicious_total(30, 0.1) == 3
    assert mcne.malicious_total(10**15, 0.1) == 10**14


@pytest.mark.parametrize("scores", [[], [1.0, 2.0], [1.0, 2.0, math.nan], [1.0, 2.0, math.inf], [[1.0, 2.0, 3.0]]])
def test_scores_that_cannot_be_estimated_from_are_refused(scores):
    with pytest.raises(ValueError, match="give at least 3 finite numbers"):
        fedra.estimate_num_malicious(scores)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"malicious_ratio": 0.5}, ValueError, "malicious_ratio=0.5; give a number from 0 up to, not including, 0.5"),
        ({"malicious_ratio": -0.1}, ValueError, "malicious_ratio=-0.1"),
        ({"malicious_ratio": math.nan}, ValueError, "malicious_ratio=nan"),
        ({"malicious_ratio": "0.1"}, TypeError, "malicious_ratio='0.1'"),
        ({"malicious_ratio": True}, TypeError, "malicious_ratio=True"),
        ({"num_clients": 4}, ValueError, "num_clients=4 is less than the 5 clients"),
        ({"num_clients": 1e3}, TypeError, "num_clients=1000.0"),
        (
            {"variance": "pool"},
            ValueError,
            "variance='pool'; did you mean 'pooled'. valid: separate, pooled, pooled-root",
        ),
        ({"prior": "who"}, ValueError, "prior='who'; valid: number, set"),
    ],
)
def test_mistakes_name_the_value(parameters, error, message):
    with pytest.raises(error, match=message):
        fedra.estimate_num_malicious([1.0, 2.0, 3.0, 4.0, 5.0], **parameters)
