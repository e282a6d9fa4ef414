"""Federated learning that stands up to clients who lie, about their update and about how much data they have."""

from fedra.alarms import WarningLimits
from fedra.cohort import Cohort, Verdict
from fedra.kernels import pairwise_l1, pairwise_squared_l2
from fedra.rules import (
    PREAGGREGATORS,
    RFA,
    RULES,
    Bulyan,
    CenteredClipping,
    Decision,
    Family,
    FedAvg,
    FedRA,
    Krum,
    Median,
    MultiKrum,
    NormBound,
    Preaggregator,
    Preceded,
    Rule,
    StatefulRule,
    TrimmedMean,
    Truncate,
    Uniform,
    estimate_num_malicious,
    make_preaggregator,
    make_rule,
    quantity_robust_scores,
)
from fedra.screening import Screened, screen

__version__ = "0.1.0"

__all__ = [
    "PREAGGREGATORS",
    "RFA",
    "RULES",
    "Bulyan",
    "CenteredClipping",
    "Cohort",
    "Decision",
    "Family",
    "FedAvg",
    "FedRA",
    "Krum",
    "Median",
    "MultiKrum",
    "NormBound",
    "Preaggregator",
    "Preceded",
    "Rule",
    "Screened",
    "StatefulRule",
    "TrimmedMean",
    "Truncate",
    "Uniform",
    "Verdict",
    "WarningLimits",
    "__version__",
    "estimate_num_malicious",
    "make_preaggregator",
    "make_rule",
    "pairwise_l1",
    "pairwise_squared_l2",
    "quantity_robust_scores",
    "screen",
]
