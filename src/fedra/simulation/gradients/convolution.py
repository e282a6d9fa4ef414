"""Per-client weight gradients of convolutions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.grad import conv2d_weight

from fedra.simulation.gradients.batch import Batch, Rows, Segment, write, write_samples

LARGE_SEGMENT = 16
"""From this many samples on, torch's own weight gradient beats unfolding; below, its cost per call does not pay."""

BLOCK_ELEMENTS = 1 << 18
"""Elements of an unfolded input made at a time: few enough to stay in a core's cache until multiplied."""


def write_convolution(layer: nn.Conv1d | nn.Conv2d, inputs: Tensor, grads: Tensor, batch: Batch, rows: Rows) -> None:
    """Write G'U for each client's samples, U the unfolded input, and the sum of G for the bias."""
    if isinstance(layer, nn.Conv1d):
        inputs, grads = inputs.unsqueeze(2), grads.unsqueeze(2)
    if "weight" in rows:
        weight = rows["weight"].unsqueeze(3) if isinstance(layer, nn.Conv1d) else rows["weight"]
        problem = _Problem.of(layer, _padded(layer, inputs), grads, weight)
        small = []
        for segment in batch.segments:
            if layer.groups > 1 or segment.stop - segment.start >= LARGE_SEGMENT:
                _write_direct(problem, segment)
            else:
                small.append(segment)
        write_unfolded = _write_channels_last if problem.channels_make_longer_runs else _write_channels_first
        for block in _adjacent_blocks(small, problem.samples_per_block):
            write_unfolded(problem, block)
    if "bias" in rows:
        write_samples(rows["bias"], batch, grads.permute(0, 2, 3, 1).flatten(1, 2).sum(1))


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """A two-dimensional convolution without padding; `weight` holds the result, a leading axis of clients."""

    inputs: Tensor
    grads: Tensor
    weight: Tensor
    stride: tuple[int, int]
    dilation: tuple[int, int]
    groups: int

    @classmethod
    def of(cls, layer: nn.Conv1d | nn.Conv2d, inputs: Tensor, grads: Tensor, weight: Tensor) -> _Problem:
        stride, dilation = ((1, 1, *sizes)[-2:] for sizes in (layer.stride, layer.dilation))
        return cls(
            inputs=inputs,
            grads=grads,
            weight=weight,
            stride=(stride[0], stride[1]),
            dilation=(dilation[0], dilation[1]),
            groups=layer.groups,
        )

    @property
    def kernel_elements(self) -> int:
        return self.weight.shape[2:].numel()

    @property
    def pixels(self) -> int:
        return self.grads.shape[2:].numel()

    @property
    def samples_per_block(self) -> int:
        return max(1, BLOCK_ELEMENTS // (self.pixels * self.kernel_elements))

    @property
    def channels_make_longer_runs(self) -> bool:
        return self.weight.shape[2] * self.weight.shape[4] >= self.grads.shape[3]


def _write_direct(problem: _Problem, segment: Segment) -> None:
    gradient = conv2d_weight(  # type: ignore[no-untyped-call]
        problem.inputs[segment.start : segment.stop],
        tuple(problem.weight.shape[1:]),
        problem.grads[segment.start : segment.stop],
        stride=problem.stride,
        dilation=problem.dilation,
        groups=problem.groups,
    )
    write(problem.weight, segment, gradient)


def _write_channels_last(problem: _Problem, block: Sequence[Segment]) -> None:
    """Unfold to one line per output pixel, in runs over kernel columns and channels.

    The weight has its channels before its kernel: either the lines or the result must be reordered, whichever is less.
    """
    begin, end = block[0].start, block[-1].stop
    _, out_channels, in_channels, kernel_height, kernel_width = problem.weight.shape
    height, width = problem.grads.shape[2:]
    inputs = problem.inputs[begin:end].permute(0, 2, 3, 1).contiguous()
    sample, row, column, channel = inputs.stride()
    (down, right), (dilation_down, dilation_right) = problem.stride, problem.dilation
    windows = inputs.as_strided(
        (end - begin, height, width, kernel_height, kernel_width, in_channels),
        (sample, row * down, column * right, row * dilation_down, column * dilation_right, channel),
    )
    reorder_lines = (end - begin) * problem.pixels <= len(block) * out_channels
    if reorder_lines:
        windows = windows.permute(0, 1, 2, 5, 3, 4)
    unfolded = windows.reshape(-1, problem.kernel_elements)
    lines = problem.grads[begin:end].permute(0, 2, 3, 1).reshape(-1, out_channels)
    sums = lines.new_empty(len(block), out_channels, problem.kernel_elements)
    first = 0
    for size, run in itertools.groupby(block, lambda segment: segment.stop - segment.start):
        count, rows = len(list(run)), size * problem.pixels
        start = (block[first].start - begin) * problem.pixels
        span = slice(start, start + count * rows)
        torch.bmm(
            lines[span].view(count, rows, -1).transpose(1, 2),
            unfolded[span].view(count, rows, -1),
            out=sums[first : first + count],
        )
        first += count
    if reorder_lines:
        shaped = sums.view(-1, out_channels, in_channels, kernel_height, kernel_width)
    else:
        shaped = sums.view(-1, out_channels, kernel_height, kernel_width, in_channels).permute(0, 1, 4, 2, 3)
    for segment, gradient in zip(block, shaped, strict=True):
        write(problem.weight, segment, gradient)


def _write_channels_first(problem: _Problem, block: Sequence[Segment]) -> None:
    """Unfold each sample to one line per kernel element, in runs over output columns."""
    begin, end = block[0].start, block[-1].stop
    _, out_channels, in_channels, kernel_height, kernel_width = problem.weight.shape
    height, width = problem.grads.shape[2:]
    inputs = problem.inputs[begin:end].contiguous()
    sample, channel, row, column = inputs.stride()
    (down, right), (dilation_down, dilation_right) = problem.stride, problem.dilation
    windows = inputs.as_strided(
        (end - begin, in_channels, kernel_height, kernel_width, height, width),
        (sample, channel, row * dilation_down, column * dilation_right, row * down, column * right),
    )
    unfolded = windows.reshape(end - begin, problem.kernel_elements, problem.pixels)
    lines = problem.grads[begin:end].permute(0, 2, 3, 1).reshape(end - begin, problem.pixels, out_channels)
    products = torch.bmm(unfolded, lines)
    owners = torch.repeat_interleave(torch.tensor([stop - start for _, start, stop, _ in block]))
    sums = products.new_zeros(len(block), *products.shape[1:]).index_add_(0, owners, products)
    shaped = sums.transpose(1, 2).reshape(-1, out_channels, in_channels, kernel_height, kernel_width)
    for segment, gradient in zip(block, shaped, strict=True):
        write(problem.weight, segment, gradient)


def _adjacent_blocks(segments: Sequence[Segment], samples: int) -> Iterator[list[Segment]]:
    """Group segments that follow each other without a gap, up to a number of samples or one segment."""
    block: list[Segment] = []
    for segment in segments:
        if block and (segment.start != block[-1].stop or segment.stop - block[0].start > samples):
            yield block
            block = []
        block.append(segment)
    if block:
        yield block


def _padded(layer: nn.Conv1d | nn.Conv2d, inputs: Tensor) -> Tensor:
    sides: list[int] = []
    for axis in reversed(range(len(layer.kernel_size))):
        if layer.padding == "same":
            total = layer.dilation[axis] * (layer.kernel_size[axis] - 1)
            sides += [total // 2, total - total // 2]
        elif layer.padding != "valid":
            sides += [int(layer.padding[axis])] * 2
    if not any(sides):
        return inputs
    if layer.padding_mode == "zeros":
        return F.pad(inputs, sides)
    if isinstance(layer, nn.Conv1d):
        return F.pad(inputs.squeeze(2), sides, mode=layer.padding_mode).unsqueeze(2)
    return F.pad(inputs, sides, mode=layer.padding_mode)
