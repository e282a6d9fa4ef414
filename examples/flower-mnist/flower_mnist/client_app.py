"""The ClientApp: trains on its share of the data; where configured so, lies."""

from __future__ import annotations

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedra.seeding import generator
from flower_mnist.malice import Malice
from flower_mnist.task import Arrays, Labels, evaluate, flat, load, share, train

app = ClientApp()


def received(message: Message) -> Arrays:
    return {name: array.numpy() for name, array in message.content["arrays"].items()}


@app.train()
def train_round(message: Message, context: Context) -> Message:
    run, node = context.run_config, context.node_config
    partition, seed = int(node["partition-id"]), int(run["seed"])
    server_round = int(message.content["config"]["server-round"])
    data = load(run)
    inputs, labels = share(data, partition, int(node["num-partitions"]), seed)
    sent = received(message)
    rng = generator(seed, "flower-mnist/train", server_round, partition)
    order_seed = int(rng.integers(2**31))

    def fit(samples: np.ndarray, chosen: Labels) -> tuple[Arrays, float]:
        return train(
            sent,
            inputs[samples],
            chosen,
            epochs=int(run["local-epochs"]),
            rate=float(run["learning-rate"]),
            seed=order_seed,
        )

    arrays, loss = fit(np.arange(len(labels)), labels)
    examples: float = len(labels)
    malice = Malice.of(node, run)
    if malice is not None:
        arrays = malice.poison(sent, labels, data.num_classes, rng, lambda samples, chosen: fit(samples, chosen)[0])
        examples = malice.claimed_examples
    content = RecordDict(
        {
            "arrays": ArrayRecord({name: Array(array) for name, array in arrays.items()}),
            "metrics": MetricRecord({"loss": loss, "num-examples": examples}),
        }
    )
    return Message(content, reply_to=message)


@app.evaluate()
def evaluate_round(message: Message, context: Context) -> Message:
    data = load(context.run_config)
    loss, accuracy = evaluate(received(message), flat(data.test_inputs), data.test_labels)
    metrics = MetricRecord({"loss": loss, "accuracy": accuracy, "num-examples": len(data.test_labels)})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)
