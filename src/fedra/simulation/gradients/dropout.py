"""Dropout whose masks belong to a client: the same bits whichever clients share its batch, however it is chunked."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from fedra.simulation.gradients.turns import Turn

DropoutGenerators = Callable[[int, int], np.random.Generator]
"""Makes a new generator for (position of the client in the cohort, number of the dropout layer, from 1).

Layer 0 seeds torch's own generator, for whatever else a model draws.
"""


class NotSegmentableError(Exception):
    """The model does something that one pass over several clients' samples cannot keep apart."""


class ClientDropout(TorchFunctionMode):
    """While active, dropout in training mode keeps what the clients' own generators say.

    Each (client, layer) has one stream, consumed sample after sample, so that a client's masks do not depend on
    where a batch begins or ends.
    """

    def __init__(self, generators: DropoutGenerators | None, turn: Turn | None = None):
        """Without generators, a model that applies dropout is an error."""
        super().__init__()
        self._generators = generators
        self._turn = turn
        self._streams: dict[tuple[int, int], np.random.Generator] = {}
        self._spans: Sequence[tuple[int, int]] = ()
        self._layer = 0

    def in_turn(self, turn: Turn | None) -> ClientDropout:
        """Return one for a pass that runs beside others, with the same streams."""
        if turn is None:
            return self
        other = ClientDropout(self._generators, turn)
        other._streams = self._streams
        return other

    @contextlib.contextmanager
    def forward_pass(self, spans: Sequence[tuple[int, int]]) -> Iterator[None]:
        """Apply to one forward pass over a batch made of `spans`: (client, number of samples) in order."""
        self._spans = spans
        self._layer = 0
        with self:
            yield

    @contextlib.contextmanager
    def seeded(self, client: int) -> Iterator[None]:
        """Let torch's own generator start from the client's stream, and give it back as it was."""
        seed = 0 if self._generators is None else int(self._generators(client, 0).integers(2**63))
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            yield

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Replace torch's dropout functions, pass everything else through."""
        if func not in _MASKED_DIMENSIONS:
            return func(*args, **(kwargs or {}))
        return self._apply(_MASKED_DIMENSIONS[func], *args, **(kwargs or {}))

    def _apply(
        self, masked: int | None, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        if not training or p == 0.0:
            return input
        if self._generators is None:
            raise ValueError("the model applies dropout: pass dropout=..., or put the model in eval mode")
        self._layer += 1
        drawn = self._draw(self._generators, tuple(input.shape[:masked]))
        scale = 0.0 if p >= 1.0 else 1.0 / (1.0 - p)
        mask = torch.from_numpy(drawn).ge_(p).to(input).mul_(scale)
        mask = mask.reshape(*mask.shape, *[1] * (input.dim() - mask.dim()))
        return input.mul_(mask) if inplace else input * mask

    def _draw(self, generators: DropoutGenerators, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
        samples = sum(count for _, count in self._spans)
        if shape[0] != samples:
            if len(self._spans) > 1:
                raise NotSegmentableError(f"dropout on {shape[0]} rows in a batch of {samples} samples")
            spans: Sequence[tuple[int, int]] = [(self._spans[0][0], shape[0])]
        else:
            spans = self._spans
        drawn = np.empty(shape, dtype=np.float32)
        start = 0
        if self._turn is not None:
            self._turn.wait(("dropout", self._layer))
        for client, count in spans:
            key = (client, self._layer)
            if key not in self._streams:
                self._streams[key] = generators(*key)
            self._streams[key].random(out=drawn[start : start + count], dtype=np.float32)
            start += count
        if self._turn is not None:
            self._turn.done(("dropout", self._layer))
        return drawn


_MASKED_DIMENSIONS: dict[Any, int | None] = {F.dropout: None, F.dropout1d: 2, F.dropout2d: 2, F.dropout3d: 2}
