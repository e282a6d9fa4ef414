"""Slow and obvious float64 versions of every formula, to compare the package with."""

from tests.reference.clipping import centered_clipping
from tests.reference.coordinates import (
    meamed,
    mean_around_median,
    median,
    trimmed_mean,
    weighted_median,
    weighted_trimmed_mean,
)
from tests.reference.ctma import ctma
from tests.reference.distances import pairwise_l1, pairwise_squared_l2
from tests.reference.evidence import evidence
from tests.reference.fedra import fedra, quantity_robust_scores
from tests.reference.geometric import rfa
from tests.reference.huber import huber, huber_loss
from tests.reference.krum import bulyan, krum, krum_scores, multi_krum
from tests.reference.mcne import estimate_num_malicious, log_likelihoods, quadratic_terms
from tests.reference.means import fedavg, norm_bound, uniform
from tests.reference.spectral import caf, dnc
from tests.reference.truncate import largest_cap, truncate
from tests.reference.weights import believed

__all__ = [
    "believed",
    "bulyan",
    "caf",
    "centered_clipping",
    "ctma",
    "dnc",
    "estimate_num_malicious",
    "evidence",
    "fedavg",
    "fedra",
    "huber",
    "huber_loss",
    "krum",
    "krum_scores",
    "largest_cap",
    "log_likelihoods",
    "meamed",
    "mean_around_median",
    "median",
    "multi_krum",
    "norm_bound",
    "pairwise_l1",
    "pairwise_squared_l2",
    "quadratic_terms",
    "quantity_robust_scores",
    "rfa",
    "trimmed_mean",
    "truncate",
    "uniform",
    "weighted_median",
    "weighted_trimmed_mean",
]
