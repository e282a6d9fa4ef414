"""The exported rounds by pfl's simulation: one full-batch step per client, central Adam, no evaluation."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.hyperparam import NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel

from fedra.models import build_model


class Model(torch.nn.Module):
    def __init__(self, channels_last: bool) -> None:
        super().__init__()
        self.layers = build_model("cnn28", input_shape=(1, 28, 28), num_classes=10, seed=0)
        self.format = torch.channels_last if channels_last else torch.contiguous_format
        self.layers.to(memory_format=self.format)

    def loss(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        self.train()
        return F.cross_entropy(self.layers(inputs.contiguous(memory_format=self.format)), labels)

    def metrics(self, inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, object]:
        return {}


class Clock(TrainingProcessCallback):
    def __init__(self) -> None:
        self.wall: list[float] = []
        self.processor: list[float] = []

    def on_train_begin(self, *, model: PyTorchModel) -> Metrics:
        self._note()
        return Metrics()

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: PyTorchModel, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        self._note()
        return False, Metrics()

    def _note(self) -> None:
        self.wall.append(time.perf_counter())
        self.processor.append(time.process_time())


def run(folder: Path, channels_last: bool) -> dict[str, list[float]]:
    inputs, labels = (torch.from_numpy(np.load(folder / f"{name}.npy")) for name in ("inputs", "labels"))
    order, offsets, rounds = (np.load(folder / f"{name}.npy") for name in ("order", "offsets", "rounds"))

    def make_dataset(client: int) -> PyTorchTensorDataset:
        held = torch.from_numpy(order[offsets[client] : offsets[client + 1]])
        return PyTorchTensorDataset((inputs[held], labels[held]), user_id=str(client))

    clients = iter(rounds.reshape(-1).tolist())
    data = FederatedDataset(make_dataset, lambda: next(clients))
    module = Model(channels_last)
    model = PyTorchModel(module, torch.optim.SGD, torch.optim.Adam(module.parameters(), lr=1e-3))
    clock = Clock()
    # Iteration 0 is always an evaluation, and is not counted.
    algorithm = NNAlgorithmParams(
        central_num_iterations=len(rounds),
        evaluation_frequency=10**6,
        train_cohort_size=rounds.shape[1],
        val_cohort_size=None,
    )
    FederatedAveraging().run(
        algorithm_params=algorithm,
        backend=SimulatedBackend(training_data=data, val_data=data, postprocessors=[WeightByDatapoints()]),
        model=model,
        model_train_params=NNTrainHyperParams(local_num_epochs=1, local_learning_rate=1.0, local_batch_size=None),
        callbacks=[clock],
        send_metrics_to_platform=False,
    )
    return {"seconds": np.diff(clock.wall).tolist(), "processor_seconds": np.diff(clock.processor).tolist()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="what rounds.py exported")
    parser.add_argument("out", type=Path, help="JSON file to write")
    parser.add_argument("--channels-last", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.out.write_text(json.dumps(run(arguments.folder, arguments.channels_last)), encoding="utf-8")


if __name__ == "__main__":
    main()
