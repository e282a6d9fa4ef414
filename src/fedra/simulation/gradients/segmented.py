"""Gradients of all clients by one forward and one backward pass over everybody's samples."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from fedra.models import trainable_parameters
from fedra.simulation.gradients.batch import Batch, Rows, Segment
from fedra.simulation.gradients.dropout import ClientDropout, NotSegmentableError
from fedra.simulation.gradients.layers import WRITE_ROWS, WriteRows
from fedra.simulation.gradients.loop import Work
from fedra.simulation.gradients.turns import Crew, Pass, Turn

IntArray = npt.NDArray[np.int64]


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


def segmentable_layers(model: nn.Module) -> list[Layer]:
    """Return the layers of a model whose gradients can be taken for all clients at once, or say which module cannot."""
    first_columns: dict[nn.Parameter, int] = {}
    total = 0
    for parameter in trainable_parameters(model):
        first_columns[parameter] = total
        total += parameter.numel()
    layers = []
    owners: dict[nn.Parameter, str] = {}
    for name, module in model.named_modules():
        own = {key: value for key, value in module.named_parameters(recurse=False) if value.requires_grad}
        label = f"{name or 'the model itself'} ({type(module).__name__})"
        _require_separable(label, module, bool(own))
        for key, parameter in own.items():
            if parameter in owners:
                raise NotSegmentableError(f"{label} shares its {key} with {owners[parameter]}")
            owners[parameter] = label
        if own:
            columns = {key: (first_columns[parameter], parameter.shape) for key, parameter in own.items()}
            layers.append(Layer(module=module, write_rows=WRITE_ROWS[type(module)], columns=columns))
    return layers


def _require_separable(label: str, module: nn.Module, trained: bool) -> None:
    if isinstance(module, _BatchNorm):
        raise NotSegmentableError(f"{label} may mix the samples of a batch")
    if isinstance(module, _InstanceNorm) and module.track_running_stats:
        raise NotSegmentableError(f"{label} keeps running statistics of the batch")
    if not trained:
        return
    if type(module) not in WRITE_ROWS or set(module._parameters) - {"weight", "bias"}:
        raise NotSegmentableError(f"{label} is not one of {', '.join(kind.__name__ for kind in WRITE_ROWS)}")
    if isinstance(module, nn.Embedding) and (module.max_norm or module.scale_grad_by_freq or module.sparse):
        raise NotSegmentableError(f"{label} uses max_norm, scale_grad_by_freq or sparse gradients")


LARGE_CLIENT = 48
"""From this many samples on, a client is better off with passes of its own."""


@dataclass(frozen=True, kw_only=True)
class SegmentedEngine:
    """One forward and one backward over chunks of all clients' samples; parameter gradients by client segment.

    Backward carries dL/d(output) only. Each layer turns it and the layer's input into per-client parameter
    gradients on the way, so that no gradient per sample is ever stored. A chunk may split a client. Large clients
    have chunks of their own, where autograd sums for one client anyway.

    Several threads take a chunk each. Where a chunk goes on with a client of the one before, it waits for that one's
    masks and sums layer by layer, so that the bits are those of one thread.
    """

    layers: Sequence[Layer]
    chunk: int
    crew: Crew = field(default_factory=lambda: Crew(1))

    def __call__(self, model: nn.Module, work: Work, out: Tensor) -> None:
        """Write each client's gradient of its mean loss."""
        sizes = np.diff(work.offsets)
        out.index_fill_(0, torch.from_numpy(np.flatnonzero(sizes == 0)), 0.0)
        # Clients of one size lie side by side, so that layers can treat them in one operation.
        order = np.argsort(sizes, kind="stable")[np.count_nonzero(sizes == 0) :]
        shared = order[sizes[order] < LARGE_CLIENT]
        if len(shared) < 3:
            shared = shared[:0]
        dropout = ClientDropout(work.dropout)
        with dropout.seeded(int(order[0])):
            alone = order[len(shared) :]
            # Side by side the longest go first, so that no thread is left with one in the end.
            self._write_alone(model, work, dropout, (alone if self.crew.threads == 1 else alone[::-1]).tolist(), out)
            if len(shared):
                with _frozen(model):
                    self._write_shared(model, work, dropout, shared, out)

    def _write_alone(
        self, model: nn.Module, work: Work, dropout: ClientDropout, clients: Sequence[int], out: Tensor
    ) -> None:
        passes: list[Pass] = []
        for client in clients:
            total = work.offsets[client + 1] - work.offsets[client]
            for start, stop in _chunks(total, self.chunk):
                write = functools.partial(_write_part, model, work, dropout, client, start, stop, out[client])
                passes.append(Pass(run=write, before=len(passes) - 1 if start else None))
        self.crew.run(passes)

    def _write_shared(
        self, model: nn.Module, work: Work, dropout: ClientDropout, clients: IntArray, out: Tensor
    ) -> None:
        firsts = np.asarray(work.offsets)[clients]
        sizes = np.asarray(work.offsets)[clients + 1] - firsts
        ends = sizes.cumsum()
        owners = torch.from_numpy(np.repeat(clients, sizes))
        positions = torch.arange(len(owners)) + torch.from_numpy(np.repeat(firsts - ends + sizes, sizes))
        scale = torch.from_numpy(np.repeat(1.0 / sizes, sizes)).to(out.dtype)
        recorder = _Recorder(out)

        def write(start: int, stop: int, segments: Sequence[Segment], turn: Turn | None) -> None:
            first_clients = torch.tensor([segment.client for segment in segments if segment.first])
            batch = Batch(segments=segments, owners=owners[start:stop], first_clients=first_clients.long())
            recorder.begin(batch, turn)
            spans = [(client, last - first) for client, first, last, _ in segments]
            losses = _losses(model, work, dropout.in_turn(turn), positions[start:stop], spans)
            if losses.requires_grad:
                torch.autograd.backward(losses, scale[start:stop])
            recorder.finish(self.layers)

        passes: list[Pass] = []
        for start, stop in _chunks(len(owners), self.chunk):
            segments = _segments(clients, ends, start, stop)
            before = None if segments[0].first else len(passes) - 1
            passes.append(Pass(run=functools.partial(write, start, stop, segments), before=before))
        with _hooked(self.layers, recorder):
            self.crew.run(passes)


def _write_part(
    model: nn.Module,
    work: Work,
    dropout: ClientDropout,
    client: int,
    start: int,
    stop: int,
    row: Tensor,
    turn: Turn | None,
) -> None:
    """Set one client's row, or add to it, by the samples [start, stop) of its own."""
    first, total = work.offsets[client], work.offsets[client + 1] - work.offsets[client]
    positions = torch.arange(first + start, first + stop)
    losses = _losses(model, work, dropout.in_turn(turn), positions, [(client, stop - start)])
    scale = torch.full_like(losses, 1.0 / total)
    grads = torch.autograd.grad(losses, trainable_parameters(model), scale, allow_unused=True, materialize_grads=True)
    flat = torch.cat([grad.reshape(-1) for grad in grads])
    if turn is not None:
        turn.wait("row")
    if start == 0:
        row.copy_(flat)
    else:
        row.add_(flat)
    if turn is not None:
        turn.done("row")


def _losses(
    model: nn.Module, work: Work, dropout: ClientDropout, positions: Tensor, spans: Sequence[tuple[int, int]]
) -> Tensor:
    inputs, labels = work.batch(positions)
    with dropout.forward_pass(spans):
        losses = work.loss(model(inputs), labels)
    if losses.shape != positions.shape:
        raise ValueError(f"the loss must have one value for each of {len(positions)} samples, got {losses.shape}")
    return losses


class _Recorder:
    """Receives the layers' inputs and output gradients of batches, one in each thread, and writes the result's rows."""

    def __init__(self, out: Tensor):
        self._out = out
        self._current = threading.local()
        self._anchor = torch.zeros((), requires_grad=True)

    def begin(self, batch: Batch, turn: Turn | None) -> None:
        """Take what this thread's forward pass does, from now on, for that of a batch."""
        self._current.batch = _RecordedBatch(batch, turn)

    def finish(self, layers: Sequence[Layer]) -> None:
        """Clear the rows of layers that had no part in this batch's loss."""
        current: _RecordedBatch = self._current.batch
        for layer in layers:
            if not current.written[layer.module]:
                for rows in layer.rows(self._out).values():
                    rows.index_fill_(0, current.batch.first_clients, 0.0)

    def hook(self, layer: Layer) -> Callable[[nn.Module, tuple[Any, ...], Tensor], Tensor]:
        rows = layer.rows(self._out)

        def tap(module: nn.Module, arguments: tuple[Any, ...], output: Tensor) -> Tensor:
            current: _RecordedBatch = self._current.batch
            inputs = arguments[0].detach()
            if inputs.dim() < 2 or len(inputs) != current.batch.size:
                raise NotSegmentableError(
                    f"{type(module).__name__} is given {tuple(inputs.shape)} in a batch of {current.batch.size} samples"
                )
            current.used[module] += 1
            record = functools.partial(current.write, layer, rows, inputs)
            return _Tap.apply(output, self._anchor, record)  # type: ignore[no-any-return,no-untyped-call]

        return tap


class _RecordedBatch:
    """A batch on its way: how often each layer was used in it, and how often its rows were written since."""

    def __init__(self, batch: Batch, turn: Turn | None):
        self.batch = batch
        self.used: Counter[nn.Module] = Counter()
        self.written: Counter[nn.Module] = Counter()
        self._turn = turn

    def write(self, layer: Layer, rows: Rows, inputs: Tensor, grads: Tensor) -> None:
        """Write the layer's rows, after the batch before has written its own where one client is in both."""
        module = layer.module
        again = self.written[module] > 0
        if self._turn is not None and not again:
            self._turn.wait(module)
        self.written[module] += 1
        layer.write_rows(module, inputs, grads, self.batch.again() if again else self.batch, rows)
        if self._turn is not None and self.written[module] == self.used[module]:
            self._turn.done(module)


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


@contextlib.contextmanager
def _frozen(model: nn.Module) -> Iterator[None]:
    parameters = trainable_parameters(model)
    try:
        for parameter in parameters:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)


@contextlib.contextmanager
def _hooked(layers: Sequence[Layer], recorder: _Recorder) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for layer in layers:
            handle = layer.module.register_forward_hook(recorder.hook(layer))
            stack.callback(handle.remove)
        yield


def _chunks(total: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut [0, total) into the fewest ranges of at most `size`, as equal as can be."""
    count = -(-total // size)
    for number in range(count):
        yield total * number // count, total * (number + 1) // count


def _segments(order: IntArray, ends: IntArray, start: int, stop: int) -> list[Segment]:
    """Return the clients' shares of [start, stop), counted from start, where order[i]'s samples end at ends[i]."""
    first = int(np.searchsorted(ends, start, side="right"))
    last = int(np.searchsorted(ends, stop, side="left"))
    cuts = np.minimum(ends[first : last + 1] - start, stop - start).tolist()
    continued = start > (ends[first - 1] if first else 0)
    return [
        Segment(client, begin, end, number > 0 or not continued)
        for number, (client, begin, end) in enumerate(
            zip(order[first : last + 1].tolist(), [0, *cuts], cuts, strict=False)
        )
    ]
