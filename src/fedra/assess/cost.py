"""What a rule costs where nobody attacks: how much worse its step is, and whom it leaves out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedra.assess.rounds import HonestRound
from fedra.cohort import Flags, Floats, RuleState, Verdict, shares
from fedra.rules.base import Rule, StatefulRule

# As in the contest's tables: an honest client with less than this part of what FedAvg would give it has no say.
SILENCED_BELOW = 0.1


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a rule makes of rounds in which nobody attacks, root mean squares and means over them.

    Attributes:
        rounds: how many.
        difference: how far its step is from the honest mean, in units of that mean's own sampling error.
        error: how far its step is from the truth, in the same units; 1 is FedAvg, and None where the truth is not
            known.
        dropped: the share of clients that are left out.
        data_dropped: the share of data that they hold.
        silenced: the share of clients that are left out or have less than a tenth of what FedAvg would give them; None
            for rules without weights.
        without_update: the share of rounds without a step.
    """

    rounds: int
    difference: float
    error: float | None
    dropped: float
    data_dropped: float
    silenced: float | None
    without_update: float


def clean_cost(rule: Rule, rounds: Sequence[HonestRound], state: RuleState | None) -> Cost:
    """Let a rule take honest rounds one after another."""
    differences, errors, sampling = [], [], []
    dropped, data_dropped, silenced, empty = [], [], [], 0
    for round_ in rounds:
        verdict = rule(round_.updates, round_.quantities, state=state, threads=1)
        state = verdict.state if isinstance(rule, StatefulRule) else state
        empty += verdict.update is None
        step = np.zeros(round_.updates.shape[1]) if verdict.update is None else verdict.update.astype(np.float64)
        differences.append(float(np.linalg.norm(step - round_.mean)))
        sampling.append(round_.sampling_error())
        if round_.truth is not None:
            errors.append(float(np.linalg.norm(step - round_.truth)))
        left_out = ~verdict.kept
        dropped.append(float(left_out.mean()))
        data_dropped.append(float(shares(round_.quantities)[left_out].sum()))
        if verdict.weights is not None:
            silenced.append(float(_silenced(verdict, round_.quantities).mean()))
    unit = _root_mean_square(sampling)
    return Cost(
        rounds=len(rounds),
        difference=_root_mean_square(differences) / unit if unit > 0 else 0.0,
        error=_root_mean_square(errors) / unit if errors and unit > 0 else None,
        dropped=float(np.mean(dropped)),
        data_dropped=float(np.mean(data_dropped)),
        silenced=float(np.mean(silenced)) if silenced else None,
        without_update=empty / len(rounds),
    )


def _silenced(verdict: Verdict, quantities: Floats) -> Flags:
    assert verdict.weights is not None
    fair = verdict.weights.sum() * shares(quantities)
    silent: Flags = ~verdict.kept | (verdict.weights < SILENCED_BELOW * fair) | (verdict.weights <= 0)
    return silent


def _root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(math.fsum(value**2 for value in values) / len(values)) if values else 0.0
