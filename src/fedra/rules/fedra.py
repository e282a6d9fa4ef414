"""FedRA: score update and claimed quantity together, estimate how many lie, drop those, weigh the rest by quantity."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from fedra import checks
from fedra.cohort import Cohort, Flags, Floats, implied_text, number_text, shares
from fedra.kernels import pairwise_l1, squared_l2_triangle
from fedra.rules.base import Decision, Family, ascending_order
from fedra.rules.evidence import excess_reasons, most_liars, weigh_evidence
from fedra.rules.implied import implied_quantities
from fedra.rules.krum import nearest_sums
from fedra.rules.malicious import AssumesMalicious
from fedra.rules.mcne import PRIORS, VARIANCES, Prior, Variance, estimate_num_malicious, malicious_total
from fedra.screening import screen

Setting = Literal["dynamic", "fixed"]
SETTINGS: tuple[Setting, ...] = ("dynamic", "fixed")
Estimator = Literal["evidence", "mcne"]
ESTIMATORS: tuple[Estimator, ...] = ("evidence", "mcne")

_MOST_ITERATIONS = 5
# How far apart a claim and the implied quantity must be before a reason mentions it.
_TELLING = 2.0


def quantity_robust_scores(
    updates: Any, quantities: Any, *, num_malicious: int, gamma: float = 0.1, threads: int | None = None
) -> Floats:
    r"""Return FedRA's score of each client; a larger score is more suspicious.

    .. math:: s(i) = (q^i)^\gamma \sum_{j: i \to j} Q(i, j), \quad
              Q(i, j) = \sqrt{\frac{q^i q^j}{q^i + q^j}}\,\|g^i - g^j\|_1

    over the n - m~ - 2 others of least Q. Unlike a rule, this raises ValueError for a client that is not usable.
    """
    assumed = checks.whole("num_malicious", num_malicious)
    checked_gamma(gamma)
    screened = screen(updates, quantities, threads=threads)
    for i, reason in enumerate(screened.reasons):
        if reason:
            raise ValueError(f"client {i} is not usable: {reason}; leave it out, or call a rule, which does that")
    if not len(screened) > 2 * assumed + 2:
        raise ValueError(
            f"scores need n > 2m+2 for m assumed malicious clients, but have n = {len(screened)} and m = {assumed}; "
            "give more clients, or lower num_malicious"
        )
    return _scores(pairwise_l1(screened.cohort.rows, threads), screened.cohort.quantities, assumed, gamma)


def checked_gamma(gamma: float) -> float:
    """Return gamma, or raise where it is not a number in [0, 0.5]."""
    wanted = "a number in [0, 0.5]: 0.1 in the paper's experiments, 0.5 in its theory"
    return checks.number("gamma", gamma, least=0, most=0.5, wanted=wanted)


def _scores(distances: Floats, quantities: Floats, assumed: int, gamma: float) -> Floats:
    inverse = 1 / quantities
    closeness = np.sqrt(1 / (inverse[:, np.newaxis] + inverse[np.newaxis, :]))
    with np.errstate(over="ignore"):
        scores = quantities**gamma * nearest_sums(closeness * distances, len(quantities) - assumed - 2)
    # Two claims near 1e308 can overflow; the largest float ranks them just as last.
    return np.minimum(scores, np.finfo(np.float64).max)


@dataclass(frozen=True, kw_only=True)
class FedRA(AssumesMalicious):
    r"""Update and claim judged together; those that do not fit left out, the rest averaged by quantity.

    By default a claim is compared with the quantity that the update proves (`fedra.rules.evidence`, ours). The paper's
    method (Yi et al., KDD 2023) is `FedRA.as_printed()`: clients of least quantity-robust score,

    .. math:: s(i) = (q^i)^\gamma \sum_{j: i \to j} \sqrt{\frac{q^i q^j}{q^i + q^j}}\,\|g^i - g^j\|_1, \quad
              g = \frac{\sum_{i \in C} q^i g^i}{\sum_{i \in C} q^i}

    over the n-m~-2 others of least Q. Its estimator of how many to drop, MCNE, can be misled by a few clients far away.

    Attributes:
        malicious_ratio: the share of malicious clients in the federation; m~ = ceil(n * M~ / N).
        num_malicious: m~ itself, instead.
        num_clients: N, the size of the federation; None where it is not known.
        gamma: the exponent of the scorer, in [0, 0.5].
        setting: "dynamic" finds out in each round whom to drop, "fixed" drops the m~+1 of largest score.
        estimator: what "dynamic" goes by: "evidence", the quantity that each update proves, or "mcne", an estimate of
            the number of malicious clients from the scores, as in the paper.
        variance: MCNE's variances: "separate" as in the paper, "pooled", or "pooled-root".
        prior: MCNE's prior: of the "number" of malicious clients, as in the paper, or of the "set" of them, which drops
            fewer honest clients and lets more malicious ones in.
        iterate: score again with MCNE's estimate until it no longer changes, five times at most.
        drop_ties: leave out clients whose score equals that of one left out, instead of keeping the first of them:
            colluders who send the same update and claim tie, and a cut among them lets one in.

    `gamma`, `variance`, `prior`, `iterate` and `drop_ties` are for the scores: "evidence" does not use them.
    """

    name: ClassVar[str] = "fedra"
    family: ClassVar[Family] = Family.ROBUST
    condition: ClassVar[str] = "n > 2m+2"
    scored: ClassVar[bool] = True
    needs_updates: ClassVar[bool] = False

    num_clients: int | None = None
    gamma: float = 0.1
    setting: Setting = "dynamic"
    estimator: Estimator = field(default="evidence", metadata={"later": "mcne"})
    variance: Variance = "pooled-root"
    prior: Prior = field(default="number", metadata={"later": "number"})
    iterate: bool = False
    drop_ties: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_gamma(self.gamma)
        if self.num_clients is not None:
            checks.whole("num_clients", self.num_clients, 1)
        checks.choice("setting", self.setting, SETTINGS)
        checks.choice("estimator", self.estimator, ESTIMATORS)
        checks.choice("variance", self.variance, VARIANCES)
        checks.choice("prior", self.prior, PRIORS)
        checks.switch("iterate", self.iterate)
        checks.switch("drop_ties", self.drop_ties)
        if self.iterate and (self.setting == "fixed" or self.estimator != "mcne"):
            raise ValueError(
                f"iterate=True repeats MCNE's estimate of how many are malicious, which setting={self.setting!r} with "
                f"estimator={self.estimator!r} does not make; set estimator='mcne', or leave iterate out"
            )

    @classmethod
    def as_printed(cls, **parameters: Any) -> FedRA:
        """Return the rule as the paper has it, with other parameters as given."""
        printed = {"estimator": "mcne", "variance": "separate", "prior": "number", "drop_ties": False}
        return cls(**{**printed, **parameters})

    def for_federation(
        self, *, num_clients: int | None = None, malicious_ratio: float | None = None, setting: str | None = None
    ) -> Self:
        """Take N, the ratio and the setting of the federation, as far as they are known.

        Where the ratio is the rule's own assumption and comes to less than one client of the N, N stays unknown: M~ = 0
        would keep everybody, which few clients cannot afford, and the binomial prior allows for one.
        """
        rule = super().for_federation(malicious_ratio=malicious_ratio)
        if setting is not None:
            rule = dataclasses.replace(rule, setting=checks.choice("setting", setting, SETTINGS))
        if num_clients is None or self.num_clients is not None:
            return rule
        if malicious_ratio is None and malicious_total(num_clients, self.malicious_ratio) == 0:
            return rule
        return dataclasses.replace(rule, num_clients=num_clients)

    def most_malicious(self, num_sampled: int) -> int:
        """Return the largest m~ with n > 2m~+2."""
        return (num_sampled - 3) // 2

    def expected_malicious(self, num_sampled: int) -> int:
        """Return ``m~ = ceil(n * M~ / N)``, where N is known."""
        if self.num_malicious is not None or self.num_clients is None:
            return super().expected_malicious(num_sampled)
        bad = malicious_total(self.num_clients, self.malicious_ratio)
        return -(-num_sampled * bad // self.num_clients)

    def refusal(self, num_sampled: int) -> str:
        """Refuse rounds larger than the federation, and those with n <= 2m~+2."""
        if self.num_clients is not None and num_sampled > self.num_clients:
            return f"{self.name} has num_clients = {self.num_clients}, but the round has n = {num_sampled} clients"
        return super().refusal(num_sampled)

    def decide(self, cohort: Cohort) -> Decision:
        """Leave out those whose claim and update do not fit, and weigh the rest."""
        if self.setting == "dynamic" and self.estimator == "evidence":
            return self._by_evidence(cohort)
        return self._by_scores(cohort)

    def _by_evidence(self, cohort: Cohort) -> Decision:
        quantities = cohort.quantities
        liars = most_liars(len(cohort), self.malicious_ratio, self.num_malicious)
        evidence = weigh_evidence(squared_l2_triangle(cohort.rows, cohort.threads), quantities, liars)
        kept, implied = evidence.kept, evidence.implied
        scores = np.minimum(evidence.excess, np.finfo(np.float64).max)
        return Decision(
            weights=shares(evidence.counted),
            kept=kept,
            scores=scores,
            num_malicious=int((~kept).sum()),
            reasons=excess_reasons(quantities, implied),
            implied_quantities=implied,
            cut=float(scores[kept].max()),
        )

    def _by_scores(self, cohort: Cohort) -> Decision:
        """Score, estimate, drop, and weigh the rest by claim."""
        distances = pairwise_l1(cohort.rows, cohort.threads)
        scores, malicious, dropped = self._select(distances, cohort.quantities)
        order = ascending_order(scores)
        kept = np.zeros(len(cohort), dtype=bool)
        kept[order[: len(cohort) - dropped]] = True
        if self.drop_ties and dropped and scores[order[-dropped]] > scores[order[0]]:
            kept &= scores < scores[order[-dropped]]
        weights = np.zeros(len(cohort))
        weights[kept] = shares(cohort.quantities[kept])
        cut = float(scores[kept].max())
        implied = implied_quantities(distances, cohort.quantities, kept)
        return Decision(
            weights=weights,
            kept=kept,
            scores=scores,
            num_malicious=malicious,
            reasons=_reasons(scores, cut, cohort.quantities, implied, kept),
            implied_quantities=implied,
            cut=cut,
        )

    def _select(self, distances: Floats, quantities: Floats) -> tuple[Floats, int, int]:
        """Return the scores, m~, and how many clients to drop."""
        assumed = self.assumed_malicious(len(quantities))
        scores = _scores(distances, quantities, assumed, self.gamma)
        if self.setting == "fixed":
            return scores, assumed, assumed + 1
        estimate = self._estimate(scores)
        for _ in range(_MOST_ITERATIONS if self.iterate else 0):
            if estimate == assumed:
                break
            assumed = estimate
            scores = _scores(distances, quantities, assumed, self.gamma)
            estimate = self._estimate(scores)
        return scores, estimate, estimate

    def _estimate(self, scores: npt.NDArray[np.float64]) -> int:
        return estimate_num_malicious(
            scores,
            malicious_ratio=self.malicious_ratio,
            num_clients=self.num_clients,
            variance=self.variance,
            prior=self.prior,
        )


def _reasons(scores: Floats, cut: float, quantities: Floats, implied: Floats | None, kept: Flags) -> list[str]:
    reasons = []
    for i, score in enumerate(scores):
        reason = "" if kept[i] else f"score {number_text(score)} is past the cut {number_text(cut)}"
        if reason and implied is not None and math.isfinite(implied[i]) and quantities[i] > _TELLING * implied[i]:
            reason += f"; claims {number_text(quantities[i])} samples and behaves like {implied_text(implied[i])}"
        reasons.append(reason)
    return reasons
