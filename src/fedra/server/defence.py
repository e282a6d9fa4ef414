"""The defence of a round: a rule applied to its replies, and what evaluation needs to know of that."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra import checks
from fedra.alarms import Streaks, WarningLimits, round_warnings
from fedra.cohort import RuleState, Verdict
from fedra.kernels.rows import Rows
from fedra.kernels.threads import thread_count
from fedra.rules import Rule, StatefulRule, make_rule
from fedra.screening import screen
from fedra.server.faults import short
from fedra.server.records import LEFT_OUT, RoundRecord
from fedra.server.replies import Reply
from fedra.server.weighing import weigh


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcome:
    """A judged round: the verdict on the usable replies, the replies that were kept, and their weights.

    `claims` are what the kept clients claim to an inner strategy where that differs from what they sent.
    """

    verdict: Verdict
    kept: Sequence[Reply]
    weights: Sequence[float]
    record: RoundRecord
    claims: Sequence[int] | None = None


class Defence:
    """Judges rounds by a rule, and keeps what the next round and evaluation need of the last one.

    What a stateful rule remembers moves on only by `accept`, when the round's result has become the model.
    """

    def __init__(
        self, *, rule: Rule | str, threads: int | None = None, warn_at: WarningLimits | None = None, run: str = ""
    ) -> None:
        self.limits = WarningLimits() if warn_at is None else warn_at
        if not isinstance(self.limits, WarningLimits):
            raise TypeError(checks.wrong("warn_at", warn_at, "fedra.WarningLimits(...), or None"))
        self.rule = make_rule(rule) if isinstance(rule, str) else rule
        if not isinstance(self.rule, Rule):
            raise TypeError(checks.wrong("rule", rule, "a rule such as fedra.FedRA(), or the name of one"))
        thread_count(threads)  # a wrong one is better told now than in the first round
        self.threads = threads
        self.run = run
        self.rule_state: RuleState | None = None
        self._streaks = Streaks(self.limits)
        self._shares: dict[Any, float] = {}

    @property
    def needs_updates(self) -> bool:
        """Whether the rule must be given updates; most of fedra's state that whole models do as well.

        They look at differences between clients, or average, so that what was sent to all cancels.
        """
        return self.rule.needs_updates

    def warm_up(self, dtype: np.dtype[Any]) -> None:
        """Load the compiled kernels now, so that the first round does not wait for them."""
        count = min(64, getattr(self.rule, "num_clients", None) or 64)
        rows = np.arange(count * 8, dtype=dtype).reshape(count, 8)
        self.rule.judge(screen(rows, np.ones(count), threads=self.threads))

    def recall(self, state: RuleState, dimension: int, *, owner: str = "") -> None:
        """Take back what the rule, `owner` by name, remembered; ValueError where it cannot be this rule's."""
        # A rule without memory may take the place of one with: nothing of it is needed then.
        if not state or not isinstance(self.rule, StatefulRule):
            self.rule_state = None
            return
        if owner and owner != self.rule.name:
            raise ValueError(f"the memory of rule {short(owner)}, this is {self.rule.name!r}")
        restored = self.rule.restore(state, dimension)
        if not _finite(restored):
            raise ValueError(f"the memory of rule {self.rule.name!r} is not finite")
        self.rule_state = restored

    def judge(
        self, server_round: int, replies: list[Reply], *, vectors: Sequence[npt.NDArray[Any]] | Rows, known: int
    ) -> Outcome:
        """Judge the usable replies by their vectors, which are in the order of the replies without a fault."""
        usable = [reply for reply in replies if not reply.fault]
        screened = screen(
            vectors,
            [reply.claim for reply in usable],
            [reply.client for reply in usable],
            dimension=None if isinstance(vectors, Rows) or not vectors else vectors[0].size,
            threads=self.threads,
        )
        verdict = self.rule.for_federation(num_clients=max(known, len(usable))).judge(screened, self.rule_state)
        _check_kept(self.rule, verdict.state)
        if not _finite(verdict.state):
            verdict = _refused(verdict, "the rule would remember values that are not finite")
        kept = [reply for reply, stays in zip(usable, verdict.kept, strict=True) if stays]
        weights = _weights(verdict)
        self._remember(replies, kept, weights)
        note = verdict.note if replies else "nobody replied"
        records = [
            {**record, "usable": bool(passed)}
            for record, passed in zip(verdict.to_records(), screened.usable, strict=True)
        ]
        record = self._record(server_round, "train", replies, records, note, verdict.num_malicious)
        record = dataclasses.replace(record, warnings=self._warnings(verdict, replies, kept))
        return Outcome(verdict=verdict, kept=kept, weights=weights, record=record)

    def accept(self, outcome: Outcome) -> None:
        """Let the rule remember a round whose result has become the model."""
        self.rule_state = outcome.verdict.state

    def judge_evaluation(self, server_round: int, replies: list[Reply]) -> tuple[list[Reply], list[float], RoundRecord]:
        """Return the replies to evaluate by, their weights, which are those of the training round, and the record.

        A client that training left out is left out here. One that training did not ask weighs as the mean of those
        kept: what it claims now cannot raise that.
        """
        for reply in replies:
            if not reply.fault and self._shares.get(reply.client, 1.0) == 0.0:
                reply.fault = LEFT_OUT
        kept = [reply for reply in replies if not reply.fault]
        shares = [share for share in self._shares.values() if share > 0]
        usual = float(np.mean(shares)) if shares else 1.0
        weights = [self._shares.get(reply.client, usual) for reply in kept]
        total = sum(weights)
        records = [
            _client_record(reply, kept=True, weight=weight / total) for reply, weight in zip(kept, weights, strict=True)
        ]
        note = "" if kept else "nobody was left"
        return kept, weights, self._record(server_round, "evaluate", replies, records, note, None)

    def weighed(self, outcome: Outcome, *, equal: bool = False) -> Outcome:
        """Return the round as an inner strategy that averages by claims will weigh it: as the rule does, or all alike.

        Nobody is kept where the rule's weights cannot be used.
        """
        if not outcome.kept:
            return outcome
        weights = [1.0] * len(outcome.kept) if equal else outcome.weights
        weighing = weigh([reply.claim for reply in outcome.kept], weights)
        if weighing is None:
            record = outcome.record.failed(
                f"rule {self.rule.name!r} gave weights that are negative, not finite, or all zero"
            )
            return dataclasses.replace(outcome, kept=[], weights=[], record=record)
        shares = iter(weighing.shares)
        clients = [
            {**client, "weight": next(shares)} if client["kept"] else client for client in outcome.record.clients
        ]
        self._shares.update((reply.client, share) for reply, share in zip(outcome.kept, weighing.shares, strict=True))
        record = dataclasses.replace(outcome.record, clients=clients)
        return dataclasses.replace(outcome, weights=weighing.shares, record=record, claims=weighing.claims)

    def _warnings(self, verdict: Verdict, replies: list[Reply], kept: list[Reply]) -> tuple[str, ...]:
        if not kept:
            return ()  # a skipped round says nothing about anybody
        passed = round_warnings(
            client_ids=verdict.client_ids,
            kept=verdict.kept,
            quantities=verdict.quantities,
            weights=verdict.weights,
            implied=verdict.implied_quantities,
            limits=self.limits,
        )
        # Of those who were not asked there is no end: nothing about them is remembered.
        asked = (reply.client for reply in replies if reply.asked)
        again = self._streaks.update(asked, (reply.client for reply in kept))
        return (*passed, *again)

    def _remember(self, replies: list[Reply], kept: list[Reply], weights: Sequence[float]) -> None:
        if not kept:
            # A skipped round says nothing about anybody.
            self._shares = {}
            return
        self._shares = {reply.client: 0.0 for reply in replies if reply.asked}
        self._shares.update((reply.client, weight) for reply, weight in zip(kept, weights, strict=True))

    def _record(
        self,
        server_round: int,
        phase: str,
        replies: list[Reply],
        judged: list[dict[str, Any]],
        note: str,
        num_malicious: int | None,
    ) -> RoundRecord:
        of_usable = iter(judged)
        clients = [
            _client_record(reply, kept=False)
            if reply.fault
            else {**_client_record(reply, kept=False), **next(of_usable)}
            for reply in replies
        ]
        return RoundRecord(
            run=self.run,
            round=server_round,
            phase=phase,
            time=time.time(),
            rule=self.rule.name,
            num_malicious=num_malicious,
            note=note,
            clients=clients,
        )


def _check_kept(rule: Rule, state: RuleState | None) -> None:
    """Refuse what no state file can hold, in the first round and not after a restart."""
    for name, array in (state or {}).items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fciub":
            kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise TypeError(f"rule {rule.name!r} would remember {name!r} as {kind}; use NumPy arrays of numbers")


def _finite(state: RuleState | None) -> bool:
    return all(np.isfinite(array).all() for array in (state or {}).values() if array.dtype.kind in "fc")


def _refused(verdict: Verdict, note: str) -> Verdict:
    """Return the verdict on a round of which nothing can be used."""
    nobody = np.zeros(len(verdict), dtype=bool)
    weights = None if verdict.weights is None else np.zeros(len(verdict))
    return dataclasses.replace(verdict, update=None, kept=nobody, weights=weights, note=note, state=None)


def _weights(verdict: Verdict) -> list[float]:
    """Return the kept clients' weights; equal ones for rules that have none, such as the median."""
    count = int(verdict.kept.sum())
    if verdict.weights is None:
        return [1.0 / max(1, count)] * count
    return [float(weight) for weight in verdict.weights[verdict.kept]]


def _client_record(reply: Reply, *, kept: bool, weight: float | None = None) -> dict[str, Any]:
    return {
        "client": reply.client,
        "claimed_quantity": None if reply.claim != reply.claim else reply.claim,
        "implied_quantity": None,
        "score": None,
        "cut": None,
        "kept": kept,
        "weight": weight if kept else 0.0,
        "reason": reply.fault,
        "usable": not reply.fault,
    }
