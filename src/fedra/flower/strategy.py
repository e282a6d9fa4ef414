"""RobustStrategy: any rule of the registry with any server optimizer, on Flower's Message API."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy.typing as npt
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

from fedra.alarms import WarningLimits
from fedra.audit import RoundReport
from fedra.flower.consult import call_metrics
from fedra.flower.defence import LOGGER, AuditTarget, Defence, failed
from fedra.flower.disk import OnDiskError
from fedra.flower.metrics import add_round, weighted_contents
from fedra.flower.model import ModelForm, model_form
from fedra.flower.replies import Reply, read_messages, sent_array_key
from fedra.flower.resume import Resumable
from fedra.flower.state import ServerState
from fedra.flower.step import ServerStep
from fedra.flower.updates import flat_model, flat_vectors
from fedra.optimizers import OptimizerState, ServerOptimizer
from fedra.rules import Rule


class RobustStrategy(Resumable, FedAvg):
    """A Flower strategy that screens every reply, aggregates updates by a rule, and steps by a server optimizer.

    An update is a reply's arrays less those that were sent out. Floating-point arrays are aggregated and keep their
    types; others (counters, integer buffers) stay as the server has them. Replies' arrays are consumed.

    Args:
        rule: a rule, or its registry name. FedRA's N is the number of nodes the grid knows, unless the rule has it.
        server_optimizer: an optimizer, or its registry name; fed the update's negative as its gradient. "sgd" with
            lr 1 adds the update to the model.
        audit: where to append the audit trail, a path or an `AuditLog`.
        on_round: called with the `RoundReport` of each round, the same records that the audit trail holds.
        state: a file to keep model and optimizer state in after each round, and to resume from.
        threads: how many threads to aggregate with; None for one per core.
        on_disk_error: what to do when the disk does not take the state or the audit trail: "warn" in the log and go
            on, or "stop", after all else of the round has been written.
        warn_at: beyond what a round is worth a warning, `fedra.WarningLimits`: one client's share of the result, a kept
            claim against what the update speaks for, rounds running in which a node was left out.
        fedavg: FedAvg's options, such as fraction_train, min_train_nodes, min_available_nodes, weighted_by_key.
    """

    def __init__(
        self,
        *,
        rule: Rule | str = "fedra",
        server_optimizer: ServerOptimizer | str = "sgd",
        audit: AuditTarget = None,
        on_round: Callable[[RoundReport], None] | None = None,
        state: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        on_disk_error: OnDiskError = "warn",
        warn_at: WarningLimits | None = None,
        **fedavg: Any,
    ) -> None:
        super().__init__(**fedavg)
        self.defence = Defence(
            rule=rule, audit=audit, on_round=on_round, threads=threads, on_disk_error=on_disk_error, warn_at=warn_at
        )
        self._step = ServerStep(server_optimizer)
        self._keep_state_at(state)
        self._sent: ArrayRecord | None = None
        self._form = ModelForm(entries=())
        self._asked: frozenset[int] = frozenset()
        self._known = 0
        self._array_key = "arrays"

    def summary(self) -> None:
        """Log the rule, the optimizer and FedAvg's settings."""
        LOGGER.info("\t├──> Rule: %r", self.defence.rule)
        LOGGER.info("\t├──> Server optimizer: %r", self._step.optimizer)
        super().summary()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Sample nodes as FedAvg does, and remember what they are sent."""
        messages = list(super().configure_train(server_round + self._done, arrays, config, grid))
        self._sent = arrays
        self._form = model_form({name: array.data for name, array in arrays.items()})
        self._asked = frozenset(message.metadata.dst_node_id for message in messages)
        self._known = len(self._asked.union(grid.get_node_ids()))
        self._array_key = sent_array_key(messages)
        self.defence.run = str(messages[0].metadata.run_id) if messages else self.defence.run
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Screen and aggregate a round; no arrays where it changed nothing, and never an error because of a client."""
        if self._sent is None:
            raise RuntimeError("aggregate_train needs the arrays that were sent; call configure_train first")
        if not self._asked:
            return None, None
        server_round += self._done
        read = read_messages(
            replies,
            weight_key=self.weighted_by_key,
            asked=self._asked,
            model=self._form,
            array_key=self._array_key,
        )
        weights = flat_model(self._form, {name: array.data for name, array in self._sent.items()})
        minus = weights if self.defence.needs_updates else None
        vectors = flat_vectors(read, self._form, minus=minus, release=_drop_arrays, threads=self.defence.threads)
        outcome = self.defence.judge(server_round, read, vectors=vectors, known=self._known)
        del vectors
        trained, report = self._step.take(weights, self._form, outcome, of_updates=minus is not None)
        arrays, metrics = None, None
        if trained is not None:
            arrays = ArrayRecord(
                {name: Array(trained[name]) if name in trained else array for name, array in self._sent.items()}
            )
        model = self._sent if arrays is None else arrays
        self.defence.publish(report, save=lambda: self._save(server_round, model))
        if arrays is not None:
            contents = weighted_contents(outcome.kept, outcome.weights, self.weighted_by_key)
            metrics, _ = call_metrics(self.train_metrics_aggr_fn, contents, self.weighted_by_key)
        return arrays, add_round(metrics, report)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Sample nodes as FedAvg does."""
        messages = list(super().configure_evaluate(server_round + self._done, arrays, config, grid))
        self._asked = frozenset(message.metadata.dst_node_id for message in messages)
        return messages

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Average the metrics of screened replies by the weights of the training round."""
        if not self._asked:
            return None
        read = read_messages(replies, weight_key=self.weighted_by_key, asked=self._asked, model=None)
        kept, weights, report = self.defence.judge_evaluation(server_round + self._done, read)
        metrics = None
        if kept:
            contents = weighted_contents(kept, weights, self.weighted_by_key)
            metrics, fault = call_metrics(self.evaluate_metrics_aggr_fn, contents, self.weighted_by_key)
            report = failed(report, fault) if fault else report
        self.defence.publish(report)
        return metrics

    def _prepare(self, arrays: ArrayRecord) -> None:
        self._step.state = None
        self.defence.warm_up(model_form({name: array.data for name, array in arrays.items()}).dtype)

    def _writer(self) -> str:
        return f"RobustStrategy with {self._step.optimizer!r}"

    def _memory(self) -> tuple[Mapping[str, npt.NDArray[Any]], Mapping[str, Any]]:
        state = self._step.state
        return ({}, {}) if state is None else (state.moments, {"step": state.step})

    def _recall(self, state: ServerState) -> None:
        if "step" in state.numbers:
            size = sum(array.size for array in state.arrays.values() if array.dtype.kind == "f")
            self._step.recall(OptimizerState(step=state.numbers["step"], moments=state.memory), size)


def _drop_arrays(reply: Reply) -> None:
    """Take a reply's arrays from its message: they were read, and all replies' together are large."""
    content = reply.message.content
    reply.message.content = RecordDict(
        {name: record for name, record in content.items() if name != reply.layout.arrays}
    )
