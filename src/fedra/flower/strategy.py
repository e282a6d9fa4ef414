"""RobustStrategy: any rule of the registry with any server optimizer, on Flower's Message API."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

from fedra.alarms import WarningLimits
from fedra.audit import AuditTarget, with_audit
from fedra.flower.consult import LOGGER, call_metrics
from fedra.flower.defended import Aggregated, Defended
from fedra.flower.messages import drop_arrays, weighted_contents
from fedra.flower.npy import flat_model
from fedra.optimizers import ServerOptimizer
from fedra.rules import DEFAULT_RULE, Rule
from fedra.server import Observer, RoundRecord
from fedra.server.core import Server
from fedra.server.disk import OnDiskError
from fedra.server.replies import Reply
from fedra.server.step import ServerStep


class RobustStrategy(Defended, FedAvg):
    """A Flower strategy that screens every reply, aggregates updates by a rule, and steps by a server optimizer.

    An update is a reply's arrays less those that were sent out. Floating-point arrays are aggregated and keep their
    types; others (counters, integer buffers) stay as the server has them. Replies' arrays are consumed.

    Args:
        rule: a rule, or its registry name. FedRA's N is the number of nodes the grid knows, unless the rule has it.
        server_optimizer: an optimizer, or its registry name; fed the update's negative as its gradient. "sgd" with
            lr 1 adds the update to the model.
        audit: where to append the audit trail, a path or an `AuditLog`.
        observers: who watches the run, such as trackers (`fedra.trackers`).
        on_round: called with the `RoundRecord` of each round, the same records that the audit trail holds.
        state: a file to keep model, optimizer state and the rule's memory in after each round, and to resume from.
        threads: how many threads to aggregate with; None for one per core.
        spill: a folder for replies, where the server's memory is not to grow with the number of clients.
        on_disk_error: what to do when the disk does not take the state or the audit trail: "warn" in the log and go
            on, or "stop", after all else of the round has been written.
        warn_at: beyond what a round is worth a warning, `fedra.WarningLimits`: one client's share of the result, a kept
            claim against what the update speaks for, rounds running in which a node was left out.
        fedavg: FedAvg's options, such as fraction_train, min_train_nodes, min_available_nodes, weighted_by_key.
    """

    def __init__(
        self,
        *,
        rule: Rule | str = DEFAULT_RULE,
        server_optimizer: ServerOptimizer | str = "sgd",
        audit: AuditTarget = None,
        observers: Iterable[Observer] = (),
        on_round: Callable[[RoundRecord], None] | None = None,
        state: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        spill: str | os.PathLike[str] | None = None,
        on_disk_error: OnDiskError = "warn",
        warn_at: WarningLimits | None = None,
        **fedavg: Any,
    ) -> None:
        super().__init__(**fedavg)
        self._step = ServerStep(server_optimizer, owner="RobustStrategy")
        self.server = Server(
            platform="flower",
            rule=rule,
            memory=self._step,
            observers=with_audit(audit, observers),
            on_round=on_round,
            state=state,
            threads=threads,
            spill=spill,
            on_disk_error=on_disk_error,
            warn_at=warn_at,
            logger=LOGGER,
        )

    def summary(self) -> None:
        """Log the rule, the optimizer and FedAvg's settings."""
        LOGGER.info("\t├──> Rule: %r", self.server.rule)
        LOGGER.info("\t├──> Server optimizer: %r", self._step.optimizer)
        super().summary()

    def _choose_to_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        return FedAvg.configure_train(self, server_round, arrays, config, grid)

    def _choose_to_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        return FedAvg.configure_evaluate(self, server_round, arrays, config, grid)

    def _aggregate(self, server_round: int, replies: list[Reply], sent: ArrayRecord) -> Aggregated:
        own = {name: array.data for name, array in sent.items()}
        outcome, trained, record = self.server.aggregate(
            self._step,
            server_round,
            replies,
            weights=lambda: flat_model(self.server.form, own),
            release=drop_arrays,
        )
        if trained is None:
            return Aggregated(arrays=None, record=record, metrics=lambda: None)
        arrays = ArrayRecord({name: Array(trained[name]) if name in trained else sent[name] for name in sent})

        def metrics() -> MetricRecord | None:
            contents = weighted_contents(outcome.kept, outcome.weights, self.weighted_by_key)
            return call_metrics(self.train_metrics_aggr_fn, contents, self.weighted_by_key)[0]

        return Aggregated(arrays=arrays, record=record, metrics=metrics)

    def _evaluate(
        self, server_round: int, kept: Sequence[Reply], weights: Sequence[float]
    ) -> tuple[MetricRecord | None, str]:
        contents = weighted_contents(kept, weights, self.weighted_by_key)
        return call_metrics(self.evaluate_metrics_aggr_fn, contents, self.weighted_by_key)
