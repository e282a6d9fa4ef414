"""An attacker outvotes honest clients: by a layout that is no majority's, or by many copies of one reply."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import ConfigRecord, Message, MetricRecord, RecordDict
from flwr.common import FitRes, ndarrays_to_parameters
from flwr.server import strategy as older
from flwr.serverapp.strategy import FedAvg
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flower.conftest import _task_identity  # noqa: F401
from tests.flower.federation import MemoryGrid, federation, honest, model, moved, one_round, record, reply_to
from tests.security.older import OK, Proxy, older_round

from fedra import FedRA
from fedra.audit.log import record_lines
from fedra.flower import Guard, RobustStrategy, legacy

STRATEGIES = {
    "robust": lambda **options: RobustStrategy(rule=FedRA(num_malicious=5), **options),
    "guard": lambda **options: Guard(FedAvg(), rule=FedRA(num_malicious=5), **options),
}


def laid_out(metrics: dict, names: tuple[str, str] = ("arrays", "metrics")):
    def client(message):
        node = message.metadata.dst_node_id
        metric_record = MetricRecord({**metrics, "num-examples": 20})
        if message.metadata.message_type.startswith("evaluate"):
            return Message(RecordDict({names[1]: metric_record}), reply_to=message)
        arrays = moved(message.content["arrays"], np.random.default_rng(node))
        return Message(RecordDict({names[0]: record(arrays), names[1]: metric_record}), reply_to=message)

    return client


def colluding(message):
    if message.metadata.message_type.startswith("evaluate"):
        content = RecordDict({"numbers": MetricRecord({"evil": 1.0, "num-examples": 20})})
        return Message(content, reply_to=message)
    arrays = {name: array.numpy() - 3 for name, array in message.content["arrays"].items()}
    content = RecordDict({"weights": record(arrays), "numbers": MetricRecord({"evil": 1.0, "num-examples": 20})})
    return Message(content, reply_to=message)


THREE_LAYOUTS = {
    "keys": [laid_out({"loss": 0.5}), laid_out({"loss": 0.5, "acc": 0.9}), laid_out({"loss": 0.5, "f1": 0.9})],
    "names": [laid_out({"loss": 0.5}, names) for names in (("arrays", "metrics"), ("w", "m"), ("metrics", "arrays"))],
    "lists": [laid_out({"loss": 0.5, "all": [0.5] * length}) for length in (1, 2, 3)],
}


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
@pytest.mark.parametrize("layouts", THREE_LAYOUTS.values(), ids=THREE_LAYOUTS)
def test_five_colluders_do_not_outvote_twelve_in_three_layouts(layouts, make):
    reports = []
    strategy = make(on_round=reports.append)
    clients = {node: layouts[node % 3] for node in range(1, 13)} | dict.fromkeys(range(13, 18), colluding)
    grid = MemoryGrid(clients)
    sent = record(model())
    arrays, metrics = one_round(strategy, grid, sent)
    assert not reports[0].skipped
    assert all(entry["usable"] for entry in reports[0].clients if entry["client"] <= 12)
    assert sum(entry["kept"] for entry in reports[0].clients if entry["client"] <= 12) >= 6
    assert not any(entry["kept"] for entry in reports[0].clients if entry["client"] > 12)
    assert np.mean(arrays["fc.weight"].numpy() - sent["fc.weight"].numpy()) > 0
    assert metrics["loss"] == pytest.approx(0.5)
    messages = strategy.configure_evaluate(1, arrays, ConfigRecord(), grid)
    assert strategy.aggregate_evaluate(1, grid.send_and_receive(messages))["loss"] == pytest.approx(0.5)


def test_twelve_in_three_layouts_of_the_older_api():
    sent = [np.zeros(5, np.float32)]
    forms = [{"loss": 0.5}, {"loss": 0.5, "acc": 0.9}, {"loss": 0.5, "note": "x"}]

    def answer(place):
        step = 0.01 + 0.001 * np.random.default_rng(place).standard_normal(5) if place < 12 else np.full(5, -3.0)
        arrays = [(sent[0] + step).astype(np.float32)]
        return FitRes(OK, ndarrays_to_parameters(arrays), 20, forms[place % 3] if place < 12 else {"evil": 1.0})

    for strategy in (
        legacy.RobustStrategy(rule=FedRA(num_malicious=5)),
        legacy.Guard(older.FedAvg(), rule=FedRA(num_malicious=5)),
    ):
        arrays, metrics = older_round(strategy, [answer(place) for place in range(17)], sent)
        assert metrics["fedra-skipped"] == 0
        assert np.mean(arrays[0]) > 0


@settings(max_examples=40)
@given(st.lists(st.integers(0, 4), min_size=7, max_size=15), st.integers(0, 3))
def test_a_layout_that_more_than_half_have_is_never_refused(others, extra):
    """Honest clients of one layout, and fewer of any other: all of the honest ones stay usable."""
    forms = [{"loss": 0.5}, {"evil": 1.0}, {"loss": [0.5]}, {"loss": 0.5, "evil": 1.0}, {}]
    reports = []
    count = len(others) + 1 + extra
    clients = {node: laid_out({"loss": 0.5}) for node in range(1, count + 1)}
    clients |= {100 + place: laid_out(forms[other]) for place, other in enumerate(others)}
    one_round(RobustStrategy(rule="median", on_round=reports.append), MemoryGrid(clients), record(model()))
    assert all(entry["usable"] for entry in reports[0].clients if entry["client"] <= count)


@pytest.mark.parametrize("make", [lambda **o: RobustStrategy(**o), lambda **o: Guard(FedAvg(), **o)])
def test_copies_of_a_reply_do_not_make_the_federation_larger(make):
    """FedRA's N comes from nodes, not from replies."""

    def kept(copies, strangers=0):
        def client(message):
            replies = [honest(13)(message) for _ in range(copies)]
            for number in range(strangers):
                stranger = honest(13)(message)
                stranger.metadata.__dict__["_src_node_id"] = 5000 + number
                replies.append(stranger)
            return replies

        reports = []
        strategy = make(rule=FedRA(malicious_ratio=0.3), on_round=reports.append)
        one_round(strategy, federation(12, node_13=client), record(model()))
        return {entry["client"] for entry in reports[0].clients if entry["kept"]}, reports[0].num_malicious

    assert kept(100) == kept(1)
    assert kept(1, strangers=100) == kept(1)


def test_copies_do_not_make_the_federation_larger_in_the_older_api():
    sent = [np.zeros(5, np.float32)]

    def answer(place):
        step = 0.01 + 0.001 * np.random.default_rng(place).standard_normal(5).astype(np.float32)
        return FitRes(OK, ndarrays_to_parameters([sent[0] + step]), 20, {})

    def kept(copies):
        reports = []
        strategy = legacy.RobustStrategy(rule=FedRA(malicious_ratio=0.3), on_round=reports.append)
        older_round(strategy, [answer(place) for place in range(13)], sent)
        results = [(Proxy(str(place)), answer(place)) for place in range(13)]
        strategy.aggregate_fit(2, results + [(Proxy("0"), answer(0))] * copies, [ConnectionError("gone")] * copies)
        return {entry["client"] for entry in reports[1].clients if entry["kept"]}, reports[1].num_malicious

    assert kept(100) == kept(0)


def test_a_node_is_a_number():
    def nobody(identity):
        def client(message):
            reply = reply_to(message, message.content["arrays"], {"loss": 0.5, "num-examples": 20})
            reply.metadata.__dict__["_src_node_id"] = identity
            return reply

        return client

    reports = []
    odd = {
        f"node_{20 + i}": nobody(identity) for i, identity in enumerate([None, [1], {}, "\x1b[2J", 2**70, float("nan")])
    }
    one_round(RobustStrategy(rule="krum", on_round=reports.append), federation(8, **odd), record(model()))
    assert not reports[0].skipped
    assert sum(entry["usable"] for entry in reports[0].clients) == 8
    assert all(str(entry["client"]).isprintable() for entry in reports[0].clients)
    assert record_lines(reports[0])
