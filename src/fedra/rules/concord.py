"""Concord: the step that no few clients can turn, of updates that prove what they claim."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedra import checks
from fedra.cohort import Cohort, Floats
from fedra.kernels import pairwise_squared_l2
from fedra.rules.agreement import agreed_weights
from fedra.rules.base import Decision, Family
from fedra.rules.evidence import excess_reasons, most_liars, weigh_evidence
from fedra.rules.malicious import AssumesMalicious

# A step shorter than this share of the mean that it was made of says that clients do not agree on a direction.
LEAST_AGREEMENT = 0.1


@dataclass(frozen=True, kw_only=True)
class Concord(AssumesMalicious):
    r"""The shortest step in the hull of all means that leave out at most k clients; none where they do not agree.

    Clients are weighed by what their updates prove (`fedra.rules.evidence`, the weights of FedRA's default). Whoever
    lies near enough to the centre passes that. Therefore

    .. math:: g = \operatorname{argmin} \{\|g\|_2 : g \in \operatorname{conv}\{\mu_S : |S| \le k\}\}, \quad
              \mu_S = \frac{\sum_{i \notin S} w_i g^i}{\sum_{i \notin S} w_i}

    with k the number of liars that a round may well hold (`most_liars`: 9 of 50 at a ratio of 0.1). It has
    :math:`\langle g, \mu_S \rangle \ge \|g\|^2` for each such S: whichever k clients lie, the step does not point
    against the mean of the others. Where :math:`\|g\|` is less than a tenth of the length of the mean of all, clients
    have no direction in common, and there is no step.

    Attributes:
        malicious_ratio: the share of malicious clients in the federation; m~ = ceil(n * ratio).
        num_malicious: m~ itself, instead.
        least_agreement: the share of the mean's length below which there is no step; 0 takes every step.
    """

    name: ClassVar[str] = "concord"
    family: ClassVar[Family] = Family.ROBUST
    condition: ClassVar[str] = "n > 2m+2"
    scored: ClassVar[bool] = True

    least_agreement: float = LEAST_AGREEMENT

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("least_agreement", self.least_agreement, least=0, most=1)

    def most_malicious(self, num_sampled: int) -> int:
        """Return the largest m~ with n > 2m~+2."""
        return (num_sampled - 3) // 2

    def decide(self, cohort: Cohort) -> Decision:
        """Weigh by evidence, and find the step that all means without k clients agree with."""
        rows, quantities = cohort.rows, cohort.quantities
        origin = np.broadcast_to(rows.dtype.type(0), rows.dimension)
        squared = pairwise_squared_l2(rows.with_row(origin), cohort.threads)
        liars = most_liars(len(cohort), self.malicious_ratio, self.num_malicious)
        evidence = weigh_evidence(squared[:-1, :-1], quantities, liars)
        counted = np.flatnonzero(evidence.counted > 0)
        lengths = squared[counted, -1]
        products = (lengths[:, np.newaxis] + lengths - squared[np.ix_(counted, counted)]) / 2
        believed = evidence.counted[counted] / evidence.counted.max()
        agreed = agreed_weights(products, believed, min(liars, len(counted) - 1))
        weights = np.zeros(len(cohort))
        weights[counted] = agreed
        whole = believed / believed.sum()
        scores = np.minimum(evidence.excess, np.finfo(np.float64).max)
        return Decision(
            weights=weights,
            kept=evidence.kept,
            scores=scores,
            num_malicious=int((~evidence.kept).sum()),
            reasons=excess_reasons(quantities, evidence.implied),
            implied_quantities=evidence.implied,
            cut=float(scores[evidence.kept].max()),
            note=self._disagreement(agreed, whole, products),
        )

    def _disagreement(self, agreed: Floats, whole: Floats, products: Floats) -> str:
        """Return that clients do not agree, where they do not."""
        share = math.sqrt(max(float(agreed @ products @ agreed), 0.0))
        length = math.sqrt(max(float(whole @ products @ whole), 0.0))
        # Lengths that overflow are not numbers, and say nothing.
        if not share < self.least_agreement * length:
            return ""
        return (
            "clients do not agree on a direction: the step that no few of them could turn is "
            f"{share / length:.2g} of their mean, less than {self.least_agreement:g}"
        )
