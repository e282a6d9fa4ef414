"""A Flower client for the exported rounds: one full-batch step on the data of the client it is told to be.

A module of its own, so that Ray's processes import it once and keep data and model between messages.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedra.models import build_model

app = ClientApp()


def make_model() -> torch.nn.Module:
    torch.set_num_threads(1)
    return build_model("cnn28", input_shape=(1, 28, 28), num_classes=10, seed=0).train()


@cache
def kept() -> tuple[torch.nn.Module, dict[str, Any]]:
    """Return model and data, read at the first call of each process."""
    folder = Path(os.environ["BENCHMARK_FOLDER"])
    names = ("inputs", "labels", "order", "offsets")
    return make_model(), {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in names}


@app.train()
def train(message: Message, context: Context) -> Message:
    model, data = kept()
    client = int(message.content["config"]["client"])
    held = data["order"][data["offsets"][client] : data["offsets"][client + 1]]
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    inputs, labels = (torch.from_numpy(data[name][held]) for name in ("inputs", "labels"))
    optimizer.zero_grad()
    F.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    content = {
        "arrays": ArrayRecord(model.state_dict()),
        "metrics": MetricRecord({"num-examples": len(held)}),
    }
    return Message(content=RecordDict(content), reply_to=message)
