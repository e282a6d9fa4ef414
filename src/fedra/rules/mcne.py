"""MCNE, the malicious client number estimator: how many of a round's scores are those of malicious clients."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from fedra import checks
from fedra.cohort import Floats
from fedra.rules.malicious import exact

Variance = Literal["separate", "pooled", "pooled-root"]
VARIANCES: tuple[Variance, ...] = ("separate", "pooled", "pooled-root")
Prior = Literal["number", "set"]
PRIORS: tuple[Prior, ...] = ("number", "set")

# Colluders send identical updates, their scores tie, and a variance of 0 would make any such group infinitely likely.
# Relative to the spread of all scores, so that the estimate does not change with their unit.
_FLOOR = 1e-6


def malicious_total(num_clients: int, malicious_ratio: float) -> int:
    """Return ``M~ = floor(N * ratio)``, of the exact product."""
    return math.floor(num_clients * exact(malicious_ratio))


def estimate_num_malicious(
    scores: npt.ArrayLike,
    *,
    malicious_ratio: float = 0.1,
    num_clients: int | None = None,
    variance: Variance = "separate",
    prior: Prior = "number",
) -> int:
    r"""Return the m that makes the scores most likely: two Gaussians, the larger scores being the malicious ones.

    .. math:: L(m) = \ln p(m) - (n-m)\ln\sigma_b - m\ln\sigma_m
              - \sum_{i \le n-m} \frac{(s_i-\mu_b)^2}{2\sigma_b^2} - \sum_{i > n-m} \frac{(s_i-\mu_m)^2}{2\sigma_m^2}

    over m = 0 .. floor((n-3)/2). The prior p(m) is hypergeometric for `num_clients` N with M~ = floor(N * ratio)
    malicious, and Binomial(n, ratio), its limit, where N is not known.

    Args:
        scores: the round's n quantity-robust scores, n >= 3, all finite.
        malicious_ratio: the share of malicious clients in the federation, in [0, 0.5).
        num_clients: N, the size of the federation.
        variance: "separate" variances for the two groups, as in the paper; one "pooled" variance; or "pooled-root", one
            variance of the scores' square roots, which are less skewed (none of them may be negative).
        prior: "number" asks how probable it is that m clients are malicious, p(m), as in the paper; "set", that it is
            just these m of the n, p(m) / C(n, m): fewer are counted, above all where nobody is malicious.
    """
    values = np.sort(np.asarray(scores, dtype=np.float64))
    if values.ndim != 1 or len(values) < 3 or not np.isfinite(values).all():
        raise ValueError(f"scores of shape {values.shape}; give at least 3 finite numbers")
    checks.choice("variance", variance, VARIANCES)
    checks.choice("prior", prior, PRIORS)
    if variance == "pooled-root":
        if values[0] < 0:
            raise ValueError(f"a score is {values[0]}; variance='pooled-root' takes scores of at least 0")
        values = np.sqrt(values)
    count = len(values)
    numbers = log_prior(count, malicious_ratio, num_clients)
    if np.isneginf(numbers).all():
        return len(numbers) - 1  # more are malicious than any m that a rule can stand: the nearest such m
    # In units of the largest score: squares of any finite scores stay finite.
    largest = np.abs(values).max()
    spread = float(np.std(values / largest, ddof=1)) if largest > 0 else 0.0
    if spread == 0:
        return int(np.argmax(numbers))  # nothing tells clients apart: the likeliest number
    values = values / largest / spread
    logarithms = numbers
    if prior == "set":
        logarithms = numbers - np.array([_log_choose(count, m) for m in range(len(numbers))])
    if variance != "separate":
        return _pooled(values, logarithms)
    likelihoods = [logarithms[m] + _separate(values, m) for m in range(len(logarithms))]
    return int(np.argmax(likelihoods))


def log_prior(num_sampled: int, malicious_ratio: float, num_clients: int | None) -> Floats:
    """Return ln p(m) up to a constant for m = 0 .. floor((n-3)/2); -inf where that many cannot be."""
    ratio = checks.ratio(malicious_ratio)
    counts = range((num_sampled - 3) // 2 + 1)
    if num_clients is None:
        return np.array([_log_binomial(num_sampled, m, ratio) for m in counts])
    total = checks.whole("num_clients", num_clients, 1)
    if total < num_sampled:
        raise ValueError(f"num_clients={total} is less than the {num_sampled} clients of the round")
    bad = malicious_total(total, ratio)
    return np.array([_log_choose(bad, m) + _log_choose(total - bad, num_sampled - m) for m in counts])


def _log_binomial(count: int, m: int, ratio: float) -> float:
    if ratio == 0:
        return 0.0 if m == 0 else -math.inf
    return _log_choose(count, m) + m * math.log(ratio) + (count - m) * math.log1p(-ratio)


def _log_choose(total: int, part: int) -> float:
    if not 0 <= part <= total:
        return -math.inf
    return math.lgamma(total + 1) - math.lgamma(part + 1) - math.lgamma(total - part + 1)


def _squares(group: Floats) -> float:
    """Return the sum of squared deviations; exactly 0 for values that are all the same."""
    if len(group) < 2 or group[0] == group[-1]:
        return 0.0
    return float(np.square(group - group.mean()).sum())


def _separate(values: Floats, m: int) -> float:
    """Return the likelihood's Gaussian part, sigma floored, for scores in units of their standard deviation."""
    count = len(values)
    benign, malicious = values[: count - m], values[count - m :]
    benign_squares = _squares(benign)
    benign_sigma = max(math.sqrt(benign_squares / (count - m - 1)), _FLOOR)
    result = -(count - m) * math.log(benign_sigma) - benign_squares / (2 * benign_sigma**2)
    if m == 1:
        return result - math.log(benign_sigma)
    if m > 1:
        malicious_squares = _squares(malicious)
        sigma = max(math.sqrt(malicious_squares / (m - 1)), _FLOOR)
        result -= m * math.log(sigma) + malicious_squares / (2 * sigma**2)
    return result


def _pooled(values: Floats, prior: Floats) -> int:
    """Return the most likely m with one variance for both groups; two exact groups: the smallest such m."""
    count = len(values)
    likelihoods = []
    for m in range(len(prior)):
        if np.isneginf(prior[m]):
            likelihoods.append(-math.inf)
            continue
        squares = _squares(values[: count - m]) + _squares(values[count - m :])
        if squares == 0:
            return m
        sigma = math.sqrt(squares / (count - 1 if m == 0 else count - 2))
        likelihoods.append(prior[m] - count * math.log(sigma))
    return int(np.argmax(likelihoods))
