"""Cohort gradients: every sampled client's full-batch gradient in as few passes as the model allows."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from fedra import checks
from fedra.models import trainable_parameters
from fedra.simulation.gradients.batch import checked_offsets, checked_result
from fedra.simulation.gradients.dropout import ClientDropout, DropoutGenerators, NotSegmentableError
from fedra.simulation.gradients.loop import Loss, Work, cross_entropy, loop_gradients
from fedra.simulation.gradients.segmented import SegmentedEngine, segmentable_layers
from fedra.simulation.gradients.turns import Crew

CHUNK = 192
PROBE_TOLERANCE = 1e-2
_MORE_LAYERS_THAN_ANY = 1 << 20


class CohortSamples(NamedTuple):
    """What `CohortGradients` takes of one cohort."""

    inputs: Tensor
    labels: Tensor
    offsets: npt.ArrayLike
    dropout: DropoutGenerators | None = None


class CohortGradients:
    """Computes the (clients, parameters) matrix of the gradients of each client's mean loss.

    Models made of Linear, Conv1d, Conv2d, Embedding, LayerNorm and GroupNorm, with anything without parameters in
    between, take one forward and one backward over all clients' samples (`engine == "segmented"`). Other models take
    a pass per client (`engine == "loop"`), with a warning that names the reason. Which one is settled at the first
    call, by trying both on a few samples.
    """

    def __init__(self, model: nn.Module, *, loss: Loss = cross_entropy, chunk: int = CHUNK, threads: int = 1):
        """Take a model in the mode, training or evaluation, that it is to be used in.

        `chunk` counts samples. Several `threads` take a chunk each, with the bits of one thread; a model that draws
        random numbers other than for dropout has one in any case.
        """
        checks.whole("chunk", chunk, 1)
        checks.whole("threads", threads, 1)
        self._crew = Crew(threads)
        self.model = model
        self.num_parameters = sum(parameter.numel() for parameter in trainable_parameters(model))
        self._loss = loss
        self._chunk = chunk
        self._memory_format: torch.memory_format | None = None
        self._segmented: SegmentedEngine | None = None

    @property
    def engine(self) -> Literal["segmented", "loop"] | None:
        """Return which engine is used, None before the first call with samples."""
        if self._memory_format is None:
            return None
        return "segmented" if self._segmented else "loop"

    def __call__(
        self,
        inputs: Tensor,
        labels: Tensor,
        offsets: npt.ArrayLike,
        *,
        dropout: DropoutGenerators | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return one row per client: the gradient over its samples [offsets[i], offsets[i + 1]), zeros without any.

        Columns follow `fedra.models.parameter_vector`. `dropout` makes a generator for (client position, layer), see
        `DropoutGenerators`. `out` takes the result instead of new memory.
        """
        bounds = checked_offsets(inputs, labels, offsets)
        out = checked_result(self.model, len(bounds) - 1, out)
        if len(inputs) == 0:
            return out.zero_()
        if self._memory_format is None:
            self._memory_format = choose_memory_format(self.model, inputs, labels, dropout, len(bounds) - 1)
            self._segmented = self._try_segmented(inputs, labels, dropout, self._memory_format, len(bounds) - 1)
        work = self._work(inputs, labels, bounds, dropout)
        if self._segmented:
            try:
                self._segmented(self.model, (work, out))
            except NotSegmentableError as reason:
                _warn_loop(reason)
                self._segmented = None
        if not self._segmented:
            loop_gradients(self.model, work, out)
        return out

    def together(self, cohorts: Sequence[CohortSamples]) -> list[Tensor]:
        """Return what a call for each cohort would; several threads share out the work of all of them."""
        if self._segmented and self._segmented.crew.threads > 1:
            works = [self._work(*one[:2], checked_offsets(*one[:3]), one.dropout) for one in cohorts if len(one.inputs)]
            if len(works) == len(cohorts):
                outs = [checked_result(self.model, len(work.offsets) - 1, None) for work in works]
                # Where one of them cannot be done in one pass, it is the calls that find out which.
                with contextlib.suppress(NotSegmentableError):
                    self._segmented(self.model, *zip(works, outs, strict=True))
                    return outs
        return [self(*one[:3], dropout=one.dropout) for one in cohorts]

    def _work(self, inputs: Tensor, labels: Tensor, bounds: list[int], dropout: DropoutGenerators | None) -> Work:
        return Work(
            inputs=inputs,
            labels=labels,
            offsets=bounds,
            loss=self._loss,
            dropout=dropout,
            memory_format=self._memory_format or torch.contiguous_format,
        )

    def _try_segmented(
        self,
        inputs: Tensor,
        labels: Tensor,
        dropout: DropoutGenerators | None,
        memory_format: torch.memory_format,
        num_clients: int,
    ) -> SegmentedEngine | None:
        work = _probe((0, 1, 3, 5), inputs, labels, dropout, memory_format, num_clients)
        found, expected = (checked_result(self.model, 3, None) for _ in range(2))
        try:
            engine = SegmentedEngine(layers=segmentable_layers(self.model), chunk=self._chunk)
            engine(self.model, (work, found))
        except NotSegmentableError as reason:
            _warn_loop(reason)
            return None
        loop_gradients(self.model, work, expected)
        if self._crew.threads > 1 and not _draws(self.model, work):
            engine = replace(engine, crew=self._crew)
        error = (found - expected).norm(dim=1)
        if (error > PROBE_TOLERANCE * expected.norm(dim=1)).any():
            _warn_loop("it mixes samples, or uses a layer's weights other than by calling the layer")
            return None
        return engine


def _draws(model: nn.Module, work: Work) -> bool:
    """Whether a model draws from torch's own generator, whose numbers belong to whoever comes first."""
    dropout = ClientDropout(work.dropout)
    with dropout.seeded(0):
        before = torch.default_generator.get_state()
        with dropout.forward_pass([(0, 1)]), torch.no_grad():
            model(work.batch(torch.arange(1))[0])
        return not torch.equal(torch.default_generator.get_state(), before)


def choose_memory_format(
    model: nn.Module, inputs: Tensor, labels: Tensor, dropout: DropoutGenerators | None, num_clients: int
) -> torch.memory_format:
    """Return channels-last for images, where torch is faster with it, unless the model cannot take it."""
    if inputs.dim() != 4:
        return torch.contiguous_format
    try:
        work = _probe((0, 5), inputs, labels, dropout, torch.channels_last, num_clients)
        loop_gradients(model, work, checked_result(model, 1, None))
    except RuntimeError as error:
        if "view size is not compatible" not in str(error):
            raise
        warnings.warn(
            "the model calls .view() on images, which keeps it from the faster channels-last layout; "
            "use .flatten(1) or .reshape() instead",
            stacklevel=3,
        )
        return torch.contiguous_format
    return torch.channels_last


def _probe(
    offsets: Sequence[int],
    inputs: Tensor,
    labels: Tensor,
    dropout: DropoutGenerators | None,
    memory_format: torch.memory_format,
    num_clients: int,
) -> Work:
    chosen = torch.arange(offsets[-1]) % len(inputs)
    return Work(
        inputs=inputs[chosen],
        labels=labels[chosen],
        offsets=offsets,
        loss=_probe_loss,
        dropout=None if dropout is None else _drawn_by(dropout, num_clients),
        memory_format=memory_format,
    )


def _drawn_by(dropout: DropoutGenerators, num_clients: int) -> DropoutGenerators:
    """Return the generators of a trial, which may have more clients than the round: each draws something of its own."""

    def make(client: int, layer: int) -> np.random.Generator:
        extra, client = divmod(client, num_clients)
        return dropout(client, layer + extra * _MORE_LAYERS_THAN_ANY)

    return make


def _probe_loss(output: Tensor, labels: Tensor) -> Tensor:
    """Weigh the outputs: unlike a loss, its gradient does not vanish as the model learns."""
    flat = output.reshape(len(output), -1)
    return flat @ torch.arange(1.0, flat.shape[1] + 1.0, dtype=flat.dtype).cos()


def _warn_loop(reason: object) -> None:
    warnings.warn(f"gradients are computed client by client, not in one pass: {reason}", stacklevel=4)
