"""The malicious client number estimator: the likeliest split of the sorted scores."""

from fractions import Fraction
from math import comb, exp, floor, inf, lgamma, log, sqrt


def _log_choose(n, k):
    if k < 0 or k > n:
        return -inf
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) if n > 1000 else log(comb(n, k))


def log_prior(n, m, ratio, num_clients=None):
    """``ln C(M, m) + ln C(N - M, n - m)``, or the binomial's logarithm for an unknown N; `ratio` is a text."""
    exact = Fraction(ratio)
    if num_clients is not None:
        total = floor(num_clients * exact)
        return _log_choose(total, m) + _log_choose(num_clients - total, n - m)
    if exact == 0:
        return 0.0 if m == 0 else -inf
    p = float(exact)
    return _log_choose(n, m) + m * log(p) + (n - m) * log(1 - p)


def _mean(values):
    return sum(values) / len(values)


def _squares(values):
    centre = _mean(values)
    return sum((value - centre) ** 2 for value in values)


def _deviation(values):
    return sqrt(_squares(values) / (len(values) - 1))


def quadratic_terms(scores, m):
    """``sum (s - mu)^2 / (2 sigma^2)`` of both groups with their own sigma (ddof = 1) and no floor."""
    ordered = sorted(float(score) for score in scores)
    benign, malicious = ordered[: len(ordered) - m], ordered[len(ordered) - m :]
    total = _squares(benign) / (2 * _deviation(benign) ** 2)
    if m > 1:
        total += _squares(malicious) / (2 * _deviation(malicious) ** 2)
    return total


def _separate(benign, malicious, floor_sigma):
    m = len(malicious)
    sigma = max(_deviation(benign), floor_sigma)
    likelihood = -len(benign) * log(sigma) - _squares(benign) / (2 * sigma**2)
    if m == 1:
        likelihood -= log(sigma)
    if m > 1:
        sigma = max(_deviation(malicious), floor_sigma)
        likelihood -= m * log(sigma) + _squares(malicious) / (2 * sigma**2)
    return likelihood


def _pooled(benign, malicious):
    n, m = len(benign) + len(malicious), len(malicious)
    squares = _squares(benign) + (_squares(malicious) if m else 0.0)
    variance = squares / (n - 1 if m == 0 else n - 2)
    return inf if variance == 0 else -n * log(sqrt(variance))


def log_likelihoods(scores, *, ratio="0.1", num_clients=None, variance="separate", prior="number"):
    """``L(m)`` for m = 0 .. floor((n - 3)/2)."""
    ordered = sorted(float(score) for score in scores)
    if variance == "pooled-root":
        ordered = [sqrt(score) for score in ordered]
    n = len(ordered)
    floor_sigma = 1e-6 * _deviation(ordered)
    values = []
    for m in range((n - 3) // 2 + 1):
        log_probability = log_prior(n, m, ratio, num_clients)
        if prior == "set":
            log_probability -= log(comb(n, m))
        benign, malicious = ordered[: n - m], ordered[n - m :]
        fit = _separate(benign, malicious, floor_sigma) if variance == "separate" else _pooled(benign, malicious)
        values.append(-inf if log_probability == -inf else log_probability + fit)
    return values


def estimate_num_malicious(scores, *, ratio="0.1", num_clients=None, variance="separate", prior="number"):
    """The m of the largest ``L(m)``, the least of them; the prior's mode when all scores are the same."""
    n = len(scores)
    if len(set(map(float, scores))) == 1:
        values = [log_prior(n, m, ratio, num_clients) for m in range((n - 3) // 2 + 1)]
    else:
        values = log_likelihoods(scores, ratio=ratio, num_clients=num_clients, variance=variance, prior=prior)
    return values.index(max(values))


def prior_mass(n, m, ratio, num_clients=None):
    """The prior's probability of m, normalised."""
    if num_clients is None:
        return exp(log_prior(n, m, ratio))
    return exp(log_prior(n, m, ratio, num_clients) - _log_choose(num_clients, n))
