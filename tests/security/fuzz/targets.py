"""What is fuzzed: rounds of honest clients and a few that mutate their replies, and what must hold after each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.common import EvaluateRes, FitRes, Parameters, ndarrays_to_parameters
from flwr.server import strategy as older
from flwr.serverapp.strategy import FedAdam, FedAvg
from tests.flower.federation import MemoryGrid
from tests.security.fuzz.mutations import spoilt_evaluation, spoilt_fit, spoilt_message
from tests.security.older import OK, older_evaluation, older_round

from fedra.flower import Guard, RobustStrategy, legacy
from fedra.flower.inner import inner_memory

HONEST = 9
MOST_BAD = 4
ROUNDS = 6
MODEL = {
    "fc": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
    "half": np.ones(2, np.float16),
    "steps": np.asarray(7, dtype=np.int64),
    "table": np.arange(2, dtype=np.int8),
}


def _trained(seed: int) -> dict[str, np.ndarray]:
    """What an honest client makes of the model: floats a little further, counters counted."""
    rng = np.random.default_rng(seed)
    made = {}
    for name, array in MODEL.items():
        change = 0.01 + 0.001 * rng.standard_normal(array.shape) if array.dtype.kind == "f" else 1
        made[name] = np.asarray(array + change, dtype=array.dtype)
    return made


# Clients answer with the types they hold, whatever the server has made of them. None of these is ever changed.
POOL = [ArrayRecord({name: Array(array) for name, array in _trained(seed).items()}) for seed in range(40)]
METRICS = {"loss": 0.5, "each": [0.5, 0.25]}


def message_episode(make: Callable[..., Any], rng: random.Random) -> int:
    """Play some rounds, every third with an evaluation; return how many training replies were mutated."""
    reports: list[Any] = []
    strategy = make(on_round=reports.append, threads=1)
    arrays = ArrayRecord({name: Array(array) for name, array in MODEL.items()})
    count = 0

    def client(message: Message) -> list[Message]:
        training = message.metadata.message_type.startswith("train")
        metrics = {**METRICS, "num-examples": 20}
        if message.metadata.dst_node_id > HONEST:
            return spoilt_message(message, rng.choice(POOL) if training else None, metrics, rng)
        records: dict[str, Any] = {"arrays": rng.choice(POOL)} if training else {}
        return [Message(RecordDict({**records, "metrics": MetricRecord(metrics)}), reply_to=message)]

    for number in range(1, ROUNDS + 1):
        bad = rng.randint(2, MOST_BAD)
        grid = MemoryGrid(dict.fromkeys(range(1, HONEST + bad + 1), client))
        messages = strategy.configure_train(number, arrays, ConfigRecord(), grid)
        result, metrics = strategy.aggregate_train(number, shuffled(grid.send_and_receive(messages), rng))
        check_report(reports.pop())
        assert result is not None, "the round has no result"
        assert list(result) == list(MODEL), "the model's arrays are others"
        check_arrays([array.numpy() for array in result.values()])
        check_metrics(metrics)
        if isinstance(strategy, Guard):
            assert all(finite(array) for array in inner_memory(strategy.inner).values()), "memory is not finite"
        arrays = result
        count += bad
        if number % 3 == 0:
            messages = strategy.configure_evaluate(number, arrays, ConfigRecord(), grid)
            metrics = strategy.aggregate_evaluate(number, shuffled(grid.send_and_receive(messages), rng))
            assert not reports.pop().skipped, "the evaluation was skipped"
            check_metrics(metrics)
    return count


def older_episode(make: Callable[..., Any], rng: random.Random) -> int:
    """The same for the older API."""
    reports: list[Any] = []
    strategy = make(on_round=reports.append, threads=1)
    arrays = list(MODEL.values())
    count = 0
    for number in range(1, ROUNDS + 1):
        bad = rng.randint(2, MOST_BAD)
        answers = []
        for _ in range(HONEST + bad):
            tensors = [array.data for array in rng.choice(POOL).values()]
            answers.append(FitRes(OK, Parameters(tensors, "numpy.ndarray"), 20, {"loss": 0.5, "by": "me"}))
        answers[HONEST:] = [spoilt_fit(answer, rng) for answer in answers[HONEST:]]
        result, metrics = older_round(strategy, answers, arrays, number)
        check_report(reports.pop())
        assert result is not None, "the round has no result"
        check_arrays(result)
        check_metrics(metrics)
        arrays = result
        count += bad
        if number % 3 == 0:
            evaluations = [EvaluateRes(OK, 0.5, 20, {"loss": 0.5}) for _ in range(HONEST + bad)]
            evaluations[HONEST:] = [spoilt_evaluation(answer, rng) for answer in evaluations[HONEST:]]
            loss, metrics = older_evaluation(strategy, evaluations, number)
            assert not reports.pop().skipped, "the evaluation was skipped"
            check_metrics({"loss": loss, **metrics})
    return count


def shuffled(replies: Iterable[Message], rng: random.Random) -> list[Message]:
    mixed = list(replies)
    rng.shuffle(mixed)
    return mixed


def check_report(report: Any) -> None:
    assert not report.skipped, f"the round was skipped: {report.note}"
    # The older API's clients are named from 0, the Message API's nodes from 1.
    first = 1 if any(isinstance(entry["client"], int) for entry in report.clients) else 0
    honest = {str(number) for number in range(first, first + HONEST)}
    entries = [entry for entry in report.clients if str(entry["client"]) in honest]
    usable = {str(entry["client"]) for entry in entries if entry["usable"]}
    assert usable == honest, f"honest replies were screened out: {[entry['reason'] for entry in entries]}"
    kept = sum(bool(entry["kept"]) for entry in entries)
    assert report.rule in ("krum", "median") or kept >= HONEST // 2, f"only {kept} honest replies were kept"
    assert all(str(entry["reason"]).isprintable() and len(entry["reason"]) < 400 for entry in report.clients)
    assert report.lines()


def check_arrays(arrays: Sequence[np.ndarray]) -> None:
    for array, (name, first) in zip(arrays, MODEL.items(), strict=True):
        assert finite(array), f"{name} is not finite"
        assert array.shape == first.shape, f"{name} has shape {array.shape}"
        if first.dtype.kind != "f":
            assert array.dtype == first.dtype, f"{name} has type {array.dtype}"
            assert np.array_equal(array, first), f"{name} was changed"


def check_metrics(metrics: Any) -> None:
    assert metrics is not None, "there are no metrics"
    for key, value in metrics.items():
        assert np.isfinite(value).all(), f"metric {key!r} is {value}"


def finite(array: np.ndarray) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def average(metrics: list[tuple[int, dict[str, Any]]]) -> dict[str, Any]:
    """A user's function for metrics, as in Flower's documentation."""
    total = sum(count for count, _ in metrics)
    numbers = [key for key, value in metrics[0][1].items() if not isinstance(value, str)]
    return {key: sum(count * each[key] for count, each in metrics) / total for key in numbers}


OLDER_METRICS = {"fit_metrics_aggregation_fn": average, "evaluate_metrics_aggregation_fn": average}
ROBUST_RULES = ("fedra", "multi-krum", "median", "fedavg")


def _robust(rng: random.Random) -> int:
    rule = rng.choice(ROBUST_RULES)
    optimizer = rng.choice(["sgd", "adam"])
    return message_episode(lambda **options: RobustStrategy(rule=rule, server_optimizer=optimizer, **options), rng)


def _guard(inner: Callable[[], Any]) -> Callable[[random.Random], int]:
    def play(rng: random.Random) -> int:
        rule = rng.choice(["fedra", "multi-krum"])
        return message_episode(lambda **options: Guard(inner(), rule=rule, **options), rng)

    return play


def _older_robust(rng: random.Random) -> int:
    rule = rng.choice(ROBUST_RULES)
    return older_episode(lambda **options: legacy.RobustStrategy(rule=rule, **OLDER_METRICS, **options), rng)


def _older_guard(rng: random.Random) -> int:
    rule, adam = rng.choice(["fedra", "multi-krum"]), rng.random() < 0.5
    first = ndarrays_to_parameters(list(MODEL.values()))

    def make(**options: Any) -> legacy.Guard:
        inner = older.FedAdam(initial_parameters=first, **OLDER_METRICS) if adam else older.FedAvg(**OLDER_METRICS)
        return legacy.Guard(inner, rule=rule, **options)

    return older_episode(make, rng)


# name -> plays an episode with a generator, and returns how many mutated replies it held
TARGETS: dict[str, Callable[[random.Random], int]] = {
    "robust": _robust,
    "guard-fedavg": _guard(FedAvg),
    "guard-fedadam": _guard(FedAdam),
    "legacy-robust": _older_robust,
    "legacy-guard": _older_guard,
}
