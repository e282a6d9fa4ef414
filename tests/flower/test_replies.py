from __future__ import annotations

import numpy as np
import pytest
from flwr.app import ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAdam, FedAvg
from tests.flower.bad_replies import BAD
from tests.flower.federation import federation, model, one_round, record

from fedra import FedRA
from fedra.flower import Guard, RobustStrategy
from fedra.server.metrics import read_metrics

STRATEGIES = {
    "robust": lambda **options: RobustStrategy(rule=FedRA(num_malicious=1), **options),
    "robust fedavg": lambda **options: RobustStrategy(rule="fedavg", **options),
    "guard": lambda **options: Guard(FedAvg(), rule=FedRA(num_malicious=1), **options),
    "guard fedadam": lambda **options: Guard(FedAdam(), rule="multi-krum", **options),
}


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
@pytest.mark.parametrize("bad", BAD)
def test_a_bad_reply_is_dropped_with_a_reason(bad, make):
    client, reason = BAD[bad]
    reports = []
    arrays, metrics = one_round(make(on_round=reports.append), federation(8, node_3=client), record(model()))
    (report,) = reports
    dropped = [entry for entry in report.clients if not entry["usable"]]
    assert len(dropped) == 1
    assert reason in dropped[0]["reason"]
    assert dropped[0]["reason"].isprintable()
    assert len(dropped[0]["reason"]) < 250
    assert not dropped[0]["kept"]
    assert metrics["fedra-skipped"] == 0
    assert all(np.isfinite(array.numpy()).all() for array in arrays.values())
    assert sum(entry["kept"] for entry in report.clients if entry["client"] != 3) >= 4


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
def test_many_bad_replies_at_once(make):
    clients = {f"node_{i}": client for i, (client, _) in enumerate(BAD.values(), start=20)}
    arrays, metrics = one_round(make(), federation(19, **clients), record(model()))
    assert metrics["fedra-kept"] >= 10
    assert all(np.isfinite(array.numpy()).all() for array in arrays.values())


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
def test_a_round_of_bad_replies_only_changes_nothing(make):
    kinds = ["nan", "inf", "other shape", "other dtype", "error", "num-examples zero", "no content at all", "no bytes"]
    clients = {f"node_{i}": BAD[kind][0] for i, kind in enumerate(kinds, start=1)}
    arrays, metrics = one_round(make(), federation(0, **clients), record(model()))
    assert arrays is None
    assert metrics["fedra-kept"] == 0
    assert metrics["fedra-rejected"] == len(kinds)
    assert metrics["fedra-skipped"] == 1


def _evaluation(claim, accuracy=0.9, **more):
    def client(message: Message) -> Message:
        metrics = MetricRecord({"accuracy": accuracy, "num-examples": 1, **more})
        metrics.__dict__["_data"]["num-examples"] = claim
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    return client


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
def test_bad_evaluations_are_dropped_too(make):
    bad = [
        _evaluation([1, 2]),
        _evaluation("5"),
        _evaluation(-1),
        _evaluation(float("nan")),
        _evaluation(5, accuracy=float("inf")),
        _evaluation(5, evil=1.0),
        BAD["error"][0],
        BAD["no content at all"][0],
    ]
    good = {node: _evaluation(10, accuracy=0.5) for node in range(1, 10)}
    grid = federation(0, **{f"node_{i}": client for i, client in enumerate(bad, start=10)})
    grid.clients |= good
    strategy = make()
    messages = strategy.configure_evaluate(1, record(model()), ConfigRecord(), grid)
    metrics = strategy.aggregate_evaluate(1, grid.send_and_receive(messages))
    assert metrics["accuracy"] == pytest.approx(0.5)


def test_a_list_of_whole_and_other_numbers_is_one_of_floats():
    """Flower's records take lists of one type only, and raise for others."""
    values, _ = read_metrics({"mixed": [1, 0.5], "whole": [1, 2], "none": []})
    assert values == {"mixed": [1.0, 0.5], "whole": [1, 2], "none": []}
    assert [type(number) for number in values["mixed"]] == [float, float]
    MetricRecord(values)
