"""Per-client parameter gradients of single layers, from what went in and the gradient of what came out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from fedra.simulation.gradients.batch import Batch, Rows, write_samples
from fedra.simulation.gradients.convolution import write_convolution

WriteRows = Callable[[Any, Tensor, Tensor, Batch, Rows], None]


def write_linear(layer: nn.Linear, inputs: Tensor, grads: Tensor, batch: Batch, rows: Rows) -> None:
    """Write G'X for each client's samples, and the sum of G for the bias."""
    positions = inputs.shape[1:-1].numel()
    flat_inputs = inputs.reshape(-1, layer.in_features)
    flat_grads = grads.reshape(-1, layer.out_features)
    if "weight" in rows:
        for client, start, stop, first in batch.segments:
            span = slice(start * positions, stop * positions)
            rows["weight"][client].addmm_(flat_grads[span].t(), flat_inputs[span], beta=0.0 if first else 1.0)
    if "bias" in rows:
        write_samples(rows["bias"], batch, flat_grads.view(batch.size, positions, -1).sum(1))


def write_embedding(layer: nn.Embedding, inputs: Tensor, grads: Tensor, batch: Batch, rows: Rows) -> None:
    """Add each position's gradient to the row of its word."""
    if layer.padding_idx is not None:
        grads = grads.masked_fill((inputs == layer.padding_idx).unsqueeze(-1), 0.0)
    rows["weight"].index_fill_(0, batch.first_clients, 0.0)
    for client, start, stop, _ in batch.segments:
        words = inputs[start:stop].reshape(-1)
        rows["weight"][client].index_add_(0, words, grads[start:stop].reshape(len(words), -1))


def write_layer_norm(layer: nn.LayerNorm, inputs: Tensor, grads: Tensor, batch: Batch, rows: Rows) -> None:
    """Write the sum of G times the normalised input, and the sum of G for the bias."""
    shape = (batch.size, -1, *layer.normalized_shape)
    if "weight" in rows:
        normalised = F.layer_norm(inputs, layer.normalized_shape, None, None, layer.eps)
        write_samples(rows["weight"], batch, (grads * normalised).reshape(shape).sum(1))
    if "bias" in rows:
        write_samples(rows["bias"], batch, grads.reshape(shape).sum(1))


def write_group_norm(layer: nn.GroupNorm, inputs: Tensor, grads: Tensor, batch: Batch, rows: Rows) -> None:
    """Write, per channel, the sum of G times the normalised input, and the sum of G for the bias."""
    shape = (batch.size, layer.num_channels, -1)
    if "weight" in rows:
        normalised = F.group_norm(inputs, layer.num_groups, None, None, layer.eps)
        write_samples(rows["weight"], batch, (grads * normalised).reshape(shape).sum(2))
    if "bias" in rows:
        write_samples(rows["bias"], batch, grads.reshape(shape).sum(2))


WRITE_ROWS: dict[type[nn.Module], WriteRows] = {
    nn.Linear: write_linear,
    nn.Conv1d: write_convolution,
    nn.Conv2d: write_convolution,
    nn.Embedding: write_embedding,
    nn.LayerNorm: write_layer_norm,
    nn.GroupNorm: write_group_norm,
}
