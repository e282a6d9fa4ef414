from __future__ import annotations

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import (
    DifferentialPrivacyServerSideFixedClipping,
    FedAdagrad,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedMedian,
    FedProx,
    FedYogi,
    Strategy,
)
from tests.flower.federation import MemoryGrid, arrays_of, federation, honest, model, moved, one_round, record, reply_to

from fedra import FedRA
from fedra.flower import Guard

INNER = {
    "FedAvg": FedAvg,
    "FedAvgM": FedAvgM,
    "FedAdam": FedAdam,
    "FedYogi": FedYogi,
    "FedAdagrad": FedAdagrad,
    "FedProx": lambda: FedProx(proximal_mu=0.1),
    "FedMedian": FedMedian,
    "DP": lambda: DifferentialPrivacyServerSideFixedClipping(
        FedAvg(), noise_multiplier=1e-6, clipping_norm=10.0, num_sampled_clients=8
    ),
}


def liar(message: Message) -> Message:
    sent = arrays_of(message.content["arrays"])
    return reply_to(
        message, {n: (a - 3).astype(a.dtype) for n, a in sent.items()}, {"loss": 0.0, "num-examples": 10**9}
    )


@pytest.mark.parametrize("make", INNER.values(), ids=INNER)
def test_any_strategy_stays_on_course(make):
    sent = record(model())
    strategy = Guard(make(), rule="fedra")
    result = strategy.start(federation(8, node_3=liar), sent, num_rounds=3)
    for number in (1, 2, 3):
        assert result.train_metrics_clientapp[number]["fedra-rejected"] >= 1
    change = np.mean(result.arrays["fc.weight"].numpy() - sent["fc.weight"].numpy())
    assert 0 < change < 1


def test_plain_fedavg_is_captured_by_the_same_liar():
    sent = record(model())
    arrays, _ = one_round(FedAvg(), federation(8, node_3=liar), sent)
    assert np.mean(arrays["fc.weight"].numpy() - sent["fc.weight"].numpy()) < -2.9


@pytest.mark.parametrize("rule", ["fedra", "krum", "multi-krum", "caf", "dnc", "ctma"])
def test_kept_values_reach_the_inner_strategy_bit_for_bit_in_the_servers_form(rule):
    seen: dict[int, ArrayRecord] = {}
    sent_back: dict[int, dict[str, np.ndarray]] = {}

    class Watching(FedAvg):
        def aggregate_train(self, server_round, replies):
            for reply in replies:
                seen[reply.metadata.src_node_id] = reply.content["arrays"].copy()
                assert reply.content["metrics"]["num-examples"] == 20
                assert list(reply.content) == ["arrays", "metrics", "notes"]
            return super().aggregate_train(server_round, replies)

    def client(message):
        rng = np.random.default_rng(message.metadata.dst_node_id)
        arrays = moved(message.content["arrays"], rng)
        arrays["fc.weight"] = np.asfortranarray(arrays["fc.weight"])
        arrays["conv.weight"] = arrays["conv.weight"].astype(">f4")
        sent_back[message.metadata.dst_node_id] = arrays
        backwards = dict(reversed(arrays.items()))
        return reply_to(message, backwards, {"num-examples": 20}, notes=ConfigRecord({"by": "client"}))

    parts = model() | {"steps": np.asarray(3), "nothing": np.zeros((0, 2), np.float32), "half": np.ones(3, np.float16)}
    one_round(Guard(Watching(), rule=rule), MemoryGrid(dict.fromkeys(range(1, 9), client)), record(parts))
    assert seen
    for node, arrays in seen.items():
        assert list(arrays) == list(parts)
        expected = sent_back[node] | {"steps": parts["steps"]}
        for name, array in arrays.items():
            plain = Array(np.ascontiguousarray(expected[name], dtype=parts[name].dtype).reshape(parts[name].shape))
            assert (array.dtype, array.shape, array.stype, array.data) == (
                plain.dtype, plain.shape, plain.stype, plain.data,
            )  # fmt: skip


def test_records_that_others_hold_are_not_emptied():
    sent = record(model())
    held = record(moved(sent, np.random.default_rng(0)))

    def echo(message):
        return reply_to(message, held, {"num-examples": 5})

    one_round(Guard(FedAvg(), rule="krum"), MemoryGrid(dict.fromkeys(range(1, 7), echo)), sent)
    assert all(len(array.data) > 0 and np.isfinite(array.numpy()).all() for array in held.values())


def test_integers_that_flower_averages_do_not_shut_honest_clients_out():
    """Flower's FedAvg returns integer buffers as floats; clients go on sending integers."""

    def client(message):
        rng = np.random.default_rng(message.metadata.dst_node_id)
        arrays = moved(message.content["arrays"], rng) | {"steps": np.asarray(5, dtype=np.int64)}
        return reply_to(message, arrays, {"num-examples": 5})

    sent = record(model() | {"steps": np.asarray(4, dtype=np.int64)})
    result = Guard(FedAvg(), rule=FedRA(num_malicious=1)).start(
        MemoryGrid(dict.fromkeys(range(1, 8), client)), sent, num_rounds=3
    )
    assert all(metrics["fedra-skipped"] == 0 for metrics in result.train_metrics_clientapp.values())
    assert all(metrics["fedra-kept"] >= 4 for metrics in result.train_metrics_clientapp.values())


def test_only_selecting_rules_can_guard():
    for rule in ("median", "fedavg", "rfa", "bulyan"):
        with pytest.raises(ValueError, match="krum, multi-krum, caf, dnc, ctma, fedra"):
            Guard(FedAvg(), rule=rule)
    with pytest.raises(TypeError, match="give a strategy"):
        Guard("FedAvg")


def test_a_strategy_of_the_users_own():
    class Own(Strategy):
        weighted_by_key = "samples"

        def configure_train(self, server_round, arrays, config, grid):
            content = RecordDict({"arrays": arrays, "config": config})
            return [Message(content, node, "train") for node in grid.get_node_ids()]

        def aggregate_train(self, server_round, replies):
            replies = list(replies)
            return replies[0].content["arrays"], MetricRecord({"got": len(replies)})

        def configure_evaluate(self, server_round, arrays, config, grid):
            return []

        def aggregate_evaluate(self, server_round, replies):
            return None

        def summary(self):
            return None

    def client(message):
        rng = np.random.default_rng(message.metadata.dst_node_id)
        return reply_to(message, moved(message.content["arrays"], rng), {"samples": 7})

    result = Guard(Own(), rule=FedRA(num_malicious=1)).start(
        MemoryGrid(dict.fromkeys(range(1, 7), client)), record(model()), num_rounds=2
    )
    assert result.train_metrics_clientapp[2]["got"] == result.train_metrics_clientapp[2]["fedra-kept"]


def test_an_inner_result_that_is_not_finite_is_not_used():
    class Broken(FedAvg):
        def aggregate_train(self, server_round, replies):
            arrays, metrics = super().aggregate_train(server_round, replies)
            return ArrayRecord({n: Array(np.full(a.shape, np.nan)) for n, a in arrays.items()}), metrics

    arrays, metrics = one_round(Guard(Broken(), rule="krum"), federation(6), record(model()))
    assert arrays is None
    assert metrics["fedra-skipped"] == 1


def test_evaluation_leaves_out_whom_training_left_out():
    grid = federation(8, node_3=liar)

    def evaluates(message):
        if message.metadata.message_type.startswith("train"):
            return liar(message)
        content = RecordDict({"metrics": MetricRecord({"accuracy": 0.0, "num-examples": 2**52})})
        return Message(content, reply_to=message)

    grid.clients[3] = evaluates
    strategy = Guard(FedAvg(), rule="fedra")
    arrays, _ = one_round(strategy, grid, record(model()))
    messages = strategy.configure_evaluate(1, arrays, ConfigRecord(), grid)
    metrics = strategy.aggregate_evaluate(1, grid.send_and_receive(messages))
    assert metrics["accuracy"] == pytest.approx(0.9)


def test_no_training_is_left_to_the_inner_strategy():
    strategy = Guard(FedAvg(fraction_train=0.0, fraction_evaluate=0.0), rule="fedra")
    result = strategy.start(MemoryGrid({1: honest(1), 2: honest(2)}), record(model()), num_rounds=1)
    assert not result.train_metrics_clientapp
