"""Guard: a selecting rule in front of any Flower strategy."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy.typing as npt
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from fedra.alarms import WarningLimits
from fedra.audit import RoundReport
from fedra.flower.canonical import pinned
from fedra.flower.consult import consult
from fedra.flower.defence import LOGGER, AuditTarget, Defence, Outcome, failed
from fedra.flower.demands import refuse_unfit_losses
from fedra.flower.disk import OnDiskError
from fedra.flower.inner import inner_memory, inner_setting, layers, recall_inner
from fedra.flower.layout import shared_configs
from fedra.flower.loans import Loan
from fedra.flower.metrics import add_round, claimed_metrics, weighted_contents
from fedra.flower.model import ModelForm, model_form
from fedra.flower.plain_memory import PlainMemory
from fedra.flower.privacy import is_private, needs_equal_weights, no_model_note, refuse_still, refuse_without_norm_bit
from fedra.flower.replies import Reply, read_messages, sent_array_key
from fedra.flower.resume import Resumable
from fedra.flower.state import ServerState
from fedra.flower.updates import flat_model, flat_vectors, less_model
from fedra.rules import RULES, Rule


class Guard(Resumable):
    """Screens and scores replies, and lets only those that the rule keeps reach the inner strategy.

    Kept replies reach the inner strategy with the values they sent, in the server's own form. Where the rule weighs
    them otherwise than by their claims, they claim the rule's weights there, so that an average by claims is the
    rule's. Entries that are not floating-point stay as the server has them.

    Whatever the inner strategy raises, or returns that is not finite, is a skipped round with a note; what it
    remembers is put back. So is a round from which it returns no model.

    Args:
        inner: any strategy of Flower's Message API.
        rule: a rule that scores clients and keeps some (fedra, krum, multi-krum), or its name.
        audit, on_round, threads, on_disk_error, warn_at: as for `RobustStrategy`.
        state: a file to keep the model, and the arrays, numbers and privacy accountants that the inner strategy
            remembers, in after each round.
    """

    def __init__(
        self,
        inner: Strategy,
        *,
        rule: Rule | str = "fedra",
        audit: AuditTarget = None,
        on_round: Callable[[RoundReport], None] | None = None,
        state: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        on_disk_error: OnDiskError = "warn",
        warn_at: WarningLimits | None = None,
    ) -> None:
        if not isinstance(inner, Strategy):
            raise TypeError(f"inner={inner!r}; give a strategy of flwr.serverapp.strategy")
        self.inner = inner
        self.defence = Defence(
            rule=rule, audit=audit, on_round=on_round, threads=threads, on_disk_error=on_disk_error, warn_at=warn_at
        )
        check_selects(self.defence.rule)
        self.weighted_by_key = str(inner_setting(inner, "weighted_by_key", "num-examples"))
        self._plain = PlainMemory(inner)
        if state is not None:
            self._plain.check()
        self._keep_state_at(state)
        self._first: ModelForm | None = None
        self._sent: ArrayRecord | None = None
        self._form = ModelForm(entries=())
        self._asked: frozenset[int] = frozenset()
        self._known = 0
        self._array_key = "arrays"

    def summary(self) -> None:
        """Log the rule, then the inner strategy's own summary."""
        LOGGER.info("\t├──> Guarded by: %r", self.defence.rule)
        LOGGER.info("\t├──> Inner strategy: %s", type(self.inner).__name__)
        if is_private(self.inner):
            LOGGER.warning(
                "fedra: the privacy guarantee of %s does not cover that a rule selects among the replies; "
                "see docs/flower.md, 'Differential privacy'",
                type(self.inner).__name__,
            )
        self.inner.summary()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Let the inner strategy choose, and remember whom it asks."""
        messages = list(self.inner.configure_train(server_round + self._done, arrays, config, grid))
        self._sent = arrays.copy()
        self._form = model_form({name: array.data for name, array in arrays.items()}, self._first)
        self._first = self._first or self._form
        self._asked = frozenset(message.metadata.dst_node_id for message in messages)
        self._known = len(self._asked.union(grid.get_node_ids()))
        self._array_key = sent_array_key(messages)
        self.defence.run = str(messages[0].metadata.run_id) if messages else self.defence.run
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Hand the kept replies to the inner strategy; a round without any changes nothing."""
        if self._sent is None:
            raise RuntimeError("aggregate_train needs the arrays that were sent; call configure_train first")
        if not self._asked:
            # Nobody was asked, so nobody's reply counts.
            return self.inner.aggregate_train(server_round + self._done, [])
        server_round += self._done
        read = read_messages(
            replies,
            weight_key=self.weighted_by_key,
            asked=self._asked,
            model=self._form,
            array_key=self._array_key,
        )
        refuse_unfit_losses(read, self.inner)
        refuse_without_norm_bit(self.inner, read)
        sent = {name: array.data for name, array in self._sent.items()}
        refuse_still(self.inner, read, self._form, sent)
        loans: dict[int, Loan] = {}

        def lend(reply: Reply) -> None:
            loans[id(reply)] = Loan(reply, self._form)

        vectors = flat_vectors(read, self._form, minus=None, release=lend, threads=self.defence.threads)
        judged = less_model(vectors, flat_model(self._form, sent)) if self.defence.needs_updates else vectors
        outcome = self.defence.judge(server_round, read, vectors=judged, known=self._known)
        outcome = self.defence.weighed(outcome, equal=needs_equal_weights(self.inner))
        self._hand_back(read, vectors, loans, outcome)
        arrays, metrics, report = None, None, outcome.report
        if outcome.kept:
            messages = [reply.message for reply in outcome.kept]
            result, fault = consult(self.inner, lambda: self.inner.aggregate_train(server_round, messages), _values)
            arrays, metrics = result or (None, None)
            if not arrays:
                report = outcome.failed(fault or no_model_note(self.inner, len(outcome.kept)))
        arrays = ArrayRecord(pinned(self._form, arrays, self._sent)) if arrays else None
        model = self._sent if arrays is None else arrays
        self.defence.publish(report, save=lambda: self._save(server_round, model))
        return arrays, add_round(metrics, report)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Let the inner strategy choose."""
        messages = list(self.inner.configure_evaluate(server_round + self._done, arrays, config, grid))
        self._asked = frozenset(message.metadata.dst_node_id for message in messages)
        return messages

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Hand screened replies to the inner strategy, each under the weight of the training round."""
        server_round += self._done
        if not self._asked:
            return self.inner.aggregate_evaluate(server_round, [])
        read = read_messages(replies, weight_key=self.weighted_by_key, asked=self._asked, model=None)
        kept, weights, report = self.defence.judge_evaluation(server_round, read)
        metrics = None
        if kept:
            contents = weighted_contents(kept, weights, self.weighted_by_key)
            messages = [_with_content(reply.message, content) for reply, content in zip(kept, contents, strict=True)]
            metrics, fault = consult(
                self.inner, lambda: self.inner.aggregate_evaluate(server_round, messages), lambda _: ()
            )
            report = failed(report, fault) if fault else report
        self.defence.publish(report)
        return metrics

    def _hand_back(
        self, read: list[Reply], vectors: list[npt.NDArray[Any]], loans: dict[int, Loan], outcome: Outcome
    ) -> None:
        """Give kept replies their values back, one by one, and let the vectors go."""
        assert self._sent is not None
        records = claimed_metrics(outcome.kept, self.weighted_by_key, outcome.claims)
        kept = {id(reply): record for reply, record in zip(outcome.kept, records, strict=True)}
        configs = shared_configs(outcome.kept)
        for reply in [reply for reply in read if not reply.fault]:
            vector = vectors.pop(0)
            if id(reply) in kept:
                loans[id(reply)].restore(vector, self._sent, kept[id(reply)], configs)

    def _prepare(self, arrays: ArrayRecord) -> None:
        self._plain.begin()
        self._first = model_form({name: array.data for name, array in arrays.items()})
        self.defence.warm_up(self._first.dtype)

    def _writer(self) -> str:
        return "Guard of " + " of ".join(type(strategy).__name__ for strategy in layers(self.inner))

    def _memory(self) -> tuple[Mapping[str, npt.NDArray[Any]], Mapping[str, Any]]:
        return inner_memory(self.inner), self._plain.values()

    def _recall(self, state: ServerState) -> None:
        recall_inner(self.inner, state.memory)
        self._plain.recall(state.numbers)


def check_selects(rule: Rule) -> None:
    """Refuse rules that do not score and select clients: there would be nobody to keep from the inner strategy."""
    if not rule.scored:
        valid = ", ".join(name for name, kind in RULES.items() if kind.scored)
        raise ValueError(
            f"rule {rule.name!r} does not select clients, so it cannot guard a strategy; use one of {valid}, "
            "or RobustStrategy, which takes any rule"
        )


def _with_content(message: Message, content: RecordDict) -> Message:
    """Return a copy of a message with other content."""
    changed = copy.copy(message)
    changed.content = content
    return changed


def _values(result: tuple[ArrayRecord | None, MetricRecord | None]) -> Iterator[npt.NDArray[Any]]:
    arrays, _ = result
    return (array.numpy() for array in (() if arrays is None else arrays.values()))
