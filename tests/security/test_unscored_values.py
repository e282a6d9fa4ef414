"""An attacker uses what no rule scores: integer entries, the order of arrays, losses, the types of metrics."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.common import EvaluateRes, FitRes, ndarrays_to_parameters
from flwr.server import strategy as older
from flwr.serverapp.strategy import Bulyan, FedAdam, FedAvg, FedAvgM, FedMedian, FedTrimmedAvg, QFedAvg
from tests.flower.conftest import _task_identity  # noqa: F401
from tests.flower.federation import MemoryGrid, arrays_of, federation, honest, model, moved, one_round, record, reply_to
from tests.security.older import OK, older_evaluation, older_round

from fedra import FedRA
from fedra.flower import Guard, RobustStrategy, legacy

TABLE = np.arange(-3, 3, dtype=np.int8).reshape(2, 3)
WITH_INTEGERS = model() | {"table": TABLE, "steps": np.asarray(4), "mask": np.array([True, False, True])}
INNER = {"FedAvg": FedAvg, "FedAdam": FedAdam, "FedAvgM": lambda: FedAvgM(server_momentum=0.9), "FedMedian": FedMedian}


def integers(value: int):
    """Floats as an honest client's, and integers of its own."""

    def client(message):
        arrays = moved(message.content["arrays"], np.random.default_rng(message.metadata.dst_node_id))
        arrays |= {"table": np.full_like(TABLE, value), "steps": np.asarray(value), "mask": np.zeros(3, bool)}
        return reply_to(message, arrays, {"loss": 0.5, "num-examples": 20})

    return client


@pytest.mark.parametrize("make", INNER.values(), ids=INNER)
def test_integer_weights_stay_the_servers_own(make):
    """Nobody scores them, so nobody's count; those who changed them otherwise take part."""
    reports = []
    strategy = Guard(make(), rule=FedRA(num_malicious=1), on_round=reports.append)
    clients = dict.fromkeys(range(1, 9), integers(5)) | {3: integers(127)}
    result = strategy.start(MemoryGrid(clients), record(WITH_INTEGERS), num_rounds=3)
    assert all(not report.skipped for report in reports if report.phase == "train")
    assert all(entry["usable"] for report in reports if report.phase == "train" for entry in report.clients)
    for name in ("table", "steps", "mask"):
        assert result.arrays[name].numpy().dtype == WITH_INTEGERS[name].dtype
        np.testing.assert_array_equal(result.arrays[name].numpy(), WITH_INTEGERS[name])
    assert np.mean(result.arrays["fc.weight"].numpy() - WITH_INTEGERS["fc.weight"]) > 0


@pytest.mark.parametrize("make", [older.FedAvg, older.FedMedian], ids=["FedAvg", "FedMedian"])
def test_integer_weights_stay_the_servers_own_in_the_older_api(make):
    sent = [np.zeros(5, np.float32), TABLE]

    def answer(place, value):
        moved_to = sent[0] + 0.01 + 0.001 * np.random.default_rng(place).standard_normal(5).astype(np.float32)
        return FitRes(OK, ndarrays_to_parameters([moved_to, np.full_like(TABLE, value)]), 20, {})

    strategy = legacy.Guard(make(), rule=FedRA(num_malicious=1))
    arrays, metrics = older_round(strategy, [answer(place, 127 if place == 3 else 5) for place in range(8)], sent)
    assert metrics["fedra-skipped"] == 0
    assert arrays[1].dtype == np.int8
    np.testing.assert_array_equal(arrays[1], TABLE)


BY_POSITION = {
    "FedAvgM": lambda: FedAvgM(server_momentum=0.9),
    "FedMedian": FedMedian,
    "FedTrimmedAvg": FedTrimmedAvg,
    "Bulyan": lambda: Bulyan(num_malicious_nodes=0),
    "QFedAvg": lambda: QFedAvg(client_learning_rate=0.1, train_loss_key="loss"),
}


@pytest.mark.parametrize("make", BY_POSITION.values(), ids=BY_POSITION)
def test_another_order_of_arrays_is_not_another_model(make):
    """Some strategies take arrays by position: what was scored as one layer must not count as another."""
    parts = {"a": np.zeros(6, np.float32), "b": np.full(6, 100, np.float32)}

    def client(message):
        arrays = moved(message.content["arrays"], np.random.default_rng(message.metadata.dst_node_id))
        turned = dict(reversed(arrays.items())) if message.metadata.dst_node_id in (1, 5) else arrays
        return reply_to(message, turned, {"loss": 0.5, "num-examples": 20})

    arrays, _ = one_round(
        Guard(make(), rule="multi-krum"), MemoryGrid(dict.fromkeys(range(1, 9), client)), record(parts)
    )
    assert list(arrays) == ["a", "b"]
    for name, array in arrays_of(arrays).items():
        assert np.abs(array - parts[name]).max() < 1


@pytest.mark.parametrize("loss", [-1.0, -1e-3, -1e99, 1e9, 1e90, [0.5, 0.5], "missing"], ids=str)
@pytest.mark.parametrize("q", [0.1, 1.0, 2.0])
def test_a_loss_costs_its_sender_alone(loss, q):
    """q-FedAvg takes a power of each loss: of a negative one that is NaN, of a huge one all of the sum."""

    def liar(message):
        reply = honest(3)(message)
        if message.metadata.message_type.startswith("train"):
            del reply.content["metrics"]["loss"]
            if loss != "missing":
                reply.content["metrics"]["loss"] = loss
        return reply

    reports = []
    inner = QFedAvg(client_learning_rate=0.1, q=q, train_loss_key="loss")
    strategy = Guard(inner, rule=FedRA(num_malicious=1), on_round=reports.append)
    sent = record(model())
    result = strategy.start(federation(8, node_3=liar), sent, num_rounds=2)
    for report in [report for report in reports if report.phase == "train"]:
        assert not report.skipped
        assert [entry["client"] for entry in report.clients if not entry["usable"]] == [3]
    for name, array in arrays_of(result.arrays).items():
        assert np.isfinite(array).all()
        assert 0 < np.mean(array - sent[name].numpy()) < 0.1


def test_large_losses_that_all_have_are_kept():
    def client(message):
        reply = honest(message.metadata.dst_node_id)(message)
        reply.content["metrics"]["loss"] = 1e7 * message.metadata.dst_node_id
        return reply

    strategy = Guard(QFedAvg(client_learning_rate=0.1, train_loss_key="loss"), rule="krum")
    _, metrics = one_round(strategy, MemoryGrid(dict.fromkeys(range(1, 7), client)), record(model()))
    assert metrics["fedra-skipped"] == 0


def average(metrics):
    """A user's function for metrics, as in Flower's documentation."""
    total = sum(count for count, _ in metrics)
    return {key: sum(count * each[key] for count, each in metrics) / total for key in metrics[0][1]}


OLDER = {
    "robust": lambda: legacy.RobustStrategy(
        rule="krum", fit_metrics_aggregation_fn=average, evaluate_metrics_aggregation_fn=average
    ),
    "guard": lambda: legacy.Guard(
        older.FedAvg(fit_metrics_aggregation_fn=average, evaluate_metrics_aggregation_fn=average), rule="krum"
    ),
}
ODD_METRICS = {
    "text": {"loss": "low"},
    "bytes": {"loss": b"low"},
    "list": {"loss": [0.5, 0.5]},
    "nothing": {"loss": None},
    "an array": {"loss": np.zeros(3)},
    "beyond floats": {"loss": 10**400},
    "near the largest float": {"loss": 1.7e308},
    "another key": {"loss": 0.5, "__proto__": 1.0},
    "no key": {},
    "no name": {"loss": 0.5, 7: 1.0},
    "no dictionary": [0.5],
    "none at all": None,
}


@pytest.mark.parametrize("make", OLDER.values(), ids=OLDER)
@pytest.mark.parametrize("odd", ODD_METRICS.values(), ids=ODD_METRICS)
def test_an_odd_metric_of_the_older_api_costs_its_sender_alone(odd, make):
    sent = [np.zeros(5, np.float32)]

    def answer(place):
        moved_to = sent[0] + 0.01 + 0.001 * np.random.default_rng(place).standard_normal(5).astype(np.float32)
        return FitRes(OK, ndarrays_to_parameters([moved_to]), 20, odd if place == 0 else {"loss": 0.5})

    strategy = make()
    arrays, metrics = older_round(strategy, [answer(place) for place in range(8)], sent)
    assert arrays is not None
    assert metrics["loss"] == pytest.approx(0.5)
    evaluations = [EvaluateRes(OK, 0.25, 20, odd if place == 0 else {"loss": 0.5}) for place in range(8)]
    loss, metrics = older_evaluation(strategy, evaluations)
    assert loss == pytest.approx(0.25)
    assert metrics["loss"] == pytest.approx(0.5)
    odd_losses = [EvaluateRes(OK, 10**400 if place == 0 else 0.25, 20, {"loss": 0.5}) for place in range(8)]
    assert older_evaluation(strategy, odd_losses)[0] == pytest.approx(0.25)


@pytest.mark.parametrize("make", [lambda **o: RobustStrategy(**o), lambda **o: Guard(FedAvg(), **o)])
def test_what_reaches_the_log_and_the_trail_can_be_printed(make, caplog, tmp_path):
    evil = "\x1b]0;owned\x07\x1b[2J\r\n\u202e\ud800" + "x" * 10_000

    def client(message):
        arrays = record(moved(message.content["arrays"], np.random.default_rng(3)))
        metrics = MetricRecord({"loss": 0.5, "num-examples": 20})
        metrics.__dict__["_data"][evil] = 1.0
        return Message(RecordDict({evil: arrays, "metrics": metrics}), reply_to=message)

    def named(message):
        arrays = ArrayRecord({evil: record(model())["fc.weight"]})
        return reply_to(message, arrays, {"loss": 0.5, "num-examples": 20})

    reports = []
    strategy = make(rule=FedRA(num_malicious=1), on_round=reports.append, audit=tmp_path / "audit.jsonl")
    with caplog.at_level("INFO", "flwr"):
        one_round(strategy, federation(8, node_3=client, node_4=named), record(model()))
    assert not reports[0].skipped
    assert not any(entry["usable"] for entry in reports[0].clients if entry["client"] in (3, 4))
    texts = [entry["reason"] for entry in reports[0].clients] + [line.getMessage() for line in caplog.records]
    assert all(text.replace("\t", "").isprintable() and len(text) < 400 for text in texts)
    assert (tmp_path / "audit.jsonl").read_text(encoding="utf-8").replace("\n", "").isprintable()


def test_config_records_of_a_few_do_not_reach_the_inner_strategy():
    seen = []

    class Reads(FedAvg):
        def aggregate_train(self, server_round, replies):
            seen.extend(reply.content["notes"]["epochs"] for reply in replies)
            return super().aggregate_train(server_round, replies)

    def client(message):
        reply = honest(message.metadata.dst_node_id)(message)
        notes = {3: {}, 4: {"epochs": "many"}, 5: {"epochs": 2, "more": 1}}.get(
            message.metadata.dst_node_id, {"epochs": 2}
        )
        reply.content["notes"] = ConfigRecord(notes)
        return reply

    clients = dict.fromkeys(range(1, 13), client) | {6: honest(6)}
    _, metrics = one_round(Guard(Reads(), rule="multi-krum"), MemoryGrid(clients), record(model()))
    assert metrics["fedra-skipped"] == 0
    assert set(seen) == {2}


@pytest.mark.parametrize("each", [[1, 0.5], [1, 2], [0.5, 10**99], [-0.0, 0]])
@pytest.mark.parametrize("make", [lambda: Guard(FedAvg()), RobustStrategy], ids=["guard", "robust"])
def test_a_list_of_metrics_of_several_types_does_not_end_the_run(make, each):
    """Flower's own records refuse to hold whole numbers and others in one list, wherever one is made of it."""

    def client(message: Message) -> Message:
        metrics = MetricRecord({"each": [0.5, 0.25], "num-examples": 20})
        if message.metadata.dst_node_id == 1:
            metrics.__dict__["_data"]["each"] = each
        content = RecordDict({"metrics": metrics})
        if message.metadata.message_type.startswith("train"):
            rng = np.random.default_rng(message.metadata.dst_node_id)
            content["arrays"] = record(moved(message.content["arrays"], rng))
        return Message(content, reply_to=message)

    strategy, grid = make(), MemoryGrid(dict.fromkeys(range(1, 9), client))
    arrays, metrics = one_round(strategy, grid, record(model()))
    assert metrics["each"] == pytest.approx([(each[0] + 3.5) / 8, (each[1] + 1.75) / 8])
    messages = strategy.configure_evaluate(1, arrays, ConfigRecord(), grid)
    assert len(strategy.aggregate_evaluate(1, grid.send_and_receive(messages))["each"]) == 2
