"""What clients compute from the global model: one full-batch gradient each, or local training."""

from __future__ import annotations

from collections.abc import Callable
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
from fedra.simulation.gradients import CohortGradients
from fedra.simulation.local_training import LocalTraining, LocalUpdates

_TEST_BATCH = 512


def model_name(config: SimulationConfig, dataset: Dataset) -> str:
    """Return the model's name, as given or the one made for the data."""
    return config.model or ("text-cnn" if dataset.is_text else default_model(config.dataset) or "logistic")


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


class Clients:
    """All clients' data and the model they compute with; `weights` go in, updates come out."""

    def __init__(self, config: SimulationConfig, dataset: Dataset, partition: Partition) -> None:
        self._seed = config.seed
        self._partition = partition
        self._inputs = torch.from_numpy(dataset.train_inputs)
        self._labels = torch.from_numpy(dataset.train_labels)
        self._test_inputs = torch.from_numpy(dataset.test_inputs)
        self._test_labels = torch.from_numpy(dataset.test_labels)
        self._model = make_model(config, dataset).train()
        self._compute: CohortGradients | LocalUpdates
        if config.local_epochs is None and config.local_steps is None:
            self._compute = CohortGradients(self._model)
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
        load_parameter_vector(self._model, torch.from_numpy(weights))

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
        parts = [self._partition.indices(int(client)) for client in clients]
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        chosen = torch.from_numpy(np.concatenate(parts)) if parts else torch.empty(0, dtype=torch.int64)
        inputs, labels = self._inputs[chosen], self._labels[chosen]
        if relabel is not None:
            labels = torch.from_numpy(np.asarray(relabel(labels.numpy()), dtype=np.int64))
        if poison is not None:
            inputs, labels = map(torch.from_numpy, poison(inputs.numpy(), labels.numpy()))

        def draws(purpose: str) -> Callable[..., np.random.Generator]:
            def make(position: int, *keys: int) -> np.random.Generator:
                return generator(self._seed, purpose, round_number, int(clients[position]), *keys)

            return make

        extra: dict[str, Any] = {"dropout": draws("simulation/dropout")}
        if isinstance(self._compute, LocalUpdates):
            extra["order"] = draws("simulation/local")
        rows: Tensor = self._compute(inputs, labels, offsets, **extra)
        return rows.numpy()

    def accuracy(self) -> float:
        """Return the loaded model's share of right answers on the test set, in percent."""
        return self._share_answered(self._test_inputs, self._test_labels)

    def attack_success(self, trigger: Callable[[npt.NDArray[Any]], npt.NDArray[Any]], target: int) -> float | None:
        """Return the share of the test samples of other classes that, triggered, are taken for the target, in percent.

        None where there is no test sample of another class.
        """
        others = self._test_labels != target
        if not others.any():
            return None
        inputs = torch.from_numpy(trigger(self._test_inputs[others].numpy()))
        return self._share_answered(inputs, torch.full((len(inputs),), target))

    def _share_answered(self, inputs: Tensor, answers: Tensor) -> float:
        """Return how often the loaded model gives these answers, in percent."""
        self._model.eval()
        right = 0
        with torch.inference_mode():
            for start in range(0, len(answers), _TEST_BATCH):
                batch = inputs[start : start + _TEST_BATCH]
                if batch.dim() == 4:
                    batch = batch.contiguous(memory_format=torch.channels_last)
                right += int((self._model(batch).argmax(dim=1) == answers[start : start + _TEST_BATCH]).sum())
        self._model.train()
        return 100.0 * right / len(answers)
