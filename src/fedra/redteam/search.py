"""A search over what attackers may send in one round, which calls the rule itself."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fedra.cohort import Floats, shares
from fedra.kernels import weighted_sum
from fedra.redteam.candidates import (
    AGAINST,
    AGAINST_PLAIN,
    DEVIANT,
    DEVIATIONS,
    DIRECTIONS,
    FIRST,
    RANDOM,
    SECOND,
    SIGNED_DEVIATIONS,
    SIGNS,
    Candidate,
)
from fedra.redteam.honest import Honest, normalised, squared_length
from fedra.redteam.judging import LARGEST_CLAIM, Judge, Judgement, Vectors, largest_passing_claim
from fedra.redteam.outcomes import Trial, WorstCase, harm
from fedra.seeding import generator

Progress = Callable[[int, int], None]

# How far out decoys lie, in deviations.
_DECOYS_FROM, _DECOYS_TO = 50.0, 100.0
# A part of the budget is for looking everywhere, the rest for what looked best.
_COARSE_SHARE = 0.6
_MOST_REFINED = 3


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
            towards = normalised((1 - candidate.blend) * towards + candidate.blend * self._unit(candidate.other))
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
            self._units[number] = normalised(self._direction(number))
        return self._units[number]

    def _direction(self, number: int) -> Floats:
        honest = self._honest
        if number == AGAINST:
            return -self.honest_mean
        if number == AGAINST_PLAIN:
            return -honest.mean
        if number == DEVIATIONS:
            return -honest.deviation
        if number == SIGNS:
            return -np.sign(honest.mean)
        if number == SIGNED_DEVIATIONS:
            return -np.sign(honest.mean) * honest.deviation
        if number in (FIRST, SECOND):
            principal = honest.principal(min(number - FIRST, len(honest.rows) - 1))
            return -principal if principal @ self.honest_mean > 0 else principal
        if number == DEVIANT:
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
        mean = math.sqrt(squared_length(honest.mean)) / spread
        weighted = math.sqrt(squared_length(self.honest_mean)) / spread
        deviation = math.sqrt(squared_length(honest.deviation)) / spread
        signed = math.sqrt(squared_length(np.sign(honest.mean) * honest.deviation)) / spread
        deviant = math.sqrt(float(honest.squared_to_mean[honest.most_deviant])) / spread
        pairs = [
            (AGAINST_PLAIN, 11 * mean), (SIGNED_DEVIATIONS, 3 * signed), (DEVIATIONS, 1.5 * deviation),
            *((way, limit(self._unit(way)) / spread)
              for way in (AGAINST, DEVIATIONS, SIGNS)
              for limit in (honest.largest_within_maximum, honest.largest_within_sum)),
            (AGAINST_PLAIN, 2 * mean), (AGAINST_PLAIN, 1.5 * mean), (DEVIANT, deviant),
            (AGAINST, 1e4), (AGAINST, 1.2 * weighted), (AGAINST, 2 * weighted),
            (FIRST, 1.0), (SECOND, 1.0), (RANDOM, 1.0),
        ]  # fmt: skip
        plain = [Candidate(base=int(way != AGAINST), direction=way, length=length) for way, length in pairs]
        others = [
            Candidate(direction=SIGNED_DEVIATIONS, length=signed, decoys=min(2, self._count - 1)),
            Candidate(direction=AGAINST_PLAIN, length=2 * mean, jitter=1.0),
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
            lambda old: change(old, claim=min(old.claim * step**2, LARGEST_CLAIM)),
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
