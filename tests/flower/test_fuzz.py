"""Mutated replies against both strategies: nothing raises, the result is finite, honest replies are kept."""

from __future__ import annotations

import logging
from functools import partial

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flower.federation import MemoryGrid, model, moved, one_round, record, reply_to

from fedra.flower import Guard, RobustStrategy

HONEST = 9
MOST_BAD = 3

numbers = st.one_of(
    st.integers(-(10**400), 10**400),
    st.floats(),
    st.booleans(),
    st.text(max_size=5),
    st.none(),
    st.lists(st.one_of(st.floats(), st.integers(-9, 9)), max_size=3),
)
names = st.one_of(
    st.sampled_from(["arrays", "metrics", "config", "conv.bias", "scale", "num-examples", "loss"]), st.text()
)
arrays = st.builds(
    lambda shape, dtype, value: np.full(shape, value).astype(dtype),
    st.lists(st.integers(0, 5), max_size=3).map(tuple),
    st.sampled_from([np.float16, np.float32, np.float64, np.int64, np.uint8, np.bool_, np.complex64, "U3", "M8[s]"]),
    st.integers(0, 1),
)
values = st.sampled_from([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e20, 1e-45, 0.0, -5.0])


changes = st.lists(
    st.one_of(
        st.tuples(st.just("metric"), names, numbers),
        st.tuples(st.just("drop metric"), names),
        st.tuples(st.just("array"), names, arrays),
        st.tuples(st.just("drop array"), names),
        st.tuples(st.just("value"), st.integers(0, 3), values),
        st.tuples(st.just("bytes"), st.integers(0, 3), st.integers(0, 300), st.binary(max_size=40)),
        st.tuples(st.just("cut"), st.integers(0, 3), st.integers(0, 300)),
        st.tuples(st.just("rename"), st.sampled_from(["arrays", "metrics"]), names),
        st.tuples(st.just("drop record"), st.sampled_from(["arrays", "metrics"])),
        st.tuples(st.just("stype"), st.text(max_size=12)),
        st.tuples(st.just("error"), st.text(max_size=20)),
        st.tuples(st.just("twice")),
    ),
    min_size=1,
    max_size=3,
)
# Clients that start from a good reply and spoil it in one to three ways.
mutated = st.lists(changes, min_size=1, max_size=MOST_BAD)

SENT = record(model())
ANSWERS = {node: record(moved(SENT, np.random.default_rng(node))) for node in range(1, HONEST + 1)}


def answer(message: Message) -> Message:
    if message.metadata.message_type.startswith("evaluate"):
        content = RecordDict({"metrics": MetricRecord({"loss": 0.5, "num-examples": 20})})
        return Message(content, reply_to=message)
    return reply_to(message, ANSWERS[message.metadata.dst_node_id], {"loss": 0.5, "num-examples": 20})


@pytest.fixture(autouse=True, scope="module")
def _quiet():
    logger = logging.getLogger("flwr")
    level = logger.level
    logger.setLevel(logging.WARNING)
    yield
    logger.setLevel(level)


def spoil(message: Message, changes: list[tuple]) -> Message | list[Message]:
    parts = moved(message.content["arrays"], np.random.default_rng(5))
    metrics = MetricRecord({"loss": 0.5, "num-examples": 20})
    held = metrics.__dict__["_data"]
    sent = record(parts)
    keys = {"arrays": "arrays", "metrics": "metrics"}
    copies = 1
    for kind, *rest in changes:
        if kind == "metric":
            held[rest[0]] = rest[1]
        elif kind == "drop metric":
            held.pop(rest[0], None)
        elif kind == "array":
            sent[rest[0]] = Array(rest[1])
        elif kind == "drop array":
            sent.pop(rest[0], None)
        elif kind in ("value", "bytes", "cut", "stype"):
            alter(sent, kind, rest)
        elif kind == "rename" and rest[0] in keys:
            keys[rest[0]] = rest[1]
        elif kind == "drop record":
            keys.pop(rest[0], None)
        elif kind == "error":
            return Message(Error(code=1, reason=rest[0]), reply_to=message)
        elif kind == "twice":
            copies = 2
    content = RecordDict({keys[key]: part for key, part in (("arrays", sent), ("metrics", metrics)) if key in keys})
    return [Message(content, reply_to=message) for _ in range(copies)]


def alter(sent: ArrayRecord, kind: str, rest: list) -> None:
    if not len(sent):
        return
    name = list(sent)[(rest[0] if isinstance(rest[0], int) else 0) % len(sent)]
    array = sent[name]
    data, stype = array.data, array.stype
    if kind == "stype":
        stype = rest[0]
    elif kind == "cut":
        data = data[: rest[1]]
    elif kind == "bytes":
        data = data[: rest[1]] + rest[2] + data[rest[1] + len(rest[2]) :]
    else:
        try:
            numpy_array = np.array(array.numpy())
        except Exception:  # an earlier change has already made it unreadable
            return
        if numpy_array.dtype.kind != "f" or not numpy_array.size:
            return
        with np.errstate(all="ignore"):
            numpy_array.reshape(-1)[0] = rest[1]
        data = Array(numpy_array).data
    sent[name] = Array(array.dtype, tuple(array.shape), stype, data)


def check(make_strategy, spoiled) -> None:
    reports = []
    clients = dict.fromkeys(ANSWERS, answer)
    clients |= {i: partial(spoil, changes=change) for i, change in enumerate(spoiled, start=HONEST + 1)}
    strategy = make_strategy(reports.append)
    grid = MemoryGrid(clients)
    result, metrics = one_round(strategy, grid, SENT)
    (report,) = reports
    honest = [entry for entry in report.clients if entry["client"] <= HONEST]
    assert all(entry["usable"] for entry in honest), "an honest reply was screened out"
    assert result is not None
    assert all(np.isfinite(array.numpy()).all() for array in result.values())
    assert all(np.isfinite(value) for value in metrics.values())
    assert sum(entry["kept"] for entry in honest) >= HONEST // 2
    messages = strategy.configure_evaluate(1, result, ConfigRecord(), grid)
    strategy.aggregate_evaluate(1, grid.send_and_receive(messages))


@settings(max_examples=1000)
@given(mutated, st.sampled_from(["fedra", "multi-krum", "median", "fedavg"]))
def test_robust_strategy(spoiled, rule):
    check(lambda on_round: RobustStrategy(rule=rule, on_round=on_round, threads=1), spoiled)


@settings(max_examples=1000)
@given(mutated, st.sampled_from(["fedra", "multi-krum"]))
def test_guard(spoiled, rule):
    check(lambda on_round: Guard(FedAvg(), rule=rule, on_round=on_round, threads=1), spoiled)
