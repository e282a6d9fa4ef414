"""Local training: several steps of descent at each client, which then sends how far it moved."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from fedra import checks
from fedra.models import load_parameter_vector, parameter_vector, trainable_parameters
from fedra.simulation.gradients import choose_memory_format
from fedra.simulation.gradients.batch import checked_offsets, checked_result
from fedra.simulation.gradients.dropout import ClientDropout, DropoutGenerators
from fedra.simulation.gradients.loop import Loss, Work, cross_entropy

OrderGenerators = Callable[[int], np.random.Generator]
"""Makes a new generator for the position of a client in the cohort, to shuffle its samples with."""


@dataclass(frozen=True, kw_only=True)
class LocalTraining:
    """Plain SGD from the global weights, for `epochs` passes over the data or, if given, exactly `steps` batches."""

    lr: float = 0.1
    epochs: int = 1
    steps: int | None = None
    batch_size: int = 32

    def __post_init__(self) -> None:
        """Reject values outside their range."""
        checks.number("lr", self.lr, above=0)
        checks.whole("epochs", self.epochs, 1)
        checks.whole("batch_size", self.batch_size, 1)
        if self.steps is not None:
            checks.whole("steps", self.steps, 1)

    def batches(self, num_samples: int, order: np.random.Generator) -> Iterator[npt.NDArray[np.int64]]:
        """Yield the samples of each step; every pass over the data has an order of its own."""
        passes = range(self.epochs) if self.steps is None else itertools.count()
        batches = (
            shuffled[start : start + self.batch_size]
            for shuffled in (order.permutation(num_samples) for _ in passes)
            for start in range(0, num_samples, self.batch_size)
        )
        return itertools.islice(batches, self.steps)


class LocalUpdates:
    """Computes the (clients, parameters) matrix of w_t - w_local, to be called like `CohortGradients`."""

    def __init__(self, model: nn.Module, *, training: LocalTraining, loss: Loss = cross_entropy):
        """Take a model that holds the global weights at every call, in the mode it is to be trained in."""
        self.model = model
        self._training = training
        self._loss = loss
        self._memory_format: torch.memory_format | None = None

    def __call__(
        self,
        inputs: Tensor,
        labels: Tensor,
        offsets: npt.ArrayLike,
        *,
        order: OrderGenerators,
        dropout: DropoutGenerators | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return one row per client; the model's weights and buffers are as before afterwards."""
        bounds = checked_offsets(inputs, labels, offsets)
        out = checked_result(self.model, len(bounds) - 1, out)
        if len(inputs) == 0:
            return out.zero_()
        if self._memory_format is None:
            self._memory_format = choose_memory_format(self.model, inputs, labels, dropout, len(bounds) - 1)
        work = Work(
            inputs=inputs,
            labels=labels,
            offsets=bounds,
            loss=self._loss,
            dropout=dropout,
            memory_format=self._memory_format,
        )
        before = parameter_vector(self.model)
        buffers = [(buffer, buffer.clone()) for buffer in self.model.buffers()]
        masks = ClientDropout(dropout)
        try:
            for client in range(len(out)):
                self._train(work, client, order(client), masks)
                torch.sub(before, parameter_vector(self.model), out=out[client])
                self._restore(before, buffers)
        finally:
            self._restore(before, buffers)
        return out

    def _train(self, work: Work, client: int, order: np.random.Generator, masks: ClientDropout) -> None:
        start, stop = work.offsets[client], work.offsets[client + 1]
        if start == stop:
            return
        parameters = trainable_parameters(self.model)
        with masks.seeded(client):
            for samples in self._training.batches(stop - start, order):
                inputs, labels = work.batch(torch.from_numpy(samples + start))
                with masks.forward_pass([(client, len(samples))]):
                    loss = work.loss(self.model(inputs), labels).mean()
                grads = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
                with torch.no_grad():
                    for parameter, grad in zip(parameters, grads, strict=True):
                        parameter.sub_(grad, alpha=self._training.lr)

    def _restore(self, weights: Tensor, buffers: list[tuple[Tensor, Tensor]]) -> None:
        load_parameter_vector(self.model, weights)
        for buffer, saved in buffers:
            buffer.copy_(saved)
