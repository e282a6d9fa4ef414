"""One small reply that costs the server more than an honest round: time, memory, or what it remembers."""

from __future__ import annotations

import time

import numpy as np
import pytest
from flwr.app import Array, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.common import FitRes, Parameters, ndarrays_to_parameters
from flwr.server.strategy import FedAvg as LegacyFedAvg
from flwr.serverapp.strategy import FedAvg
from tests.flower.federation import federation, honest, model, moved, one_round, record, reply_to
from tests.security.older import OK, older_round

from fedra.flower import Guard, RobustStrategy, legacy

# An honest round of these models takes milliseconds. Of the processor, so that a busy machine does not count.
# Before they were refused, such replies cost minutes; a limit that no machine reaches by being slow.
SECONDS = 20.0
STRATEGIES = {
    "guard": lambda **options: Guard(FedAvg(), **options),
    "robust": lambda **options: RobustStrategy(**options),
}
OLDER = {
    "guard": lambda **options: legacy.Guard(LegacyFedAvg(), **options),
    "robust": lambda **options: legacy.RobustStrategy(**options),
}


def npy(header: str, values: bytes = b"") -> bytes:
    text = header.encode()
    return b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little") + text + values


HEADERS = {
    "spaces": npy("{" + " " * 3000),
    "spaces and no end": npy("{" + " " * 3000 + "x"),
    "spaces on both sides": npy("{" + " " * 1400 + "}" + " " * 1400 + "x"),
    "many ends": npy("{" + " }" * 4900 + "x"),
    "spaces in an item": npy("{'descr'" + " " * 4000 + ":" + " " * 4000 + "x}"),
    "spaces in a shape": npy("{'shape': (" + " " * 9000 + "x}"),
    "many lengths": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 4900 + "), }"),
}


def hostile_array(data: bytes):
    def client(message: Message) -> Message:
        arrays = record(moved(message.content["arrays"], np.random.default_rng(1)))
        arrays["fc.weight"] = Array("float32", (4, 5), "numpy.ndarray", data)
        return reply_to(message, arrays, {"loss": 0.5, "num-examples": 20})

    return client


def hostile_content(**records):
    """A good reply with metrics that are added to, or further records."""

    def client(message: Message) -> Message:
        metrics = MetricRecord({"loss": 0.5, "num-examples": 20})
        metrics.__dict__["_data"].update(records.get("metrics", {}))
        arrays = record(moved(message.content["arrays"], np.random.default_rng(1)))
        arrays.__dict__["_data"].update(dict.fromkeys(records.get("arrays", ()), arrays["scale"]))
        content = RecordDict({"arrays": arrays, "metrics": metrics})
        content.__dict__["_data"].update(records.get("records", {}))
        return Message(content, reply_to=message)

    return client


def config(count: int) -> ConfigRecord:
    made = ConfigRecord()
    made.__dict__["_data"].update({f"key-{place}": 1 for place in range(count)})
    return made


LISTS = [0.5] * 100_000
NAMES = [f"key-{place}" for place in range(200_000)]
# What is sent, and a part of the reason that it must be dropped with.
CONTENTS = {
    "many lists": (hostile_content(metrics={f"list-{place}": LISTS for place in range(40)}), "4000000 numbers"),
    "one long list": (hostile_content(metrics={"list": [*LISTS, 0.5]}), "'list' alone 100001"),
    "many metrics": (hostile_content(metrics=dict.fromkeys(NAMES, 0.5)), "200002 metrics"),
    "many records": (hostile_content(records={name: ConfigRecord() for name in NAMES[:5000]}), "5002 records"),
    "many settings": (hostile_content(records={"config": config(200_000)}), "200000 values"),
    "many arrays": (hostile_content(arrays=NAMES), "200004 arrays"),
    "a long name of a metric": (hostile_content(metrics={"x" * 10_000_000: 0.5}), "has metric 'xxx"),
    "a long name of a record": (hostile_content(records={"x" * 10_000_000: ConfigRecord()}), "config record 'xxx"),
    "a long name of an array": (hostile_content(arrays=["x" * 10_000_000]), "unknown array 'xxx"),
}


def check_dropped(make, client, reason: str) -> None:
    """The hostile reply of node 1 is dropped, all others are kept, and it takes no longer than it should."""
    one_round(make(), federation(8), record(model()))
    reports: list = []
    strategy, grid, sent = make(on_round=reports.append), federation(8, node_1=client), record(model())
    replies = grid.send_and_receive(strategy.configure_train(1, sent, ConfigRecord(), grid))
    begin = time.process_time()
    arrays, _ = strategy.aggregate_train(1, replies)
    assert time.process_time() - begin < SECONDS
    assert arrays is not None
    assert reports[0].kept == 7
    bad = next(entry for entry in reports[0].clients if entry["client"] == 1)
    assert reason in bad["reason"]
    assert len(bad["reason"]) < 300


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
@pytest.mark.parametrize("data", HEADERS.values(), ids=HEADERS)
def test_a_header_is_refused_at_once(data, make):
    check_dropped(make, hostile_array(data), "'fc.weight'")


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
@pytest.mark.parametrize("case", CONTENTS.values(), ids=CONTENTS)
def test_what_is_too_much_is_not_read(case, make):
    check_dropped(make, *case)


def answer(seed: int) -> FitRes:
    rng = np.random.default_rng(seed)
    arrays = [(array + 0.01 + 0.001 * rng.standard_normal(array.shape)).astype(array.dtype) for array in SENT]
    return FitRes(OK, ndarrays_to_parameters(arrays), 20, {"loss": 0.5})


SENT = [np.ones((3, 4), np.float32), np.zeros(4, np.float32)]


def with_tensors(answer: FitRes, change) -> FitRes:
    return FitRes(OK, Parameters(change(answer.parameters.tensors), "numpy.ndarray"), 20, answer.metrics)


OLDER_ANSWERS = {
    **{
        f"header: {name}": (with_tensors(answer(0), lambda tensors, data=data: [data, *tensors[1:]]), "array '0'")
        for name, data in HEADERS.items()
    },
    "many tensors": (with_tensors(answer(0), lambda tensors: tensors * 200_000), "400000 arrays instead of 2"),
    "many metrics": (FitRes(OK, answer(0).parameters, 20, dict.fromkeys(NAMES, 0.5)), "200000 metrics"),
}


@pytest.mark.parametrize("make", OLDER.values(), ids=OLDER)
@pytest.mark.parametrize("case", OLDER_ANSWERS.values(), ids=OLDER_ANSWERS)
def test_the_older_api_reads_no_more(case, make):
    hostile, reason = case
    older_round(make(), [answer(place) for place in range(8)], SENT)
    reports: list = []
    strategy = make(on_round=reports.append)
    begin = time.process_time()
    arrays, _ = older_round(strategy, [hostile, *(answer(place) for place in range(1, 8))], SENT)
    assert time.process_time() - begin < SECONDS
    assert arrays is not None
    assert reports[0].kept == 7
    assert reason in reports[0].clients[0]["reason"]


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
def test_an_evaluation_reads_no_more(make):
    plain = honest(1)

    def client(message: Message) -> Message:
        if message.metadata.message_type.startswith("train"):
            return plain(message)
        return hostile_content(metrics={f"list-{place}": LISTS for place in range(40)})(message)

    reports: list = []
    strategy, grid = make(on_round=reports.append), federation(8, node_1=client)
    arrays, _ = one_round(strategy, grid, record(model()))
    replies = grid.send_and_receive(strategy.configure_evaluate(1, arrays, ConfigRecord(), grid))
    begin = time.process_time()
    metrics = strategy.aggregate_evaluate(1, replies)
    assert time.process_time() - begin < SECONDS
    assert metrics["accuracy"] == pytest.approx(0.9)


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
def test_nodes_that_were_not_asked_are_not_remembered(make):
    """Who may invent node ids could otherwise fill the server's memory, a round at a time."""
    strategy = make()
    invented = iter(range(10**6, 10**7))

    def client(message: Message) -> list[Message]:
        replies = [honest(1)(message) for _ in range(50)]
        for reply in replies:
            reply.metadata.__dict__["_src_node_id"] = next(invented)
        return replies

    arrays = record(model())
    for number in range(1, 4):
        arrays, _ = one_round(strategy, federation(8, node_1=client), arrays, number)
    held = {*strategy.server.defence._streaks._running, *strategy.server.defence._shares}
    assert held == set(range(2, 9))
