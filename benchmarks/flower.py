"""fedra's Flower strategies against Flower's own, as ratios within one run, and the memory they take."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from harness import ONE_THREAD, machine, machine_line, memory_now, peak_own_memory, table, write

os.environ.update(ONE_THREAD)
os.environ.update(FLWR_TELEMETRY_ENABLED="0", FLWR_DISABLE_UPDATE_CHECK="1")

import argparse
import gc
import json
import logging
import random
import statistics
import subprocess
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Bulyan, FedAvg, FedMedian, FedTrimmedAvg, MultiKrum
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.task_identity import TaskIdentity

from fedra import FedRA
from fedra import MultiKrum as FedraMultiKrum
from fedra.flower import Guard, RobustStrategy

CLIENTS, DIMENSION = 50, 1_000_000
MALICIOUS = 5
ROUND_NODES = 6

TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
logging.getLogger("flwr").setLevel(logging.ERROR)


class Nodes(Grid):
    """As many nodes as asked for; nothing is sent anywhere."""

    def __init__(self, count: int) -> None:
        self.count = count

    def get_node_ids(self) -> list[int]:
        return list(range(1, self.count + 1))

    def _none(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    run = property(_none)
    set_run = create_message = get_nodes = push_messages = pull_messages = send_and_receive = _none


def shapes(dimension: int) -> dict[str, tuple[int, ...]]:
    """Layers of a small CNN's proportions: a few large, many small."""
    layers: dict[str, tuple[int, ...]] = {}
    left = dimension
    for i, share in enumerate((0.5, 0.25, 0.125, 0.05)):
        rows = 64
        columns = int(dimension * share) // rows
        layers[f"layer{i}.weight"] = (rows, columns)
        layers[f"layer{i}.bias"] = (rows,)
        left -= rows * columns + rows
    layers["head"] = (left,)
    return layers


def model(dimension: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in shapes(dimension).items()}


def trained(sent: dict[str, np.ndarray], rng: np.random.Generator) -> ArrayRecord:
    step = np.float32(0.01)
    return ArrayRecord(
        {name: Array(a + step * rng.standard_normal(a.shape, dtype=np.float32)) for name, a in sent.items()}
    )


def reply_arrays(sent: dict[str, np.ndarray], count: int) -> list[ArrayRecord]:
    rng = np.random.default_rng(1)
    return [trained(sent, rng) for _ in range(count)]


def ask(strategy: Any, sent: ArrayRecord, count: int) -> list[Message]:
    return list(strategy.configure_train(1, sent, ConfigRecord(), Nodes(count)))


def answers(messages: list[Message], records: list[ArrayRecord]) -> list[Message]:
    """Replies as a grid hands them over: message objects of their own."""
    return [reply(message, ArrayRecord(dict(r.items()))) for message, r in zip(messages, records, strict=True)]


def reply(message: Message, arrays: ArrayRecord) -> Message:
    metrics = MetricRecord({"loss": 0.1, "num-examples": 20})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


def delivered(message: Message) -> Message:
    """Return a message as a deployment's grid delivers it: put together from its parts, in memory of its own."""
    parts = {key: part.deflate() for key, part in get_all_nested_objects(message).items()}
    received = inflate_object_from_contents(message.object_id, parts)
    assert isinstance(received, Message)
    return received


def strategies(threads: int) -> dict[str, Callable[[], Any]]:
    ratio = MALICIOUS / CLIENTS
    robust = {"min_train_nodes": 1, "threads": threads}
    return {
        "fedra: RobustStrategy(fedra)": lambda: RobustStrategy(rule=FedRA(malicious_ratio=ratio), **robust),
        "fedra: RobustStrategy(multi-krum)": lambda: RobustStrategy(
            rule=FedraMultiKrum(malicious_ratio=ratio), **robust
        ),
        "fedra: RobustStrategy(median)": lambda: RobustStrategy(rule="median", **robust),
        "fedra: RobustStrategy(trimmed-mean)": lambda: RobustStrategy(rule="trimmed-mean", **robust),
        "fedra: RobustStrategy(bulyan)": lambda: RobustStrategy(rule="bulyan", **robust),
        "fedra: Guard(FedAvg), fedra": lambda: Guard(FedAvg(), rule=FedRA(malicious_ratio=ratio), threads=threads),
        "Flower FedAvg": FedAvg,
        "Flower MultiKrum": lambda: MultiKrum(
            num_malicious_nodes=MALICIOUS, num_nodes_to_select=CLIENTS - MALICIOUS - 2
        ),
        "Flower FedMedian": FedMedian,
        "Flower FedTrimmedAvg": lambda: FedTrimmedAvg(beta=ratio),
        "Flower Bulyan": lambda: Bulyan(num_malicious_nodes=MALICIOUS),
    }


def times(repetitions: int, threads: int) -> dict[str, float]:
    """Return each strategy's median time to aggregate, in an order drawn anew for each repetition."""
    sent = model(DIMENSION)
    sent_record = ArrayRecord({name: Array(array) for name, array in sent.items()})
    records = reply_arrays(sent, CLIENTS)
    makers = strategies(threads)
    taken: dict[str, list[float]] = {name: [] for name in makers}
    order = random.Random(0)
    for repetition in range(repetitions + 1):
        names = list(makers)
        order.shuffle(names)
        for name in names:
            strategy = makers[name]()
            replies = answers(ask(strategy, sent_record, CLIENTS), records)
            gc.collect()
            started = time.perf_counter()
            strategy.aggregate_train(1, replies)
            if repetition:
                taken[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in taken.items()}


def memory_of(name: str, dimension: int) -> None:
    """In a process of its own: print the peak memory of aggregating beyond the replies, and in all, in bytes."""
    sent = model(dimension)
    sent_record = ArrayRecord({key: Array(array) for key, array in sent.items()})
    maker = strategies(2)[name]
    small = model(1000)
    warm = maker()
    small_record = ArrayRecord({key: Array(array) for key, array in small.items()})
    warm.aggregate_train(1, answers(ask(warm, small_record, CLIENTS), reply_arrays(small, CLIENTS)))
    strategy = maker()
    messages = ask(strategy, sent_record, CLIENTS)
    rng = np.random.default_rng(1)
    replies = [delivered(reply(message, trained(sent, rng))) for message in messages]
    del sent, messages
    gc.collect()
    with peak_own_memory() as peak:
        strategy.aggregate_train(1, replies)
    print(json.dumps({"extra": peak[0], "replies": CLIENTS * dimension * 4, "in_all": memory_now("VmHWM")}))


def guard_overhead(repetitions: int) -> float:
    """Return the median time that Guard adds to aggregating a round of six nodes and a tiny model, in seconds."""
    sent = model(2000)
    sent_record = ArrayRecord({name: Array(array) for name, array in sent.items()})
    records = reply_arrays(sent, ROUND_NODES)

    def once(strategy: Any) -> float:
        messages = ask(strategy, sent_record, ROUND_NODES)
        replies = answers(messages, records)
        started = time.perf_counter()
        ask(strategy, sent_record, ROUND_NODES)
        strategy.aggregate_train(1, replies)
        return time.perf_counter() - started

    bare, guarded = FedAvg(), Guard(FedAvg(), rule=FedRA(malicious_ratio=0.2))
    once(guarded)
    return statistics.median([once(guarded) - once(bare) for _ in range(repetitions)])


def apart(name: str, dimension: int) -> dict[str, int]:
    command = [sys.executable, __file__, "--memory-of", name, "--dimension", str(dimension)]
    found: dict[str, int] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def speed_measures(taken: dict[str, float]) -> list[dict[str, Any]]:
    wanted = [
        ("fedra: RobustStrategy(fedra)", "Flower MultiKrum", 3.0),
        ("fedra: RobustStrategy(fedra)", "Flower FedMedian", 6.0),
        ("fedra: RobustStrategy(fedra)", "Flower Bulyan", 12.0),
        ("fedra: RobustStrategy(multi-krum)", "Flower MultiKrum", 2.0),
        ("fedra: RobustStrategy(median)", "Flower FedMedian", 1.0),
        ("fedra: RobustStrategy(trimmed-mean)", "Flower FedTrimmedAvg", 1.0),
        ("fedra: RobustStrategy(bulyan)", "Flower Bulyan", 1.0),
    ]
    return [
        {
            "measure": f"{ours.removeprefix('fedra: ')} against {theirs}",
            "value": taken[theirs] / taken[ours],
            "shown": f"{taken[theirs] / taken[ours]:.1f}x faster ({taken[ours]:.3f} s, {taken[theirs]:.3f} s)",
            "must": f"{must:g}x",
            "met": taken[theirs] / taken[ours] >= must,
        }
        for ours, theirs, must in wanted
    ]


def memory_measures() -> list[dict[str, Any]]:
    measures = []
    for name, limit in (
        ("fedra: RobustStrategy(fedra)", 0.05),
        ("fedra: Guard(FedAvg), fedra", 0.3),
        ("Flower MultiKrum", None),
        ("Flower FedMedian", None),
    ):
        found = apart(name, DIMENSION)
        share = found["extra"] / found["replies"]
        measures.append(
            {
                "measure": f"extra peak memory of {name.removeprefix('fedra: ')}, as a share of the replies",
                "value": share,
                "shown": f"{share:.2f}",
                "must": "" if limit is None else f"at most {limit}",
                "met": limit is None or share <= limit,
            }
        )
    for name in ("fedra: RobustStrategy(fedra)", "fedra: Guard(FedAvg), fedra"):
        found = apart(name, 10_000_000)
        measures.append(
            {
                "measure": f"{name.removeprefix('fedra: ')}, d = 1e7: memory of the whole process, replies included",
                "value": found["in_all"],
                "shown": f"{found['in_all'] / 1e9:.1f} GB",
                "must": "6 GB",
                "met": found["in_all"] <= 6e9,
            }
        )
    return measures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1, help="threads for fedra; Flower's own run on one")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    parser.add_argument("--dimension", type=int, default=DIMENSION, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        memory_of(arguments.memory_of, arguments.dimension)
        return
    taken = times(arguments.repetitions, arguments.threads)
    overhead = guard_overhead(50)
    measures = [
        *speed_measures(taken),
        *memory_measures(),
        {
            "measure": "time Guard adds to a round of 6 nodes, tiny model",
            "value": overhead,
            "shown": f"{overhead * 1000:.1f} ms",
            "must": "100 ms",
            "met": overhead <= 0.1,
        },
    ]
    described = machine("fedra", "flwr", "numpy", "numba")
    rows = [("measure", "fedra", "must"), *((m["measure"], m["shown"], m["must"]) for m in measures)]
    threads = "one thread" if arguments.threads == 1 else f"{arguments.threads} threads for fedra, one for Flower"
    markdown = (
        f"{table(rows)}\n\naggregate_train, n = {CLIENTS} replies, d = 1e6, float32, m~ = {MALICIOUS}, {threads}; "
        f"medians of {arguments.repetitions} runs in random order. {machine_line(described)}."
    )
    print(markdown)
    write("flower", {"machine": described, "median_seconds": taken, "measures": measures}, markdown)
    if not all(measure["met"] for measure in measures):
        sys.exit("a figure was not reached: " + "; ".join(m["measure"] for m in measures if not m["met"]))


if __name__ == "__main__":
    main()
