"""The defence both strategies share: a rule applied to a round's replies, remembered for evaluation, and reported."""

from __future__ import annotations

import dataclasses
import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.alarms import Streaks, WarningLimits, round_warnings
from fedra.audit import LEFT_OUT, AuditLog, RoundReport
from fedra.cohort import Verdict, display_id
from fedra.flower.disk import DiskPolicy, OnDiskError
from fedra.flower.examples import weigh
from fedra.flower.replies import Reply
from fedra.rules import Rule, make_rule
from fedra.rules.mcne import malicious_total
from fedra.screening import screen

LOGGER = logging.getLogger("flwr")

AuditTarget = str | os.PathLike[str] | AuditLog | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcome:
    """A judged round: the verdict on the usable replies, the replies that were kept, and their weights.

    `claims` are what the kept clients claim to an inner strategy where that differs from what they sent.
    """

    verdict: Verdict
    kept: Sequence[Reply]
    weights: Sequence[float]
    report: RoundReport
    claims: Sequence[int] | None = None

    def failed(self, note: str) -> RoundReport:
        """Return the report of a round whose result could not be used after all."""
        return failed(self.report, note)


class Defence:
    """Judges rounds by a rule; keeps what evaluation needs of the last one, and reports every one."""

    def __init__(
        self,
        *,
        rule: Rule | str,
        audit: AuditTarget = None,
        on_round: Callable[[RoundReport], None] | None = None,
        threads: int | None = None,
        on_disk_error: OnDiskError = "warn",
        warn_at: WarningLimits | None = None,
    ) -> None:
        self.disk = DiskPolicy(on_disk_error)
        self.limits = WarningLimits() if warn_at is None else warn_at
        if not isinstance(self.limits, WarningLimits):
            raise TypeError(f"warn_at={warn_at!r}; give fedra.WarningLimits(...), or None")
        self._streaks = Streaks(self.limits)
        self.rule = make_rule(rule) if isinstance(rule, str) else rule
        if not isinstance(self.rule, Rule):
            raise TypeError(f"rule={rule!r}; give a rule such as fedra.FedRA(), or the name of one")
        self.audit = AuditLog(audit) if isinstance(audit, str | os.PathLike) else audit
        self.on_round = on_round
        self.threads = threads
        self.run = ""
        self._shares: dict[Any, float] = {}

    @property
    def needs_updates(self) -> bool:
        """Whether the rule must be given updates; all of fedra's but one state that replies do as well.

        They look at differences between clients, or average, so that what was sent to all cancels.
        """
        return self.rule.needs_updates

    def warm_up(self, dtype: np.dtype[Any]) -> None:
        """Load the compiled kernels now, so that the first round does not wait for them."""
        count = min(64, getattr(self.rule, "num_clients", None) or 64)
        rows = np.arange(count * 8, dtype=dtype).reshape(count, 8)
        self.rule.judge(screen(rows, np.ones(count), threads=self.threads))

    def judge(self, server_round: int, replies: list[Reply], *, vectors: list[npt.NDArray[Any]], known: int) -> Outcome:
        """Judge the usable replies by their vectors, which are in the order of the replies without a fault."""
        usable = [reply for reply in replies if not reply.fault]
        dimension = vectors[0].size if vectors else None
        screened = screen(
            vectors,
            [reply.claim for reply in usable],
            [reply.client for reply in usable],
            dimension=dimension,
            threads=self.threads,
        )
        verdict = self._rule_for(max(known, len(usable))).judge(screened)
        kept = [reply for reply, stays in zip(usable, verdict.kept, strict=True) if stays]
        weights = _weights(verdict)
        self._remember(replies, kept, weights)
        note = verdict.note if replies else "nobody replied"
        records = [
            {**record, "usable": bool(passed)}
            for record, passed in zip(verdict.to_records(), screened.usable, strict=True)
        ]
        report = self._report(server_round, "train", replies, records, note, verdict.num_malicious)
        report = dataclasses.replace(report, warnings=self._warnings(verdict, replies, kept))
        return Outcome(verdict=verdict, kept=kept, weights=weights, report=report)

    def judge_evaluation(self, server_round: int, replies: list[Reply]) -> tuple[list[Reply], list[float], RoundReport]:
        """Return the replies to evaluate by, their weights, which are those of the training round, and the report.

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
            _record(reply, kept=True, weight=weight / total) for reply, weight in zip(kept, weights, strict=True)
        ]
        note = "" if kept else "nobody was left"
        return kept, weights, self._report(server_round, "evaluate", replies, records, note, None)

    def weighed(self, outcome: Outcome, *, equal: bool = False) -> Outcome:
        """Return the round as an inner strategy that averages by claims will weigh it: as the rule does, or all alike.

        Nobody is kept where the rule's weights cannot be used.
        """
        if not outcome.kept:
            return outcome
        weights = [1.0] * len(outcome.kept) if equal else outcome.weights
        weighing = weigh([reply.claim for reply in outcome.kept], weights)
        if weighing is None:
            report = outcome.failed(f"rule {self.rule.name!r} gave weights that are negative, not finite, or all zero")
            return dataclasses.replace(outcome, kept=[], weights=[], report=report)
        shares = iter(weighing.shares)
        clients = [
            {**client, "weight": next(shares)} if client["kept"] else client for client in outcome.report.clients
        ]
        self._shares.update((reply.client, share) for reply, share in zip(outcome.kept, weighing.shares, strict=True))
        report = dataclasses.replace(outcome.report, clients=clients)
        return dataclasses.replace(outcome, weights=weighing.shares, report=report, claims=weighing.claims)

    def publish(self, report: RoundReport, save: Callable[[], None] | None = None) -> None:
        """Save the model, log the round, append it to the audit trail, and hand it to the user's callback.

        The model comes first, and what the disk does not take is told last: nothing of the round is lost for it.
        """
        if save is not None:
            self.disk.attempt("the state", save)
        LOGGER.info(
            "fedra: %s round %d: %d kept, %d rejected%s", report.phase, report.round, report.kept, report.rejected,
            f", no change: {report.note}" if report.note else "",
        )  # fmt: skip
        for warning in report.warnings:
            LOGGER.warning("fedra: round %d: %s", report.round, warning)
        for client in report.clients:
            if not client["kept"] and client["reason"]:
                LOGGER.info("fedra: node %s rejected: %s", display_id(client["client"]), client["reason"])
        if (audit := self.audit) is not None:
            self.disk.attempt("the audit trail", lambda: audit.write(report))
        if self.on_round is not None:
            self.on_round(report)
        self.disk.settle()

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

    def _rule_for(self, known: int) -> Rule:
        """Return the rule, told the federation's size N where it can use it and was not told already.

        Where less than one node of the N would be malicious, N stays unknown: M~ = 0 would keep everybody, which
        is not what a guarded federation of few nodes wants, and the binomial prior allows for one.
        """
        if getattr(self.rule, "num_clients", known) is not None:
            return self.rule
        if malicious_total(known, self.rule.malicious_ratio) == 0:  # type: ignore[attr-defined]
            return self.rule
        return dataclasses.replace(self.rule, num_clients=known)  # type: ignore[type-var]

    def _remember(self, replies: list[Reply], kept: list[Reply], weights: Sequence[float]) -> None:
        if not kept:
            # A skipped round says nothing about anybody.
            self._shares = {}
            return
        self._shares = {reply.client: 0.0 for reply in replies if reply.asked}
        self._shares.update((reply.client, weight) for reply, weight in zip(kept, weights, strict=True))

    def _report(
        self,
        server_round: int,
        phase: str,
        replies: list[Reply],
        judged: list[dict[str, Any]],
        note: str,
        num_malicious: int | None,
    ) -> RoundReport:
        told = iter(judged)
        clients = [
            _record(reply, kept=False) if reply.fault else {**_record(reply, kept=False), **next(told)}
            for reply in replies
        ]
        return RoundReport(
            run=self.run,
            round=server_round,
            phase=phase,
            time=time.time(),
            rule=self.rule.name,
            num_malicious=num_malicious,
            note=note,
            clients=clients,
        )


def failed(report: RoundReport, note: str) -> RoundReport:
    """Return the report of a round that nobody is part of after all."""
    clients = [{**client, "kept": False, "weight": 0.0} for client in report.clients]
    return dataclasses.replace(report, note=note, clients=clients)


def _weights(verdict: Verdict) -> list[float]:
    """Return the kept clients' weights; equal ones for rules that have none, such as the median."""
    count = int(verdict.kept.sum())
    if verdict.weights is None:
        return [1.0 / max(1, count)] * count
    return [float(weight) for weight in verdict.weights[verdict.kept]]


def _record(reply: Reply, *, kept: bool, weight: float | None = None) -> dict[str, Any]:
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
