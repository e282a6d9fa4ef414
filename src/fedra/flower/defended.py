"""What both strategies of Flower's Message API do around a round, and a start that resumes from a saved state."""

from __future__ import annotations

import contextlib
import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from fedra.flower.messages import read_messages, round_figures, sent_array_key
from fedra.flower.npy import npy_model_form
from fedra.flower.spilling import SpillingGrid
from fedra.server.core import Server
from fedra.server.metrics import plain_numbers
from fedra.server.records import RoundRecord
from fedra.server.replies import Reply

EvaluateFn = Callable[[int, ArrayRecord], MetricRecord | None]


@dataclass(frozen=True, kw_only=True)
class Aggregated:
    """What came of a training round: the new model or None, the record, and how to get the metrics."""

    arrays: ArrayRecord | None
    record: RoundRecord
    metrics: Callable[[], MetricRecord | None]


class Defended(Strategy):
    """A strategy that screens and judges every reply, saves its state after each round, and resumes from it.

    Flower counts rounds from 1 in every start; `server.done` rounds were done before, and are added to its count.
    """

    server: Server
    weighted_by_key: str
    _sent: ArrayRecord | None = None
    _array_key: str = "arrays"

    @abstractmethod
    def _choose_to_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return the messages of a training round."""

    @abstractmethod
    def _choose_to_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return the messages of an evaluation round."""

    @abstractmethod
    def _aggregate(self, server_round: int, replies: list[Reply], sent: ArrayRecord) -> Aggregated:
        """Make a model of what could be read of a round's replies."""

    @abstractmethod
    def _evaluate(
        self, server_round: int, kept: Sequence[Reply], weights: Sequence[float]
    ) -> tuple[MetricRecord | None, str]:
        """Return the metrics of an evaluation round, or why there are none."""

    def _aggregate_nobody(self, server_round: int) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Return what becomes of a training round in which nobody was asked."""
        return None, None

    def _evaluate_nobody(self, server_round: int) -> MetricRecord | None:
        """Return what becomes of an evaluation round in which nobody was asked."""
        return None

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Choose nodes, and remember what they are sent."""
        messages = list(self._choose_to_train(server_round + self.server.done, arrays, config, grid))
        self._sent = arrays.copy()
        self._array_key = sent_array_key(messages)
        asked = {message.metadata.dst_node_id for message in messages}
        self.server.ask(
            npy_model_form({name: array.data for name, array in arrays.items()}, self.server.first),
            asked,
            known=len(asked.union(grid.get_node_ids())),
            run=str(messages[0].metadata.run_id) if messages else "",
        )
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Screen and aggregate a round; no arrays where it changed nothing, and never an error because of a client."""
        if self._sent is None:
            raise RuntimeError("aggregate_train needs the arrays that were sent; call configure_train first")
        server_round += self.server.done
        if not self.server.asked:
            return self._aggregate_nobody(server_round)
        read = read_messages(
            replies,
            weight_key=self.weighted_by_key,
            asked=self.server.asked,
            model=self.server.form,
            array_key=self._array_key,
        )
        made = self._aggregate(server_round, read, self._sent)
        model = self._sent if made.arrays is None else made.arrays
        self.server.save(server_round, lambda: {name: array.numpy() for name, array in model.items()})
        metrics = made.metrics()
        self.server.publish(dataclasses.replace(made.record, metrics=plain_numbers(metrics)))
        metrics = MetricRecord() if metrics is None else metrics
        metrics.update(round_figures(made.record))
        return made.arrays, metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Choose nodes."""
        messages = list(self._choose_to_evaluate(server_round + self.server.done, arrays, config, grid))
        self.server.asked = frozenset(message.metadata.dst_node_id for message in messages)
        return messages

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Evaluate by the metrics of screened replies, each under the weight of the training round."""
        server_round += self.server.done
        if not self.server.asked:
            return self._evaluate_nobody(server_round)
        read = read_messages(replies, weight_key=self.weighted_by_key, asked=self.server.asked, model=None)
        kept, weights, record = self.server.defence.judge_evaluation(server_round, read)
        metrics = None
        if kept:
            metrics, fault = self._evaluate(server_round, kept, weights)
            record = record.failed(fault) if fault else record
        self.server.publish(dataclasses.replace(record, metrics=plain_numbers(metrics)))
        return metrics

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: EvaluateFn | None = None,
    ) -> Result:
        """Run the strategy as Flower does, from the saved state where there is one; `num_rounds` counts all rounds."""
        form = npy_model_form({name: array.data for name, array in initial_arrays.items()})
        saved = self.server.begin(form, rounds=num_rounds)
        if saved is not None:
            initial_arrays = ArrayRecord({name: Array(array) for name, array in saved.arrays.items()})
        done = self.server.done
        summary: dict[str, float] = {}
        try:
            result = super().start(
                grid if self.server.spill is None else SpillingGrid(grid, self.server.spill),
                initial_arrays,
                max(0, num_rounds - done),
                timeout,
                train_config,
                evaluate_config,
                None if evaluate_fn is None else lambda number, arrays: evaluate_fn(number + done, arrays),
            )
            if not len(result.arrays):
                result.arrays = initial_arrays
            for metrics in (
                result.train_metrics_clientapp,
                result.evaluate_metrics_clientapp,
                result.evaluate_metrics_serverapp,
            ):
                renumbered = {number + done: record for number, record in metrics.items()}
                metrics.clear()
                metrics.update(renumbered)
                summary |= plain_numbers(renumbered[max(renumbered)]) if renumbered else {}
        except BaseException:
            with contextlib.suppress(OSError):  # logged; what ended the run is what is raised
                self.server.end()
            raise
        self.server.end(summary)
        return result
