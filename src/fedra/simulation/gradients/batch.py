"""A batch made of several clients' samples, and where their gradients go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from fedra.models import trainable_parameters


class Segment(NamedTuple):
    """The samples [start, stop) of a batch, which belong to one client; `first` if its row holds nothing yet."""

    client: int
    start: int
    stop: int
    first: bool


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Samples of several clients in one pass: their segments, each sample's client, and the clients met first here."""

    segments: Sequence[Segment]
    owners: Tensor
    first_clients: Tensor

    @property
    def size(self) -> int:
        """Return the number of samples."""
        return len(self.owners)

    def again(self) -> Batch:
        """Return the same batch for a layer that has written its rows already."""
        segments = [segment._replace(first=False) for segment in self.segments]
        return replace(self, segments=segments, first_clients=self.first_clients[:0])


Rows = dict[str, Tensor]
"""For each trainable parameter of a module, by name: (clients, *parameter shape).

Rows are not cleared beforehand: a client's first segment overwrites, later ones add.
"""


def write(rows: Tensor, segment: Segment, values: Tensor) -> None:
    """Set or add to one client's row."""
    row = rows[segment.client]
    if segment.first:
        row.copy_(values)
    else:
        row.add_(values)


def write_samples(rows: Tensor, batch: Batch, values: Tensor) -> None:
    """Sum one value per sample into the rows of the samples' clients."""
    rows.index_fill_(0, batch.first_clients, 0.0)
    rows.index_add_(0, batch.owners, values)


def checked_offsets(inputs: Tensor, labels: Tensor, offsets: npt.ArrayLike) -> list[int]:
    """Return the offsets as integers, or say what keeps them from dividing the samples among clients."""
    bounds = np.asarray(offsets)
    if bounds.ndim != 1 or len(bounds) < 1 or not np.issubdtype(bounds.dtype, np.integer):
        raise ValueError(f"offsets must be clients + 1 integers, got {bounds.dtype} of shape {bounds.shape}")
    if len(labels) != len(inputs):
        raise ValueError(f"there are {len(inputs)} inputs but {len(labels)} labels")
    if bounds[0] != 0 or bounds[-1] != len(inputs) or (np.diff(bounds) < 0).any():
        raise ValueError(f"offsets must rise from 0 to the {len(inputs)} samples, got {bounds[0]} to {bounds[-1]}")
    return [int(bound) for bound in bounds]


def checked_result(model: nn.Module, num_clients: int, out: Tensor | None) -> Tensor:
    """Return the matrix to write one row per client to: `out` if it fits, else a new one."""
    parameters = trainable_parameters(model)
    if not parameters:
        raise ValueError("the model has no trainable parameters")
    dtype = parameters[0].dtype
    shape = (num_clients, sum(parameter.numel() for parameter in parameters))
    if out is None:
        return torch.empty(shape, dtype=dtype)
    if out.shape != shape or out.dtype != dtype or not out.is_contiguous():
        raise ValueError(f"out must be a contiguous {dtype} matrix {shape}, got {out.dtype} {tuple(out.shape)}")
    return out
