"""Rounds of honest clients and a few that mutate their replies, or of the latter alone, and what must hold."""

from __future__ import annotations

import contextlib
import gc
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.common import EvaluateRes, FitRes, Parameters
from tests.flower.federation import MemoryGrid
from tests.security.fuzz.mutations import spoilt_evaluation, spoilt_fit, spoilt_message
from tests.security.older import OK, Proxy, older_evaluation, older_round

from fedra.audit.log import record_lines
from fedra.flower import Guard
from fedra.flower.inner import inner_memory

HONEST = 9
MOST_BAD = 4
ROUNDS = 6
MOST_SECONDS = 20.0
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
# Flower's q-FedAvg collects garbage once for each reply: not all that was imported, again and again.
gc.freeze()


def message_episode(make: Callable[..., Any], rng: random.Random, only: Sequence[str] = tuple(MODEL)) -> int:
    """Play some rounds, every third with an evaluation; return how many training replies were mutated.

    `only` are the arrays that the model has.
    """
    reports: list[Any] = []
    strategy = make(on_round=reports.append, threads=1)
    arrays = ArrayRecord({name: Array(MODEL[name]) for name in only})
    count = 0

    def client(message: Message) -> list[Message]:
        training = message.metadata.message_type.startswith("train")
        metrics = {**METRICS, "num-examples": rng.randint(15, 30)}
        good = ArrayRecord({name: array for name, array in rng.choice(POOL).items() if name in only})
        if message.metadata.dst_node_id > HONEST:
            return spoilt_message(message, good if training else None, metrics, rng)
        records: dict[str, Any] = {"arrays": good} if training else {}
        return [Message(RecordDict({**records, "metrics": MetricRecord(metrics)}), reply_to=message)]

    for number in range(1, ROUNDS + 1):
        bad = rng.randint(2, MOST_BAD)
        grid = MemoryGrid(dict.fromkeys(range(1, HONEST + bad + 1), client))
        messages = strategy.configure_train(number, arrays, ConfigRecord(), grid)
        replies = shuffled(grid.send_and_receive(messages), rng)
        with in_time():
            result, metrics = strategy.aggregate_train(number, replies)
        check_report(reports.pop())
        assert result is not None, "the round has no result"
        assert list(result) == list(only), "the model's arrays are others"
        check_arrays({name: array.numpy() for name, array in result.items()})
        check_metrics(metrics)
        if isinstance(strategy, Guard):
            assert all(finite(array) for array in inner_memory(strategy.inner).values()), "memory is not finite"
        arrays = result
        count += bad
        if number % 3 == 0:
            messages = strategy.configure_evaluate(number, arrays, ConfigRecord(), grid)
            replies = shuffled(grid.send_and_receive(messages), rng)
            with in_time():
                metrics = strategy.aggregate_evaluate(number, replies)
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
        with in_time():
            result, metrics = older_round(strategy, answers, arrays, number, failures=failures(rng))
        check_report(reports.pop())
        assert result is not None, "the round has no result"
        check_arrays(dict(zip(MODEL, result, strict=True)))
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


def flooded_episode(make: Callable[..., Any], rng: random.Random) -> int:
    """Rounds in which nobody is honest: they may be skipped, and what is left may be anybody's, but finite it is."""
    reports: list[Any] = []
    strategy = make(on_round=reports.append, threads=1)
    arrays = ArrayRecord({name: Array(array) for name, array in MODEL.items()})
    count = 0

    def client(message: Message) -> list[Message]:
        training = message.metadata.message_type.startswith("train")
        return spoilt_message(message, rng.choice(POOL) if training else None, {**METRICS, "num-examples": 20}, rng)

    for number in range(1, ROUNDS + 1):
        bad = rng.choice([1, 2, 3, 6, 10])
        grid = MemoryGrid(dict.fromkeys(range(1, max(2, bad) + 1), client))
        messages = strategy.configure_train(number, arrays, ConfigRecord(), grid)
        replies = shuffled(grid.send_and_receive(messages), rng)
        with in_time():
            result, metrics = strategy.aggregate_train(number, replies)
        report = reports.pop()
        assert record_lines(report)
        assert report.skipped == (result is None), "a round without a result must say so"
        check_metrics(metrics)
        if result is not None:
            check_arrays({name: array.numpy() for name, array in result.items()})
            arrays = result
        messages = strategy.configure_evaluate(number, arrays, ConfigRecord(), grid)
        metrics = strategy.aggregate_evaluate(number, shuffled(grid.send_and_receive(messages), rng))
        assert record_lines(reports.pop())
        check_metrics(metrics or {})
        count += len(replies)
    return max(1, count)


def failures(rng: random.Random) -> list[Any]:
    """What Flower's older API calls failures: errors, or clients with the answers that it did not like."""
    odd = [ValueError("\n\x1b[2J"), TimeoutError(), Exception("x" * 5000), Unspeakable()]
    odd += [(Proxy(name), FitRes(OK, Parameters([], ""), 0, {})) for name in ("0", "\r\n", "\ud800", "x" * 5000)]
    return rng.sample(odd, rng.choice([0, 0, 1, 3]))


class Unspeakable(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no")


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
    assert record_lines(report)


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """An honest round takes milliseconds, and no reply may make it take seconds."""
    begin = time.process_time()
    yield
    taken = time.process_time() - begin
    assert taken < MOST_SECONDS, f"it took {taken:.1f} s"


def check_arrays(arrays: Mapping[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        first = MODEL[name]
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
