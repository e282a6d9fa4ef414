"""Guard: a selecting rule in front of any Flower strategy."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy.typing as npt
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from fedra.alarms import WarningLimits
from fedra.audit import AuditTarget, with_audit
from fedra.checks import wrong
from fedra.flower.consult import LOGGER, consult
from fedra.flower.defended import Aggregated, Defended
from fedra.flower.demands import no_model_note, refuse_unfit
from fedra.flower.inner import InnerMemory, check_selects, inner_setting
from fedra.flower.messages import Loan, claimed_metrics, weighted_contents
from fedra.flower.npy import flat_model
from fedra.flower.privacy import is_private, needs_equal_weights
from fedra.rules import DEFAULT_RULE, Rule
from fedra.server import Observer, RoundRecord
from fedra.server.core import Server
from fedra.server.defence import Outcome
from fedra.server.disk import OnDiskError
from fedra.server.layout import shared_configs
from fedra.server.replies import Reply
from fedra.server.vectors import flat_vectors, less_model


class Guard(Defended):
    """Screens and scores replies, and lets only those that the rule keeps reach the inner strategy.

    Kept replies reach the inner strategy with the values they sent, in the server's own form. Where the rule weighs
    them otherwise than by their claims, they claim the rule's weights there, so that an average by claims is the
    rule's. Entries that are not floating-point stay as the server has them.

    Whatever the inner strategy raises, or returns that is not finite, is a skipped round with a note; what it
    remembers is put back. So is a round from which it returns no model.

    Args:
        inner: any strategy of Flower's Message API.
        rule: a rule that scores clients and keeps some (fedra, krum, multi-krum, ctma, caf, dnc), or its name.
        audit, observers, on_round, threads, on_disk_error, warn_at: as for `RobustStrategy`.
        state: a file to keep the model, and the arrays, numbers and privacy accountants that the inner strategy
            remembers, in after each round.
    """

    def __init__(
        self,
        inner: Strategy,
        *,
        rule: Rule | str = DEFAULT_RULE,
        audit: AuditTarget = None,
        observers: Iterable[Observer] = (),
        on_round: Callable[[RoundRecord], None] | None = None,
        state: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        on_disk_error: OnDiskError = "warn",
        warn_at: WarningLimits | None = None,
    ) -> None:
        if not isinstance(inner, Strategy):
            raise TypeError(wrong("inner", inner, "a strategy of flwr.serverapp.strategy"))
        self.inner = inner
        self.server = Server(
            platform="flower",
            rule=rule,
            memory=InnerMemory(inner, saved=state is not None),
            observers=with_audit(audit, observers),
            on_round=on_round,
            state=state,
            threads=threads,
            on_disk_error=on_disk_error,
            warn_at=warn_at,
            logger=LOGGER,
        )
        check_selects(self.server.rule)
        self.weighted_by_key = str(inner_setting(inner, "weighted_by_key", "num-examples"))

    def summary(self) -> None:
        """Log the rule, then the inner strategy's own summary."""
        LOGGER.info("\t├──> Guarded by: %r", self.server.rule)
        LOGGER.info("\t├──> Inner strategy: %s", type(self.inner).__name__)
        if is_private(self.inner):
            LOGGER.warning(
                "fedra: the privacy guarantee of %s does not cover that a rule selects among the replies; "
                "see docs/flower.md, 'Differential privacy'",
                type(self.inner).__name__,
            )
        self.inner.summary()

    def _choose_to_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        return self.inner.configure_train(server_round, arrays, config, grid)

    def _choose_to_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        return self.inner.configure_evaluate(server_round, arrays, config, grid)

    def _aggregate_nobody(self, server_round: int) -> tuple[ArrayRecord | None, MetricRecord | None]:
        return self.inner.aggregate_train(server_round, [])

    def _evaluate_nobody(self, server_round: int) -> MetricRecord | None:
        return self.inner.aggregate_evaluate(server_round, [])

    def _aggregate(self, server_round: int, replies: list[Reply], sent: ArrayRecord) -> Aggregated:
        """Hand the kept replies to the inner strategy; a round without any changes nothing."""
        server, form = self.server, self.server.form
        own = {name: array.data for name, array in sent.items()}
        refuse_unfit(self.inner, replies, form, own)
        loans: dict[int, Loan] = {}

        def lend(reply: Reply) -> None:
            loans[id(reply)] = Loan(reply, form)

        vectors = flat_vectors(replies, form, minus=None, release=lend, threads=server.defence.threads)
        judged = less_model(vectors, flat_model(form, own)) if server.defence.needs_updates else vectors
        outcome = server.judge_vectors(server_round, replies, judged)
        del judged
        outcome = server.defence.weighed(outcome, equal=needs_equal_weights(self.inner))
        self._hand_back(replies, vectors, loans, outcome, sent)
        arrays, metrics, record = None, None, outcome.record
        if outcome.kept:
            messages = [reply.message for reply in outcome.kept]
            result, fault = consult(self.inner, lambda: self.inner.aggregate_train(server_round, messages), _values)
            arrays, metrics = result or (None, None)
            if arrays:
                server.defence.accept(outcome)
            else:
                record = record.failed(fault or no_model_note(self.inner, len(outcome.kept)))
        arrays = ArrayRecord(form.pinned(arrays, sent)) if arrays else None
        return Aggregated(arrays=arrays, record=record, metrics=lambda: metrics)

    def _evaluate(
        self, server_round: int, kept: Sequence[Reply], weights: Sequence[float]
    ) -> tuple[MetricRecord | None, str]:
        contents = weighted_contents(kept, weights, self.weighted_by_key)
        messages = [_with_content(reply.message, content) for reply, content in zip(kept, contents, strict=True)]
        return consult(self.inner, lambda: self.inner.aggregate_evaluate(server_round, messages), lambda _: ())

    def _hand_back(
        self,
        replies: list[Reply],
        vectors: list[npt.NDArray[Any]],
        loans: dict[int, Loan],
        outcome: Outcome,
        sent: ArrayRecord,
    ) -> None:
        """Give kept replies their values back, one by one, and let the vectors go."""
        records = claimed_metrics(outcome.kept, self.weighted_by_key, outcome.claims)
        kept = {id(reply): record for reply, record in zip(outcome.kept, records, strict=True)}
        configs = shared_configs(outcome.kept)
        for reply in [reply for reply in replies if not reply.fault]:
            vector = vectors.pop(0)
            if id(reply) in kept:
                loans[id(reply)].restore(vector, sent, kept[id(reply)], configs)


def _with_content(message: Message, content: RecordDict) -> Message:
    """Return a copy of a message with other content."""
    changed = copy.copy(message)
    changed.content = content
    return changed


def _values(result: tuple[ArrayRecord | None, MetricRecord | None]) -> Iterator[npt.NDArray[Any]]:
    arrays, _ = result
    return (array.numpy() for array in (() if arrays is None else arrays.values()))
