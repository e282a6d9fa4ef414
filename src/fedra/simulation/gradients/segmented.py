"""Gradients of all clients by one forward and one backward pass over everybody's samples."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from fedra.models import trainable_parameters
from fedra.simulation.gradients.batch import Batch, Segment
from fedra.simulation.gradients.dropout import ClientDropout, NotSegmentableError
from fedra.simulation.gradients.layers import WRITE_ROWS
from fedra.simulation.gradients.loop import Work
from fedra.simulation.gradients.recording import Layer, Recorder
from fedra.simulation.gradients.turns import Crew, Pass, Turn

IntArray = npt.NDArray[np.int64]


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

    Several threads take a chunk each, of whichever cohort. Where a chunk goes on with a client of the one before, it
    waits for that one's masks and sums layer by layer, so that the bits are those of one thread.
    """

    layers: Sequence[Layer]
    chunk: int
    crew: Crew = field(default_factory=lambda: Crew(1))

    def __call__(self, model: nn.Module, *cohorts: tuple[Work, Tensor]) -> None:
        """Write each client's gradient of its mean loss; of several cohorts only where a crew has several threads."""
        recorder = Recorder(self.layers)
        passes: list[Pass] = []
        with contextlib.ExitStack() as stack:
            for work, out in cohorts:
                sizes = np.diff(work.offsets)
                out.index_fill_(0, torch.from_numpy(np.flatnonzero(sizes == 0)), 0.0)
                # Clients of one size lie side by side, so that layers can treat them in one operation.
                order = np.argsort(sizes, kind="stable")[np.count_nonzero(sizes == 0) :]
                shared = order[sizes[order] < LARGE_CLIENT]
                if len(shared) < 3:
                    shared = shared[:0]
                dropout = ClientDropout(work.dropout)
                stack.enter_context(dropout.seeded(int(order[0])))
                passes += _alone(model, work, dropout, order[len(shared) :].tolist(), out, self.chunk)
                passes += _shared(model, work, dropout, shared, out, self.chunk, recorder)
            stack.enter_context(recorder.hooked())
            self.crew.run(passes)


def _alone(
    model: nn.Module, work: Work, dropout: ClientDropout, clients: Sequence[int], out: Tensor, chunk: int
) -> Iterator[Pass]:
    for client in clients:
        for start, stop in _chunks(work.offsets[client + 1] - work.offsets[client], chunk):
            write = functools.partial(_write_part, model, work, dropout, client, start, stop, out[client])
            yield Pass(run=write, size=stop - start, continues=start > 0)


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
    losses = _losses(model, work, dropout.in_turn(turn), slice(first + start, first + stop), [(client, stop - start)])
    scale = torch.full_like(losses, 1.0 / total)
    grads = torch.autograd.grad(losses, trainable_parameters(model), scale, allow_unused=True, materialize_grads=True)
    if turn is not None:
        turn.wait("row")
    flat = [grad.reshape(-1) for grad in grads]
    if start == 0:
        torch.cat(flat, out=row)
    else:
        row.add_(torch.cat(flat))
    if turn is not None:
        turn.done("row")


def _shared(
    model: nn.Module,
    work: Work,
    dropout: ClientDropout,
    clients: IntArray,
    out: Tensor,
    chunk: int,
    recorder: Recorder,
) -> Iterator[Pass]:
    firsts = np.asarray(work.offsets)[clients]
    sizes = np.asarray(work.offsets)[clients + 1] - firsts
    ends = sizes.cumsum()
    owners = torch.from_numpy(np.repeat(clients, sizes))
    positions = torch.arange(len(owners)) + torch.from_numpy(np.repeat(firsts - ends + sizes, sizes))
    scale = torch.from_numpy(np.repeat(1.0 / sizes, sizes)).to(out.dtype)

    def write(start: int, stop: int, segments: Sequence[Segment], turn: Turn | None) -> None:
        first_clients = torch.tensor([segment.client for segment in segments if segment.first])
        batch = Batch(segments=segments, owners=owners[start:stop], first_clients=first_clients.long())
        spans = [(client, last - first) for client, first, last, _ in segments]
        forward = functools.partial(_losses, model, work, dropout.in_turn(turn), positions[start:stop], spans)
        recorder.write(batch, out, turn, forward, scale[start:stop])

    for start, stop in _chunks(len(owners), chunk):
        segments = _segments(clients, ends, start, stop)
        run = functools.partial(write, start, stop, segments)
        yield Pass(run=run, size=stop - start, continues=not segments[0].first)


def _losses(
    model: nn.Module, work: Work, dropout: ClientDropout, positions: Tensor | slice, spans: Sequence[tuple[int, int]]
) -> Tensor:
    inputs, labels = work.batch(positions)
    with dropout.forward_pass(spans):
        losses = work.loss(model(inputs), labels)
    if losses.shape != labels.shape[:1]:
        raise ValueError(f"the loss must have one value for each of {len(labels)} samples, got {losses.shape}")
    return losses


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
