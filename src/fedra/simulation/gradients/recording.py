"""What a pass over several clients' samples leaves in the result, by the layers' inputs and output gradients."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fedra.simulation.gradients.batch import Batch, Rows
from fedra.simulation.gradients.dropout import NotSegmentableError
from fedra.simulation.gradients.layers import WriteRows
from fedra.simulation.gradients.turns import Turn


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A module with trainable parameters: how to write their gradients, and each one's columns in the result."""

    module: nn.Module
    write_rows: WriteRows
    columns: dict[str, tuple[int, torch.Size]]

    def rows(self, out: Tensor) -> Rows:
        """Return the parameters' parts of the result as (clients, *shape) views."""
        return {
            name: out[:, first : first + shape.numel()].view(len(out), *shape)
            for name, (first, shape) in self.columns.items()
        }


class Recorder:
    """Watches the layers of a model, for passes that say so and in their threads alone; other passes go by unseen."""

    def __init__(self, layers: Sequence[Layer]):
        self._layers = layers
        self._watching = threading.local()
        self._anchor = torch.zeros((), requires_grad=True)

    @contextlib.contextmanager
    def hooked(self) -> Iterator[None]:
        """Be there, whatever passes run meanwhile."""
        with contextlib.ExitStack() as stack:
            for layer in self._layers:
                handle = layer.module.register_forward_hook(functools.partial(self._tap, layer))
                stack.callback(handle.remove)
            yield

    def write(self, batch: Batch, out: Tensor, turn: Turn | None, forward: Callable[[], Tensor], scale: Tensor) -> None:
        """Write the rows of a batch's clients, from the losses of its samples and the weight of each in the result."""
        recorded = _RecordedBatch(batch, out, turn)
        self._watching.batch = recorded
        try:
            losses = forward()
        finally:
            self._watching.batch = None
        if losses.requires_grad:
            # Only the way to the anchor, which every layer has: nothing computes the gradients of parameters, which
            # need not be frozen for it, and may be in use by other passes.
            torch.autograd.grad(losses, self._anchor, scale, allow_unused=True)
        for layer in self._layers:
            recorded.finish(layer)

    def _tap(self, layer: Layer, module: nn.Module, arguments: tuple[Any, ...], output: Tensor) -> Tensor | None:
        recorded: _RecordedBatch | None = getattr(self._watching, "batch", None)
        if recorded is None:
            return None
        inputs = arguments[0].detach()
        if inputs.dim() < 2 or len(inputs) != recorded.batch.size:
            raise NotSegmentableError(
                f"{type(module).__name__} is given {tuple(inputs.shape)} in a batch of {recorded.batch.size} samples"
            )
        recorded.used[module] += 1
        record = functools.partial(recorded.write, layer, inputs)
        return _Tap.apply(output, self._anchor, record)  # type: ignore[no-any-return,no-untyped-call]


class _RecordedBatch:
    """A batch on its way: how often each layer was used in it, and how often its rows were written since."""

    def __init__(self, batch: Batch, out: Tensor, turn: Turn | None):
        self.batch = batch
        self.used: Counter[nn.Module] = Counter()
        self._written: Counter[nn.Module] = Counter()
        self._out = out
        self._turn = turn

    def write(self, layer: Layer, inputs: Tensor, grads: Tensor) -> None:
        """Write the layer's rows, after the batch before has written its own where one client is in both."""
        module = layer.module
        again = self._written[module] > 0
        if self._turn is not None and not again:
            self._turn.wait(module)
        self._written[module] += 1
        layer.write_rows(module, inputs, grads, self.batch.again() if again else self.batch, layer.rows(self._out))
        if self._turn is not None and self._written[module] == self.used[module]:
            self._turn.done(module)

    def finish(self, layer: Layer) -> None:
        """Clear the rows of a layer that had no part in this batch's loss."""
        if not self._written[layer.module]:
            for rows in layer.rows(self._out).values():
                rows.index_fill_(0, self.batch.first_clients, 0.0)


class _Tap(torch.autograd.Function):
    """The identity, which hands the gradient of its output to `record` on the way back.

    The anchor makes the output of a first layer require a gradient although nothing before it does.
    """

    @staticmethod
    def forward(ctx: Any, output: Tensor, anchor: Tensor, record: Callable[[Tensor], None]) -> Tensor:
        ctx.record = record
        # An alias that autograd does not take for a view, so that an activation may overwrite it in place.
        return output.data

    @staticmethod
    def backward(ctx: Any, grads: Tensor) -> tuple[Tensor, None, None]:
        ctx.record(grads)
        return grads, None, None
