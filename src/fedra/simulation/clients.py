"""What clients compute from the global model: one full-batch gradient each, or local training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from fedra.attacks.view import Matrix, Poison, Relabel
from fedra.data import Dataset, Partition, default_model
from fedra.models import build_model, load_parameter_vector, parameter_vector
from fedra.seeding import generator
from fedra.simulation.config import SimulationConfig
from fedra.simulation.gradients import CHUNK, CohortGradients, CohortSamples
from fedra.simulation.gradients.turns import Crew, Pass, Turn
from fedra.simulation.local_training import LocalTraining, LocalUpdates
from fedra.simulation.measures import Measured, measured

_TEST_BATCH = 512
_WIDE_CHUNK = 4096


def model_name(config: SimulationConfig, dataset: Dataset) -> str:
    """Return the model's name, as given or the one made for the data."""
    return config.model or default_model(config.dataset) or ("text-cnn" if dataset.is_text else "logistic")


def make_model(config: SimulationConfig, dataset: Dataset) -> nn.Module:
    """Return the initial model, from the seed."""
    return build_model(
        model_name(config, dataset),
        input_shape=dataset.input_shape,
        num_classes=dataset.num_classes,
        embeddings=dataset.embeddings,
        seed=int(generator(config.seed, "simulation/model").integers(2**62)),
        **config.model_params,
    )


def _chunk(dataset: Dataset) -> int:
    """Return how many samples go through the model at a time; another number would change the bits of a run."""
    small = len(dataset.input_shape) == 1 and not dataset.is_text
    # Clients that are real may have tens of thousands of samples of a few features each, where calls cost the most.
    return _WIDE_CHUNK if small and dataset.owners else CHUNK


class Clients:
    """All clients' data and the model they compute with; `weights` go in, updates come out."""

    def __init__(self, config: SimulationConfig, dataset: Dataset, partition: Partition) -> None:
        self._seed = config.seed
        self._partition = partition
        self._inputs = torch.from_numpy(dataset.train_inputs)
        self._labels = torch.from_numpy(dataset.train_labels)
        self._test_inputs = torch.from_numpy(dataset.test_inputs)
        self._test_labels = torch.from_numpy(dataset.test_labels)
        self._num_classes = dataset.num_classes
        self._crew = Crew(config.threads)
        self._model = make_model(config, dataset).train()
        self._compute: CohortGradients | LocalUpdates
        if config.local_epochs is None and config.local_steps is None:
            self._compute = CohortGradients(self._model, chunk=_chunk(dataset), threads=config.threads)
        else:
            training = LocalTraining(
                lr=config.local_lr,
                batch_size=config.batch_size,
                epochs=config.local_epochs or 1,
                steps=config.local_steps,
            )
            self._compute = LocalUpdates(self._model, training=training)

    def initial_weights(self) -> npt.NDArray[np.float32]:
        """Return the weights that the model was made with."""
        return parameter_vector(self._model).numpy().astype(np.float32, copy=True)

    def load(self, weights: npt.NDArray[np.float32]) -> None:
        """Give all clients the global model."""

        def load(turn: Turn | None) -> None:
            load_parameter_vector(self._model, torch.from_numpy(weights))

        # By the crew: in the caller's thread, torch has threads of its own, which spin for milliseconds afterwards.
        self._crew.run([Pass(run=load)])

    def updates(
        self,
        clients: npt.NDArray[np.int64],
        round_number: int,
        relabel: Relabel | None = None,
        poison: Poison | None = None,
    ) -> Matrix:
        """Return one row for each of these clients, from the loaded weights.

        Args:
            clients: whose.
            round_number: what their random draws belong to.
            relabel: makes other labels of theirs.
            poison: makes other inputs and labels of theirs.
        """
        samples = self._samples(clients, round_number, relabel, poison)
        if isinstance(self._compute, LocalUpdates):
            order = self._draws("simulation/local", clients, round_number)
            return self._compute(*samples[:3], order=order, dropout=samples.dropout).numpy()
        return self._compute(*samples[:3], dropout=samples.dropout).numpy()

    def updates_of(self, cohorts: Sequence[npt.NDArray[np.int64]], round_number: int) -> list[Matrix]:
        """Return `updates` of each of these cohorts; several threads share out the work of all of them."""
        if isinstance(self._compute, LocalUpdates):
            return [self.updates(clients, round_number) for clients in cohorts]
        gathered: dict[int, CohortSamples] = {}

        def gather(number: int, turn: Turn | None) -> None:
            gathered[number] = self._samples(cohorts[number], round_number)

        self._crew.run([Pass(run=partial(gather, number)) for number in range(len(cohorts))])
        found = self._compute.together([gathered[number] for number in range(len(cohorts))])
        return [rows.numpy() for rows in found]

    def _samples(
        self,
        clients: npt.NDArray[np.int64],
        round_number: int,
        relabel: Relabel | None = None,
        poison: Poison | None = None,
    ) -> CohortSamples:
        parts = [self._partition.indices(int(client)) for client in clients]
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        chosen = torch.from_numpy(np.concatenate(parts)) if parts else torch.empty(0, dtype=torch.int64)
        inputs, labels = self._inputs[chosen], self._labels[chosen]
        if relabel is not None:
            labels = torch.from_numpy(np.asarray(relabel(labels.numpy()), dtype=np.int64))
        if poison is not None:
            inputs, labels = map(torch.from_numpy, poison(inputs.numpy(), labels.numpy()))
        return CohortSamples(inputs, labels, offsets, self._draws("simulation/dropout", clients, round_number))

    def _draws(
        self, purpose: str, clients: npt.NDArray[np.int64], round_number: int
    ) -> Callable[..., np.random.Generator]:
        def make(position: int, *keys: int) -> np.random.Generator:
            return generator(self._seed, purpose, round_number, int(clients[position]), *keys)

        return make

    def measure(self) -> Measured:
        """Return what is measured of the loaded model on the test set."""
        answers, margins = self._answers(self._test_inputs)
        return measured(self._test_labels.numpy(), answers, self._num_classes, margins)

    def attack_success(self, trigger: Callable[[npt.NDArray[Any]], npt.NDArray[Any]], target: int) -> float | None:
        """Return the share of the test samples of other classes that, triggered, are taken for the target, in percent.

        None where there is no test sample of another class.
        """
        others = self._test_labels != target
        if not others.any():
            return None
        inputs = torch.from_numpy(trigger(self._test_inputs[others].numpy()))
        return 100.0 * int((self._answers(inputs)[0] == target).sum()) / len(inputs)

    def _answers(self, inputs: Tensor) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32] | None]:
        """Return the loaded model's answers, and where there are two classes by how much it prefers the second."""
        self._model.eval()
        starts = range(0, len(inputs), _TEST_BATCH)
        found: dict[int, Tensor] = {}

        def answer(start: int, turn: Turn | None) -> None:
            batch = inputs[start : start + _TEST_BATCH]
            if batch.dim() == 4:
                batch = batch.contiguous(memory_format=torch.channels_last)
            with torch.inference_mode():
                found[start] = self._model(batch)

        self._crew.run([Pass(run=partial(answer, start)) for start in starts])
        self._model.train()
        scores = torch.cat([found[start] for start in starts])
        margins = (scores[:, 1] - scores[:, 0]).numpy() if self._num_classes == 2 else None
        return scores.argmax(dim=1).numpy(), margins
