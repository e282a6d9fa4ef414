from __future__ import annotations

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAdam, FedAvg
from tests.flower.bad_replies import BAD
from tests.flower.federation import federation, model, moved, one_round, record, reply_to

from fedra import FedRA
from fedra.flower import Guard, RobustStrategy
from fedra.flower.messages import (
    Loan,
    claimed_metrics,
    drop_arrays,
    read_messages,
    round_figures,
    sent_array_key,
    weighted_contents,
)
from fedra.flower.npy import npy_model_form
from fedra.server import RoundRecord
from fedra.server.replies import Reply

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


SENT = record(model() | {"steps": np.asarray(3), "half": np.ones(2, np.float16)})
FORM = npy_model_form({name: array.data for name, array in SENT.items()})


def question(node: int = 1, **records) -> Message:
    return Message(RecordDict(records or {"arrays": SENT}), node, "train")


def answer(node: int = 1, *, metrics=None, **records) -> Message:
    arrays = moved(SENT, np.random.default_rng(node))
    return reply_to(question(node), arrays, metrics or {"loss": 0.5, "num-examples": 20}, **records)


def read(*messages: Message, asked=None) -> list[Reply]:
    return read_messages(messages, weight_key="num-examples", asked=asked, model=FORM)


def test_a_reply_as_it_is_read():
    (reply,) = read(answer(7, notes=ConfigRecord({"by": "me"})))
    assert (reply.client, reply.fault, reply.claim, reply.metrics) == (7, "", 20.0, {"loss": 0.5})
    assert sum(view.size for view in reply.views) == FORM.dimension
    assert reply.layout.configs == (("notes", (("by", "str"),)),)
    assert reply.handed_as == ("arrays", "metrics")


@pytest.mark.parametrize("node", [None, "7", 2**70, 1.5, b"x" * 200])
def test_who_is_no_node_is_not_looked_up(node):
    message = answer()
    message.metadata.__dict__["_src_node_id"] = node
    (reply,) = read(message, asked=frozenset([1]))
    assert not reply.asked
    assert isinstance(reply.client, str)
    assert "was not asked" in reply.fault


def test_records_are_counted_before_they_are_read():
    (reply,) = read(answer(**{f"r{i}": ConfigRecord() for i in range(99)}))
    assert reply.fault == "101 records, more than 100"


def test_the_name_of_the_array_record_that_was_sent():
    assert sent_array_key([question(config=ConfigRecord(), weights=SENT)]) == "weights"
    assert sent_array_key([]) == "arrays"


def test_dropped_arrays_stay_with_whoever_else_holds_them():
    message = answer()
    held = message.content["arrays"]
    (reply,) = read(message)
    drop_arrays(reply)
    assert list(message.content) == ["metrics"]
    assert len(held) == len(SENT)


def test_a_loan_is_given_back_bit_for_bit_in_the_servers_form():
    message = answer(notes=ConfigRecord({"by": "me"}), gossip=ConfigRecord({"about": "others"}))
    sent_back = {name: array.numpy() for name, array in message.content["arrays"].items()}
    (reply,) = read(message)
    vector = FORM.flat(reply.views)
    loan = Loan(reply, FORM)
    assert "arrays" not in message.content
    assert reply.views == []
    loan.restore(vector, SENT, MetricRecord({"num-examples": 3}), ["notes"])
    assert list(message.content) == ["arrays", "metrics", "notes"]
    assert dict(message.content["metrics"]) == {"num-examples": 3}
    for name, array in message.content["arrays"].items():
        expected = SENT[name].numpy() if name == "steps" else sent_back[name]
        assert array.numpy().tobytes() == expected.tobytes()
        assert (array.dtype, tuple(array.shape)) == (str(expected.dtype), expected.shape)


def test_claims_and_weights_in_what_is_handed_on():
    replies = read(answer(1), answer(2, metrics={"loss": 1, "num-examples": 60.5}))
    assert [dict(record) for record in claimed_metrics(replies, "num-examples")] == [
        {"loss": 0.5, "num-examples": 20},
        {"loss": 1, "num-examples": 60.5},
    ]
    assert [record["num-examples"] for record in claimed_metrics(replies, "num-examples", [4, 5])] == [4, 5]
    weighed = weighted_contents(replies, [0.25, 0.75], "num-examples")
    assert [content["metrics"]["num-examples"] for content in weighed] == pytest.approx([80.5 / 4, 3 * 80.5 / 4])


@pytest.mark.parametrize("weights", [[0.0, 0.0], [float("nan"), 1.0], [-1.0, 0.5]])
def test_weights_that_are_none_count_all_alike(weights):
    contents = weighted_contents(read(answer(1), answer(2)), weights, "num-examples")
    assert [content["metrics"]["num-examples"] for content in contents] == [20, 20]


def test_what_the_metrics_say_of_the_defence():
    clients = [{"kept": True}, {"kept": False}, {"kept": True}]
    record_ = RoundRecord(
        run="", round=1, phase="train", time=0, rule="r", num_malicious=None, note="", clients=clients
    )
    assert round_figures(record_) == {"fedra-kept": 2, "fedra-rejected": 1, "fedra-skipped": 0}
    failed = RoundRecord(run="", round=1, phase="train", time=0, rule="r", num_malicious=2, note="x", clients=[])
    assert round_figures(failed) == {
        "fedra-kept": 0, "fedra-rejected": 0, "fedra-skipped": 1, "fedra-num-malicious": 2,
    }  # fmt: skip


def test_evaluation_replies_carry_no_arrays():
    content = RecordDict({"metrics": MetricRecord({"num-examples": 5}), "arrays": ArrayRecord()})
    (reply,) = read_messages([Message(content, reply_to=question())], weight_key="num-examples", asked=None, model=None)
    assert not reply.fault
    assert reply.views == []
