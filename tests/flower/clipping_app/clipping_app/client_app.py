"""The ClientApp: goes a little further than the model, the last partition far in another direction."""

from __future__ import annotations

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    place, places = int(context.node_config["partition-id"]), int(context.node_config["num-partitions"])
    rng = np.random.default_rng([place, int(message.content["config"]["server-round"])])
    step = -5.0 if place == places - 1 else 0.1
    arrays = {}
    for name, array in message.content["arrays"].items():
        sent = array.numpy()
        arrays[name] = Array(np.asarray(0.9 * sent + step * rng.standard_normal(sent.shape), dtype=sent.dtype))
    metrics = MetricRecord({"place": place, "num-examples": 10 + place})
    return Message(RecordDict({"arrays": ArrayRecord(arrays), "metrics": metrics}), reply_to=message)
