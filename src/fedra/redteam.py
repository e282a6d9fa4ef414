"""The worst that malicious clients who know everything can do to a rule: a search that calls the rule itself.

`worst_case` takes a round's honest updates and answers what colluders would send, and what came of it. It is a search,
not a proof: what it finds can be done, and what it does not find may still be possible.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fedra import checks
from fedra.cohort import Flags, Floats, RuleState, Verdict, shares
from fedra.kernels import column_moments, pairwise_squared_l2, weighted_sum
from fedra.rules.base import Rule
from fedra.seeding import generator

Vectors = npt.NDArray[Any]
Progress = Callable[[int, int], None]

# Distance counts this much beside direction: it decides between results that are turned alike.
_DISTANCE_SHARE = 0.1
_LARGEST_CLAIM = 1e9
# How far out decoys lie, in deviations.
_DECOYS_FROM, _DECOYS_TO = 50.0, 100.0
# A part of the budget is for looking everywhere, the rest for what looked best.
_COARSE_SHARE = 0.6
_MOST_REFINED = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class Judgement:
    """What a rule made of a round, as its attackers see it.

    Attributes:
        update: the aggregate; None where the round has none.
        kept: (m,) which of the attackers are part of it.
        weights: (m,) their weights; None for rules without weights per client.
    """

    update: Vectors | None
    kept: Flags
    weights: Floats | None

    @classmethod
    def of(cls, verdict: Verdict, malicious: npt.NDArray[Any]) -> Self:
        """Return the part of a verdict at the attackers' positions."""
        weights = None if verdict.weights is None else verdict.weights[malicious]
        return cls(update=verdict.update, kept=verdict.kept[malicious], weights=weights)


# What a rule makes of (m, d) updates and (m,) claims of the attackers beside the round's honest clients.
Judge = Callable[[Vectors, Floats], Judgement]


class Honest:
    """Mean, deviation and distances of honest updates, computed once, and how far an attacker may go among them."""

    def __init__(self, updates: Any) -> None:
        self.rows: list[Vectors] = list(updates)
        self.mean, self.deviation = column_moments(self.rows, threads=1)

    @cached_property
    def squared_distances(self) -> Floats:
        """(h, h) between the updates."""
        return pairwise_squared_l2(self.rows)

    @cached_property
    def squared_to_mean(self) -> Floats:
        """(h,) to their mean."""
        return np.array([_square(row - self.mean) for row in self.rows])

    @cached_property
    def spread(self) -> float:
        """The root mean square distance to the mean; the size of the mean where all are the same."""
        spread = math.sqrt(float(self.squared_to_mean.mean()))
        return spread if spread > 0 else float(np.linalg.norm(self.mean)) or 1.0

    @cached_property
    def _components(self) -> Floats:
        """(h, h) coefficients of the principal directions in terms of the updates, the largest variance first."""
        centring = np.eye(len(self.rows)) - 1 / len(self.rows)
        _, vectors = np.linalg.eigh(-centring @ self.squared_distances @ centring / 2)
        return vectors[:, ::-1].T

    @property
    def most_deviant(self) -> int:
        """The update furthest from the mean along the top direction of variance."""
        return int(np.argmax(np.abs(self._components[0])))

    def principal(self, number: int) -> Floats:
        """Return a principal direction, not normalised; its sign is any."""
        coefficients = self._components[number]
        direction = np.zeros_like(self.mean)
        for coefficient, row in zip(coefficients, self.rows, strict=True):
            direction += coefficient * (row - self.mean)
        return direction

    def largest_within_maximum(self, towards: Floats) -> float:
        r"""Return the largest g with :math:`\max_i \|\mu + g p - x_i\| \le \max_{ij} \|x_i - x_j\|`."""
        square = _square(towards)
        if square == 0:
            return 0.0
        inner = np.array([float(towards @ (self.mean - row)) for row in self.rows])
        room = np.maximum(self.squared_distances.max() - self.squared_to_mean, 0)
        # The upper root of g^2 |p|^2 + 2 g p(mu - x_i) + |mu - x_i|^2 = max distance^2, for each i.
        return max(float((np.sqrt(inner**2 + square * room) - inner).min()) / square, 0.0)

    def largest_within_sum(self, towards: Floats) -> float:
        r"""Return the largest g with :math:`\sum_i \|\mu + g p - x_i\|^2 \le \max_i \sum_j \|x_i - x_j\|^2`."""
        square = len(self.rows) * _square(towards)
        room = float(self.squared_distances.sum(axis=1).max() - self.squared_to_mean.sum())
        # Around the mean the terms linear in g add up to nothing.
        return math.sqrt(max(room, 0) / square) if square > 0 else 0.0


def _square(vector: Vectors) -> float:
    return float(vector @ vector)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """What colluders might do, in numbers that mean the same in another round.

    Attributes:
        base: 0 starts from the honest mean by quantity, 1 from the plain mean.
        direction: number in `DIRECTIONS`.
        other: number of a second direction.
        blend: its share, 0 for none.
        length: how far, in units of the honest spread.
        jitter: how far colluders differ from one another, in the same units.
        claim: what each claims.
        decoys: how many of them lie far out instead.
        decoy_claim: what those claim.
    """

    base: int = 1
    direction: int = 0
    other: int = 0
    blend: float = 0.0
    length: float = 1.0
    jitter: float = 0.0
    claim: float = 1.0
    decoys: int = 0
    decoy_claim: float = 1.0

    def as_numbers(self) -> Floats:
        """Return it as an array, to be kept between rounds."""
        return np.array([float(value) for value in dataclasses.astuple(self)])

    @classmethod
    def from_numbers(cls, numbers: Floats) -> Self:
        """Return what `as_numbers` was made of; numbers out of range, from a file, are put into it."""
        base, direction, other, blend, length, jitter, claim, decoys, decoy_claim = map(float, numbers)
        last = len(DIRECTIONS) - 1
        return cls(
            base=int(np.clip(base, 0, 1)),
            direction=int(np.clip(direction, 0, last)),
            other=int(np.clip(other, 0, last)),
            blend=float(np.clip(blend, 0, 1)),
            length=max(length, 0.0),
            jitter=max(jitter, 0.0),
            claim=max(claim, 1.0),
            decoys=int(max(decoys, 0)),
            decoy_claim=max(decoy_claim, 1.0),
        )


CANDIDATE_NUMBERS = len(dataclasses.fields(Candidate))
DIRECTIONS = (
    "against the mean by quantity",
    "against the plain mean",
    "minus the deviations",
    "minus the mean's signs",
    "minus the mean's signs by deviation",
    "first principal direction",
    "second principal direction",
    "to the most deviant client",
    "random signs",
)
_AGAINST, _AGAINST_PLAIN, _DEVIATIONS, _SIGNS, _SIGNED_DEVIATIONS, _FIRST, _SECOND, _DEVIANT, _RANDOM = range(9)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One call of the rule: what was tried, and what came of it."""

    candidate: Candidate
    harm: float
    cosine: float
    distance: float
    weight: float | None


@dataclass(frozen=True, eq=False, kw_only=True)
class WorstCase:
    """The worst that was found for a round.

    Attributes:
        updates: (m, d) what the attackers send.
        claims: (m,) what they claim.
        aggregate: what the rule made of the round; None where it has no update.
        cosine: between the aggregate and the honest mean by true quantity; 0 without an aggregate.
        distance: between the two.
        weight: the attackers' weight in the aggregate; None for rules without weights per client.
        harm: what was searched for, see `harm`.
        candidate: what the attackers do, in numbers.
        tried: all that was tried, in order.
    """

    updates: Vectors
    claims: Floats
    aggregate: Vectors | None
    cosine: float
    distance: float
    weight: float | None
    harm: float
    candidate: Candidate
    tried: tuple[Trial, ...]


@dataclass(frozen=True, kw_only=True)
class Harm:
    """How far an aggregate is turned from the honest mean: ``harm`` is 1 - cosine, and a tenth of r/(1+r).

    r is the distance to the honest mean in units of that mean. A round without an aggregate counts as zero.
    """

    harm: float
    cosine: float
    distance: float


def harm(aggregate: Vectors | None, honest_mean: Floats) -> Harm:
    """Return how far an aggregate is turned from the honest mean."""
    found = np.zeros_like(honest_mean) if aggregate is None else np.asarray(aggregate, dtype=np.float64)
    size = math.sqrt(_square(honest_mean))
    lengths = math.sqrt(_square(found)) * size
    cosine = float(found @ honest_mean) / lengths if lengths > 0 else 0.0
    distance = math.sqrt(_square(found - honest_mean))
    relative = distance / size if size > 0 else math.inf
    far = relative / (1 + relative) if math.isfinite(relative) else 1.0
    return Harm(harm=1 - cosine + _DISTANCE_SHARE * far, cosine=cosine, distance=distance)


def worst_case(
    rule: Rule,
    updates: Any,
    quantities: Any,
    num_malicious: int,
    *,
    state: RuleState | None = None,
    budget: int = 120,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> WorstCase:
    """Search for what attackers who know the honest clients and the rule would send in a round.

    Args:
        rule: the rule, as it is called in the round.
        updates: (h, d) the honest clients' updates, float32 or float64.
        quantities: (h,) their true quantities, which they claim.
        num_malicious: m, how many attackers join them.
        state: what a stateful rule remembers.
        budget: how often the rule may be called.
        seed: of what is drawn; the same seed gives the same answer.
        threads: of the rule; None: one per core.
        progress: called with the number of calls made and the budget, after each call.
    """
    rows = [np.asarray(row) for row in updates]
    claims = np.asarray(quantities, dtype=np.float64)
    if len(rows) != len(claims) or not rows:
        raise ValueError(f"{len(rows)} updates and {len(claims)} quantities; give the same number, at least one")
    count = checks.whole("num_malicious", num_malicious, 1)
    places = np.arange(len(rows), len(rows) + count)

    def judge(sent: Vectors, claimed: Floats) -> Judgement:
        verdict = rule([*rows, *sent], np.concatenate([claims, claimed]), state=state, threads=threads)
        return Judgement.of(verdict, places)

    return Search(judge, rows, claims, count, seed=seed).run(checks.whole("budget", budget, 1), progress)


def largest_passing_claim(
    judge: Judge, updates: Vectors, *, largest: float = _LARGEST_CLAIM, steps: int = 8
) -> float | None:
    """Return the largest claim, up to `largest`, with which as many attackers are kept as with the claim 1.

    None where nobody is kept with that. From the top down in factors of ten, since a rule need not reject all that is
    larger than what it rejects; then by `steps` halvings of the ratio to the least above it that does not pass.
    """
    wanted = _passing(judge, updates, 1.0)
    if not wanted:
        return None
    failing, claim = math.inf, largest
    while claim > 1 and _passing(judge, updates, claim) < wanted:
        failing, claim = claim, claim / 10
    passing = max(claim, 1.0)
    for _ in range(steps if math.isfinite(failing) else 0):
        middle = math.sqrt(passing * failing)
        if _passing(judge, updates, middle) >= wanted:
            passing = middle
        else:
            failing = middle
    return passing


def _passing(judge: Judge, updates: Vectors, claim: float) -> int:
    return int(judge(updates, np.full(len(updates), claim)).kept.sum())


class _Spent(Exception):
    """The budget is used up."""


class Search:
    """A search over what attackers may send in one round: coarse over everything, then around the best."""

    def __init__(self, judge: Judge, updates: Any, quantities: Floats, num_malicious: int, *, seed: int = 0) -> None:
        self._judge = judge
        self._honest = Honest(updates)
        self._quantities = np.asarray(quantities, dtype=np.float64)
        self._count = num_malicious
        self._seed = seed
        self._dtype = self._honest.rows[0].dtype
        mean = weighted_sum(self._honest.rows, shares(self._quantities), threads=1)
        self.honest_mean: Floats = mean.astype(np.float64)
        self._units: dict[int, Floats] = {}
        self._noise: Floats | None = None
        self._trials: dict[Candidate, Trial] = {}
        self._best: tuple[Trial, Judgement] | None = None
        self._budget = 0
        self._calls = 0
        self._progress: Progress | None = None

    def run(self, budget: int, progress: Progress | None = None) -> WorstCase:
        """Return the worst that `budget` calls of the rule find."""
        self._budget, self._calls, self._progress = budget, 0, progress
        self._trials, self._best = {}, None
        rng = generator(self._seed, "redteam/search")
        try:
            self._look_everywhere(max(int(_COARSE_SHARE * budget), 1))
            while True:
                self._refine(rng)
                self._wander(rng)
        except _Spent:
            pass
        assert self._best is not None
        trial, judged = self._best
        updates, claims = self.sent(trial.candidate)
        return WorstCase(
            updates=updates,
            claims=claims,
            aggregate=judged.update,
            cosine=trial.cosine,
            distance=trial.distance,
            weight=trial.weight,
            harm=trial.harm,
            candidate=trial.candidate,
            tried=tuple(self._trials.values()),
        )

    def sent(self, candidate: Candidate) -> tuple[Vectors, Floats]:
        """Return the (m, d) updates and (m,) claims that a candidate stands for in this round."""
        spread = self._honest.spread
        base = self._honest.mean if candidate.base else self.honest_mean
        towards = self._unit(candidate.direction)
        if candidate.blend > 0:
            towards = _normalised((1 - candidate.blend) * towards + candidate.blend * self._unit(candidate.other))
        pushed = base + candidate.length * spread * towards
        largest = np.finfo(self._dtype).max
        if candidate.jitter > 0:
            rows = pushed + candidate.jitter * spread * self._noise_rows()
        else:
            rows = np.broadcast_to(pushed, (self._count, len(pushed)))
        claims = np.full(self._count, max(candidate.claim, 1.0))
        decoys = min(candidate.decoys, self._count)
        if decoys:
            rows = rows.copy()
            factors = generator(self._seed, "redteam/decoys").uniform(_DECOYS_FROM, _DECOYS_TO, (decoys, 1))
            rows[:decoys] = self._honest.mean - factors * self._honest.deviation
            claims[:decoys] = max(candidate.decoy_claim, 1.0)
        return np.clip(rows, -largest, largest).astype(self._dtype), claims

    def _noise_rows(self) -> Floats:
        if self._noise is None:
            shape = (self._count, len(self.honest_mean))
            noise = generator(self._seed, "redteam/jitter").standard_normal(shape)
            # As honest clients differ; where they do not, in all coordinates alike.
            noise *= self._honest.deviation if self._honest.deviation.any() else 1.0
            self._noise = noise / np.linalg.norm(noise, axis=1, keepdims=True)
        return self._noise

    def _unit(self, number: int) -> Floats:
        if number not in self._units:
            self._units[number] = _normalised(self._direction(number))
        return self._units[number]

    def _direction(self, number: int) -> Floats:
        honest = self._honest
        if number == _AGAINST:
            return -self.honest_mean
        if number == _AGAINST_PLAIN:
            return -honest.mean
        if number == _DEVIATIONS:
            return -honest.deviation
        if number == _SIGNS:
            return -np.sign(honest.mean)
        if number == _SIGNED_DEVIATIONS:
            return -np.sign(honest.mean) * honest.deviation
        if number in (_FIRST, _SECOND):
            principal = honest.principal(min(number - _FIRST, len(honest.rows) - 1))
            return -principal if principal @ self.honest_mean > 0 else principal
        if number == _DEVIANT:
            return honest.rows[honest.most_deviant] - honest.mean
        return generator(self._seed, "redteam/signs").choice([-1.0, 1.0], len(self.honest_mean))

    def _try(self, candidate: Candidate) -> Trial:
        if candidate not in self._trials:
            updates, claims = self.sent(candidate)
            self._trials[candidate] = self._outcome(candidate, self._judged(updates, claims))
        return self._trials[candidate]

    def _judged(self, updates: Vectors, claims: Floats) -> Judgement:
        if self._calls >= self._budget:
            raise _Spent
        judged = self._judge(updates, claims)
        self._calls += 1
        if self._progress is not None:
            self._progress(self._calls, self._budget)
        return judged

    def _outcome(self, candidate: Candidate, judged: Judgement) -> Trial:
        found = harm(judged.update, self.honest_mean)
        trial = Trial(
            candidate=candidate,
            harm=found.harm,
            cosine=found.cosine,
            distance=found.distance,
            weight=None if judged.weights is None else float(judged.weights.sum()),
        )
        if self._best is None or trial.harm > self._best[0].harm:
            self._best = (trial, judged)
        return trial

    def _look_everywhere(self, budget: int) -> None:
        """Try what is published, then the best directions of it with other lengths and claims."""
        for candidate in self._published():
            if self._calls >= budget:
                break
            self._try(candidate)
        lengths, claims = (0.1, 0.5, 1.0, 3.0, 30.0), self._claims()
        finer = [
            dataclasses.replace(start, length=factor * start.length, claim=claim, decoy_claim=claim)
            for factor in lengths
            for start in self._leading(4)
            for claim in claims
        ]
        for candidate in finer:
            if self._calls >= budget:
                return
            self._try(candidate)

    def _claims(self) -> tuple[float, ...]:
        quantities = self._quantities
        return float(quantities.max()), 10 * float(quantities.sum()), float(np.median(quantities))

    def _published(self) -> list[Candidate]:
        """Return attacks of the literature, with the statistics of all honest clients, by three claims."""
        honest, spread = self._honest, self._honest.spread
        mean = math.sqrt(_square(honest.mean)) / spread
        weighted = math.sqrt(_square(self.honest_mean)) / spread
        deviation = math.sqrt(_square(honest.deviation)) / spread
        signed = math.sqrt(_square(np.sign(honest.mean) * honest.deviation)) / spread
        deviant = math.sqrt(float(honest.squared_to_mean[honest.most_deviant])) / spread
        pairs = [
            (_AGAINST_PLAIN, 11 * mean), (_SIGNED_DEVIATIONS, 3 * signed), (_DEVIATIONS, 1.5 * deviation),
            *((way, limit(self._unit(way)) / spread)
              for way in (_AGAINST, _DEVIATIONS, _SIGNS)
              for limit in (honest.largest_within_maximum, honest.largest_within_sum)),
            (_AGAINST_PLAIN, 2 * mean), (_AGAINST_PLAIN, 1.5 * mean), (_DEVIANT, deviant),
            (_AGAINST, 1e4), (_AGAINST, 1.2 * weighted), (_AGAINST, 2 * weighted),
            (_FIRST, 1.0), (_SECOND, 1.0), (_RANDOM, 1.0),
        ]  # fmt: skip
        plain = [Candidate(base=int(way != _AGAINST), direction=way, length=length) for way, length in pairs]
        others = [
            Candidate(direction=_SIGNED_DEVIATIONS, length=signed, decoys=min(2, self._count - 1)),
            Candidate(direction=_AGAINST_PLAIN, length=2 * mean, jitter=1.0),
            Candidate(length=0.0, jitter=1.0),
        ]
        return [
            dataclasses.replace(candidate, claim=claim, decoy_claim=claim)
            for claim in self._claims()
            for candidate in (*plain, *others)
        ]

    def _leading(self, count: int) -> list[Candidate]:
        """Return the best candidates so far, of different directions."""
        found: dict[int, Candidate] = {}
        for trial in sorted(self._trials.values(), key=lambda trial: -trial.harm):
            found.setdefault(trial.candidate.direction, trial.candidate)
        return list(found.values())[:count]

    def _refine(self, rng: np.random.Generator) -> None:
        """Climb from the best candidate, and then from the next best, by moves that shrink where none helps."""
        for start in self._leading(_MOST_REFINED):
            current = self._claim_more(self._trials[start])
            step = 2.0
            while step > 1.05:
                climbed = self._climb(current, step, rng)
                if climbed is current:
                    step = math.sqrt(step)
                current = climbed

    def _wander(self, rng: np.random.Generator) -> None:
        """Try a few candidates at random, so that the next climb may start elsewhere."""
        for _ in range(5):
            claim = 10 ** rng.uniform(0, math.log10(100 * self._quantities.sum()))
            self._try(
                Candidate(
                    base=int(rng.integers(2)),
                    direction=int(rng.integers(len(DIRECTIONS))),
                    other=int(rng.integers(len(DIRECTIONS))),
                    blend=float(rng.choice([0.0, 0.5])),
                    length=10 ** rng.uniform(-2, 2),
                    jitter=float(rng.choice([0.0, 0.3])),
                    claim=claim,
                    decoys=int(rng.integers(self._count)),
                    decoy_claim=float(rng.choice([1.0, claim])),
                )
            )

    def _claim_more(self, start: Trial) -> Trial:
        """Try the largest claim that the rule keeps."""
        if self._budget - self._calls < self._budget // 4:
            return start
        updates, _ = self.sent(start.candidate)
        claim = largest_passing_claim(self._judged, updates, steps=3)
        if claim is None:
            return start
        return max(start, self._try(dataclasses.replace(start.candidate, claim=claim)), key=lambda trial: trial.harm)

    def _climb(self, start: Trial, step: float, rng: np.random.Generator) -> Trial:
        """Return the trial after one pass over all moves; `start` itself where no move was better."""
        best = start
        moves = self._moves(step)
        for number in rng.permutation(len(moves)):
            while True:
                candidate = moves[number](best.candidate)
                if candidate == best.candidate:
                    break
                trial = self._try(candidate)
                if trial.harm <= best.harm:
                    break
                best = trial
        return best

    def _moves(self, step: float) -> Sequence[Callable[[Candidate], Candidate]]:
        change = dataclasses.replace
        directions = [candidate.direction for candidate in self._leading(4)]

        def blended(other: int) -> Callable[[Candidate], Candidate]:
            def move(old: Candidate) -> Candidate:
                if other == old.direction:
                    return change(old, blend=old.blend / step)
                return change(old, other=other, blend=1 - (1 - (old.blend if other == old.other else 0)) / step)

            return move

        return [
            lambda old: change(old, length=old.length * step),
            lambda old: change(old, length=old.length / step),
            lambda old: change(old, claim=min(old.claim * step**2, _LARGEST_CLAIM)),
            lambda old: change(old, claim=max(old.claim / step**2, 1.0)),
            lambda old: change(old, jitter=old.jitter * step if old.jitter else 0.1 * step),
            lambda old: change(old, jitter=0.0),
            lambda old: change(old, decoys=min(old.decoys + 1, self._count - 1)),
            lambda old: change(old, decoys=max(old.decoys - 1, 0)),
            lambda old: change(old, decoy_claim=1.0 if old.decoys and old.decoy_claim > 1 else old.decoy_claim),
            lambda old: change(old, decoy_claim=old.claim if old.decoys else old.decoy_claim),
            lambda old: change(old, base=1 - old.base),
            *(blended(other) for other in directions),
        ]


def _normalised(vector: Floats) -> Floats:
    length = math.sqrt(_square(vector))
    return vector / length if length > 0 else vector.astype(np.float64)
