"""Gradients by one pass per client, which any model allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedra.models import trainable_parameters
from fedra.simulation.gradients.dropout import ClientDropout, DropoutGenerators

Loss = Callable[[Tensor, Tensor], Tensor]
"""Maps the model's output and the labels to one loss per sample."""


def cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy of each sample."""
    return F.cross_entropy(scores, labels, reduction="none")


@dataclass(frozen=True, kw_only=True)
class Work:
    """Samples in client order, client i's being [offsets[i], offsets[i + 1]), and how to weigh and drop them."""

    inputs: Tensor
    labels: Tensor
    offsets: Sequence[int]
    loss: Loss
    dropout: DropoutGenerators | None
    memory_format: torch.memory_format

    def batch(self, positions: Tensor | slice) -> tuple[Tensor, Tensor]:
        """Copy samples, so that the bits never depend on how the caller's arrays lie in memory."""
        inputs = self.inputs[positions]
        laid_out = torch.empty(inputs.shape, dtype=inputs.dtype, memory_format=self.memory_format)
        return laid_out.copy_(inputs), self.labels[positions]


def loop_gradients(model: nn.Module, work: Work, out: Tensor) -> None:
    """Write each client's gradient by a pass of its own, which any model allows; buffers stay as they are."""
    parameters = trainable_parameters(model)
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    dropout = ClientDropout(work.dropout)
    for client, (start, stop) in enumerate(zip(work.offsets, work.offsets[1:], strict=False)):
        if start == stop:
            out[client].zero_()
            continue
        inputs, labels = work.batch(slice(start, stop))
        with dropout.seeded(client), dropout.forward_pass([(client, stop - start)]):
            loss = work.loss(model(inputs), labels).mean()
        grads = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
        torch.cat([grad.reshape(-1) for grad in grads], out=out[client])
        for buffer, before in buffers:
            buffer.copy_(before)
