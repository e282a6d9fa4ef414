from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg as FlowerFedAvg
from tests.flower.federation import (
    MemoryGrid,
    arrays_of,
    federation,
    honest,
    model,
    moved,
    one_round,
    record,
    reply_to,
)

from fedra import RULES, Decision, Family, FedRA, Rule, make_rule
from fedra.flower import RobustStrategy
from fedra.kernels import norms
from fedra.optimizers import SGD, Adam


def quantities(node: int) -> int:
    return 3 + 5 * node


def uneven(count: int) -> MemoryGrid:
    return MemoryGrid({node: honest(node, quantities(node)) for node in range(1, count + 1)})


def liar(claim: float = 1e9):
    def client(message):
        sent = arrays_of(message.content["arrays"])
        poisoned = {name: array - np.asarray(3, dtype=array.dtype) for name, array in sent.items()}
        return reply_to(message, poisoned, {"loss": 0.0, "num-examples": claim})

    return client


def test_fedavg_with_plain_descent_is_flowers_fedavg():
    sent = record(model())
    ours, our_metrics = one_round(RobustStrategy(rule="fedavg", server_optimizer=SGD(lr=1.0)), uneven(8), sent)
    theirs, their_metrics = one_round(FlowerFedAvg(), uneven(8), sent)
    assert list(ours) == list(theirs)
    for name, array in theirs.items():
        assert (ours[name].dtype, ours[name].shape, ours[name].stype) == (array.dtype, array.shape, array.stype)
        np.testing.assert_allclose(ours[name].numpy(), array.numpy(), rtol=3e-7, atol=1e-7)
    assert our_metrics["loss"] == pytest.approx(their_metrics["loss"])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_types_names_and_shapes_stay(dtype):
    sent = record(model(dtype=dtype))
    arrays, _ = one_round(RobustStrategy(rule="uniform"), federation(5), sent)
    assert list(arrays) == list(sent)
    assert all(arrays[name].numpy().dtype == dtype for name in sent)
    assert all(arrays[name].shape == sent[name].shape for name in sent)
    assert all(np.mean(arrays[name].numpy() - sent[name].numpy()) == pytest.approx(0.01, rel=0.2) for name in sent)


def test_entries_that_are_not_floats_stay_as_the_server_has_them():
    parts = model() | {
        "steps": np.asarray(7, dtype=np.int64),
        "table": np.arange(6, dtype=np.uint8).reshape(2, 3),
        "mask": np.array([True, False]),
    }
    sent = record(parts)

    def counting(seed):
        rng = np.random.default_rng(seed)

        def client(message):
            arrays = moved(message.content["arrays"], rng) | {"mask": np.array([False, False])}
            return reply_to(message, arrays, {"num-examples": 5})

        return client

    arrays, metrics = one_round(
        RobustStrategy(rule="fedavg"), MemoryGrid({node: counting(node) for node in range(1, 6)}), sent
    )
    assert metrics["fedra-kept"] == 5
    for name in ("steps", "table", "mask"):
        assert arrays[name].dtype == sent[name].dtype
        np.testing.assert_array_equal(arrays[name].numpy(), parts[name])
    assert not np.array_equal(arrays["fc.weight"].numpy(), parts["fc.weight"])


@pytest.mark.parametrize(
    "parts",
    [{}, {"steps": np.asarray(3)}, {"nothing": np.zeros((0, 4), np.float32)}],
    ids=["no arrays", "int", "empty"],
)
@pytest.mark.parametrize("rule", sorted(RULES))
def test_models_without_a_single_trained_value(rule, parts):
    arrays, metrics = one_round(RobustStrategy(rule=rule, server_optimizer="adam"), federation(9), record(parts))
    assert list(arrays) == list(parts)
    assert metrics["fedra-skipped"] == 0


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "fedadam"])
@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule_with_every_optimizer(rule, optimizer):
    sent = record(model())
    strategy = RobustStrategy(rule=rule, server_optimizer=optimizer)
    arrays, metrics = one_round(strategy, federation(11), sent)
    assert metrics["fedra-kept"] + metrics["fedra-rejected"] == 11
    for name, array in arrays_of(arrays).items():
        assert np.isfinite(array).all()
        assert np.mean(array - sent[name].numpy()) > 0


def test_works_on_updates_not_on_weights():
    """Norm-bound shrinks what moved far, however large the weights themselves are."""
    sent = record({name: array + 100 for name, array in model().items()})
    strategy = RobustStrategy(rule=make_rule("norm-bound", bound=0.02))
    arrays, _ = one_round(strategy, federation(4), sent)
    distance = np.sqrt(sum(np.square(arrays[n].numpy() - sent[n].numpy()).sum() for n in sent))
    assert distance == pytest.approx(0.02, rel=0.05)


def test_a_rule_of_the_users_own_is_given_updates():
    seen = []

    @dataclass(frozen=True, kw_only=True)
    class Own(Rule):
        name = "own"
        family = Family.IGNORANT

        def decide(self, cohort):
            seen.extend(norms(cohort.rows))
            return Decision(weights=np.full(len(cohort), 1 / len(cohort)))

    sent = record({name: array + 100 for name, array in model().items()})
    arrays, _ = one_round(RobustStrategy(rule=Own()), federation(4), sent)
    assert max(seen) < 1
    assert np.mean(arrays["fc.weight"].numpy() - sent["fc.weight"].numpy()) == pytest.approx(0.01, rel=0.2)


def test_a_liar_captures_fedavg_but_not_fedra():
    sent = record(model())
    captured, _ = one_round(RobustStrategy(rule="fedavg"), federation(8, node_3=liar()), sent)
    defended, metrics = one_round(RobustStrategy(rule="fedra"), federation(8, node_3=liar()), sent)
    assert np.mean(captured["fc.weight"].numpy() - sent["fc.weight"].numpy()) < -2.9
    assert np.mean(defended["fc.weight"].numpy() - sent["fc.weight"].numpy()) == pytest.approx(0.01, rel=0.2)
    assert metrics["fedra-rejected"] == metrics["fedra-num-malicious"] == 1


def test_metrics_are_weighted_as_the_rule_weighs():
    def client(quantity, loss):
        def answer(message):
            rng = np.random.default_rng(quantity)
            return reply_to(message, moved(message.content["arrays"], rng), {"loss": loss, "num-examples": quantity})

        return answer

    grid = MemoryGrid({1: client(1, 1.0), 2: client(1, 1.0), 3: client(998, 10.0)})
    _, by_quantity = one_round(RobustStrategy(rule="fedavg"), grid, record(model()))
    _, alike = one_round(RobustStrategy(rule="uniform"), grid, record(model()))
    _, middle = one_round(RobustStrategy(rule="median"), grid, record(model()))
    assert by_quantity["loss"] == pytest.approx(9.982)
    assert alike["loss"] == middle["loss"] == pytest.approx(4.0)


def test_own_metric_functions_see_kept_replies_only():
    seen = []

    def gather(contents: list[RecordDict], key: str) -> MetricRecord:
        seen.extend(next(iter(content.metric_records.values()))[key] for content in contents)
        return MetricRecord({"replies": len(contents)})

    strategy = RobustStrategy(rule="fedra", train_metrics_aggr_fn=gather)
    _, metrics = one_round(strategy, federation(8, node_3=liar()), record(model()))
    assert metrics["replies"] == 7
    assert seen == pytest.approx([20.0] * 7)


def test_evaluation_uses_the_weights_of_training():
    grid = federation(8, node_3=liar())
    train_only = dict(grid.clients)

    def accuracy(value, claim):
        def client(message):
            if message.metadata.message_type.startswith("train"):
                return train_only[message.metadata.dst_node_id](message)
            from flwr.app import Message

            content = RecordDict({"metrics": MetricRecord({"accuracy": value, "num-examples": claim})})
            return Message(content, reply_to=message)

        return client

    for node in grid.clients:
        grid.clients[node] = accuracy(0.5, 20)
    grid.clients[3] = accuracy(0.0, 1e9)
    grid.clients[4] = accuracy(1.0, 2**50)
    reports = []
    strategy = RobustStrategy(rule="fedra", on_round=reports.append)
    arrays, _ = one_round(strategy, grid, record(model()))
    messages = strategy.configure_evaluate(1, arrays, ConfigRecord(), grid)
    metrics = strategy.aggregate_evaluate(1, grid.send_and_receive(messages))
    assert metrics["accuracy"] == pytest.approx((6 * 0.5 + 1.0) / 7)
    assert [report.phase for report in reports] == ["train", "evaluate"]
    assert reports[1].rejected == 1


def test_too_few_nodes_leave_the_model_and_say_so():
    reports = []
    strategy = RobustStrategy(rule=FedRA(num_malicious=1), on_round=reports.append)
    arrays, metrics = one_round(strategy, federation(4), record(model()))
    assert arrays is None
    assert (metrics["fedra-skipped"], metrics["fedra-kept"], metrics["fedra-rejected"]) == (1, 0, 4)
    assert "n = 4 and m = 1" in reports[0].note


def test_nobody_replied():
    strategy = RobustStrategy(rule="fedra")
    grid = MemoryGrid({node: lambda message: None for node in range(1, 6)})
    arrays, metrics = one_round(strategy, grid, record(model()))
    assert arrays is None
    assert metrics["fedra-skipped"] == 1


def test_the_federations_size_comes_from_the_grid():
    strategy = RobustStrategy(rule=FedRA(malicious_ratio=0.1), fraction_train=0.4)
    grid = federation(8)
    grid.extra_nodes = 12
    grid.get_node_ids = lambda: [*grid.clients, *range(100, 112)]
    random.seed(1)
    strategy.configure_train(1, record(model()), ConfigRecord(), grid)
    assert strategy.server._known == 20
    assert strategy.server.rule.for_federation(num_clients=20).num_clients == 20
    assert strategy.server.rule.for_federation(num_clients=9).num_clients is None
    told = RobustStrategy(rule=FedRA(num_clients=500))
    assert told.server.rule.for_federation(num_clients=20).num_clients == 500


def test_fedavgs_sampling_options():
    strategy = RobustStrategy(rule="fedavg", fraction_train=0.5, min_train_nodes=2, configrecord_key="settings")
    messages = list(strategy.configure_train(3, record(model()), ConfigRecord({"lr": 0.1}), federation(10)))
    assert len(messages) == 5
    assert messages[0].content["settings"]["server-round"] == 3
    assert RobustStrategy(fraction_train=0.0).aggregate_evaluate(1, []) is None


def test_a_step_beyond_the_type_is_not_taken():
    sent = record({"w": np.full(3, 3e38, np.float32)})

    def client(message):
        return reply_to(message, {"w": np.full(3, 3.3e38, np.float32)}, {"num-examples": 1})

    reports = []
    strategy = RobustStrategy(rule="fedavg", server_optimizer=SGD(lr=10.0), on_round=reports.append)
    arrays, metrics = one_round(strategy, MemoryGrid(dict.fromkeys(range(1, 4), client)), sent)
    assert arrays is None
    assert metrics["fedra-skipped"] == 1
    assert "not finite" in reports[0].note


def test_optimizer_state_runs_through_rounds():
    strategy = RobustStrategy(rule="fedavg", server_optimizer=Adam(lr=0.01))
    grid = federation(4)
    arrays = record(model())
    for number in (1, 2, 3):
        arrays, _ = one_round(strategy, grid, arrays, number)
    assert strategy._step.state.step == 3


def test_start_runs_rounds():
    result = RobustStrategy(rule="fedra").start(federation(6, node_2=liar()), record(model()), num_rounds=3)
    assert sorted(result.train_metrics_clientapp) == [1, 2, 3]
    assert all(record["fedra-rejected"] >= 1 for record in result.train_metrics_clientapp.values())
    assert result.arrays["fc.weight"].numpy() - model()["fc.weight"] == pytest.approx(0.03, rel=0.3)


def test_callers_mistakes_are_told():
    with pytest.raises(ValueError, match="did you mean 'fedra'"):
        RobustStrategy(rule="fedar")
    with pytest.raises(TypeError, match="give a rule"):
        RobustStrategy(rule=3)
    with pytest.raises(ValueError, match="did you mean 'adam'"):
        RobustStrategy(server_optimizer="adm")
    with pytest.raises(RuntimeError, match="configure_train first"):
        RobustStrategy().aggregate_train(1, [])
    with pytest.raises(ValueError, match="complex64"):
        one_round(RobustStrategy(), federation(5), record({"w": np.zeros(2, np.complex64)}))


def test_reply_arrays_are_consumed_but_records_held_elsewhere_stay():
    """A client in the same process may reply with a record that somebody still uses, even the one it was sent."""
    sent = record(model())

    def echo(message):
        return reply_to(message, message.content["arrays"], {"num-examples": 4})

    arrays, _ = one_round(RobustStrategy(rule="uniform"), MemoryGrid(dict.fromkeys(range(1, 5), echo)), sent)
    for name in sent:
        np.testing.assert_array_equal(arrays[name].numpy(), sent[name].numpy())


def test_arrays_in_other_layouts_are_read():
    """Fortran order and the other byte order are honest ways to save an array."""
    sent = record({"w": np.arange(6, dtype=np.float32).reshape(2, 3)})
    target = np.arange(6, dtype=np.float32).reshape(2, 3) + 1

    def client(array):
        return lambda message: reply_to(message, ArrayRecord({"w": Array(array)}), {"num-examples": 1})

    grid = MemoryGrid({1: client(np.asfortranarray(target)), 2: client(target.astype(">f4")), 3: client(target)})
    arrays, metrics = one_round(RobustStrategy(rule="uniform"), grid, sent)
    assert metrics["fedra-kept"] == 3
    np.testing.assert_array_equal(arrays["w"].numpy(), target)


@pytest.mark.parametrize("optimizer", [Adam, 5, None])
def test_a_server_optimizer_is_an_instance_or_a_name(optimizer):
    with pytest.raises(TypeError, match=r"server_optimizer=.*; give an optimizer such as"):
        RobustStrategy(server_optimizer=optimizer)
