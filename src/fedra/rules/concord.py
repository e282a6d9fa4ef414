"""Concord: the step that no few clients can turn, of updates that prove what they claim."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from fedra import checks
from fedra.cohort import Cohort, Flags, Floats
from fedra.kernels import pairwise_squared_l2
from fedra.rules.agreement import supported_weights
from fedra.rules.base import Decision, Family
from fedra.rules.evidence import Evidence, excess_reasons, flattened, most_liars, weigh_evidence
from fedra.rules.malicious import AssumesMalicious

# The variance between clients that is allowed for beside none, in units of that of an update of median quantity.
DIFFERENCE = 0.3
# A claim of more than so many times what the update proves is not forgiven: no difference between clients explains it.
FORGIVEN = 1e7
# A step shorter than this share of the mean that it was made of says that clients do not agree on a direction.
LEAST_AGREEMENT = 0.1
# Where the second weights shorten the step to less than this share, they are left away.
LEAST_FORGIVING = 0.5
# How far every mean without k clients must agree with the step, as a share of what the step agrees with itself.
LEAST_SUPPORT = 0.15
# With fewer clients than this, two who know the rule could leave every round without a step.
FEW_CLIENTS = 10


@dataclass(frozen=True, eq=False, kw_only=True)
class _Step:
    """A step as weights of the clients; `agreement` is its length as a share of that of the shorter mean of all."""

    weights: Floats
    kept: Flags
    excess: Floats
    length: float
    agreement: float


@dataclass(frozen=True, kw_only=True)
class Concord(AssumesMalicious):
    r"""The step that every mean without k clients supports, whoever they are; none where clients do not agree.

    Clients are weighed by what their updates prove (`fedra.rules.evidence`, the weights of FedRA's default), twice:
    by their claims, and as if clients differed by more than the noise of their samples (`flattened`). Whoever lies
    near enough to the centre passes that. Therefore

    .. math:: g_j = \operatorname{argmin} \{\|g\|_2 : g \in \operatorname{conv}\{\mu_S^w : |S| \le j\}\}, \quad
              \mu_S^w = \frac{\sum_{i \notin S} w_i g^i}{\sum_{i \notin S} w_i}

    over both weights w, for the first :math:`j = 0, 1, 2, 4, \dots, k` with
    :math:`\langle g_j, \mu_S^w \rangle \ge \theta \|g_j\|^2` for every S of at most k clients, where k is the number
    of liars that a round may well hold (`most_liars`: 10 of 50 at a ratio of 0.1). :math:`g_k` has this with 1:
    whichever k clients lie, the step does not point against the mean of the others. Where :math:`\|g_j\|` is less
    than a tenth of the length of the mean of all, clients have no direction in common, and there is no step.
    Where the second weights shorten the step by more than half, somebody pulls them against the first, and they are
    left away. In rounds of few clients j is 0, and there are no second weights: the step is the mean by evidence, as
    FedRA's.

    Of two means that lie about the truth, the shorter is the one with less noise: by claims where clients hold alike
    data, flattened where large clients differ.

    Attributes:
        malicious_ratio: the share of malicious clients in the federation; m~ = ceil(n * ratio).
        num_malicious: m~ itself, instead.
        difference: rho of the second weights, the variance between clients in units of that of an update of median
            quantity; 0 for the first weights only.
        least_agreement: the share of the mean's length below which there is no step; 0 takes every step.
        least_forgiving: where the second weights shorten the step to less than this share of what it is by the first
            alone, the first alone decide; 0 keeps both.
        least_support: theta; 1 leaves out k clients wherever that shortens the step.
        few_clients: in a round of fewer, j is 0: what k of so few would be left out of is no mean of the others. In
            one of fewer than twice as many there are no second weights, of which few who claim much would hold most.
    """

    name: ClassVar[str] = "concord"
    family: ClassVar[Family] = Family.ROBUST
    condition: ClassVar[str] = "n > 2m+2"
    scored: ClassVar[bool] = True

    difference: float = field(default=DIFFERENCE, metadata={"later": 0.0})
    least_agreement: float = LEAST_AGREEMENT
    least_forgiving: float = field(default=LEAST_FORGIVING, metadata={"later": 0.0})
    least_support: float = LEAST_SUPPORT
    few_clients: int = FEW_CLIENTS

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("difference", self.difference, least=0)
        checks.number("least_agreement", self.least_agreement, least=0, most=1)
        checks.number("least_forgiving", self.least_forgiving, least=0, most=1)
        checks.number("least_support", self.least_support, least=0, most=1)
        checks.whole("few_clients", self.few_clients, 0)

    def most_malicious(self, num_sampled: int) -> int:
        """Return the largest m~ with n > 2m~+2."""
        return (num_sampled - 3) // 2

    def decide(self, cohort: Cohort) -> Decision:
        """Weigh by evidence, and find the step that all means without k clients agree with."""
        liars = most_liars(len(cohort), self.malicious_ratio, self.num_malicious)
        left_out = liars if len(cohort) >= self.few_clients else 0
        rows, quantities = cohort.rows, cohort.quantities
        origin = np.broadcast_to(rows.dtype.type(0), rows.dimension)
        squared = pairwise_squared_l2(rows.with_row(origin), cohort.threads)
        first = weigh_evidence(squared[:-1, :-1], quantities, liars)
        one = self._step(quantities, squared, [first], left_out)
        if not (liars and self.difference > 0 and len(cohort) >= 2 * self.few_clients):
            return self._decision(quantities, one)
        flat = weigh_evidence(squared[:-1, :-1], flattened(quantities, self.difference), liars)
        both = self._step(quantities, squared, [first, flat.without(first.excess > FORGIVEN)], left_out)
        # Whom only the second weights forgive may pull them apart from the first: then the first ones decide.
        parted = both.length < self.least_forgiving * one.length and not one.agreement < self.least_agreement
        return self._decision(quantities, one if parted else both)

    def _step(self, quantities: Floats, squared: Floats, evidence: Sequence[Evidence], left_out: int) -> _Step:
        """Return the step that all means without `left_out` clients agree with, by each of these weights."""
        believed = np.array([each.counted / each.counted.max() for each in evidence if each.counted.any()])
        counted = np.flatnonzero(believed.any(axis=0))
        believed = believed[:, counted]
        lengths = squared[counted, -1]
        products = (lengths[:, np.newaxis] + lengths - squared[np.ix_(counted, counted)]) / 2
        agreed = supported_weights(products, believed, min(left_out, len(counted) - 1), self.least_support)
        weights = np.zeros(len(quantities))
        weights[counted] = agreed
        wholes = believed / believed.sum(axis=1, keepdims=True)
        length = math.sqrt(max(float(agreed @ products @ agreed), 0.0))
        shortest = math.sqrt(max(min(float(whole @ products @ whole) for whole in wholes), 0.0))
        with np.errstate(invalid="ignore"):
            agreement = float(np.float64(length) / shortest) if shortest > 0 else 1.0
        return _Step(
            weights=weights,
            kept=np.any([each.kept for each in evidence], axis=0),
            excess=np.min([each.excess for each in evidence], axis=0),
            length=length,
            agreement=agreement,
        )

    def _decision(self, quantities: Floats, step: _Step) -> Decision:
        """Return a step with what is said of its clients, or why there is none."""
        scores = np.minimum(step.excess, np.finfo(np.float64).max)
        with np.errstate(divide="ignore", over="ignore"):
            implied = quantities / step.excess
        note = ""
        # Lengths that overflow are not numbers, and say nothing.
        if step.agreement < self.least_agreement:
            note = (
                "clients do not agree on a direction: the step that no few of them could turn is "
                f"{step.agreement:.2g} of their mean, less than {self.least_agreement:g}"
            )
        return Decision(
            weights=step.weights,
            kept=step.kept,
            scores=scores,
            num_malicious=int((~step.kept).sum()),
            reasons=excess_reasons(quantities, implied),
            implied_quantities=implied,
            cut=float(scores[step.kept].max()),
            note=note,
        )
