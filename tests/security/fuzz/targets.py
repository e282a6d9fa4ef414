"""What is fuzzed: strategies of both APIs of Flower, with several rules and inner strategies, and NVFlare's jobs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from flwr.common import ndarrays_to_parameters
from flwr.server import strategy as older
from flwr.serverapp import strategy as current
from tests.security.fuzz.episodes import MODEL, flooded_episode, message_episode, older_episode

from fedra import RULES
from fedra.flower import Guard, RobustStrategy, legacy


def average(metrics: list[tuple[int, dict[str, Any]]]) -> dict[str, Any]:
    """A user's function for metrics, as in Flower's documentation."""
    total = sum(count for count, _ in metrics)
    numbers = [key for key, value in metrics[0][1].items() if not isinstance(value, str)]
    return {key: sum(count * each[key] for count, each in metrics) / total for key in numbers}


OLDER_METRICS = {"fit_metrics_aggregation_fn": average, "evaluate_metrics_aggregation_fn": average}
ROBUST_RULES = ("fedra", "multi-krum", "median", "trimmed-mean", "rfa", "fedavg")
SELECTING = [name for name, rule in RULES.items() if rule.scored]
OTHERS: tuple[Callable[[], Any], ...] = (
    current.FedAdagrad,
    current.FedYogi,
    lambda: current.FedAvgM(server_momentum=0.9),
    lambda: current.FedProx(proximal_mu=0.1),
    current.FedMedian,
    current.FedTrimmedAvg,
    lambda: current.QFedAvg(client_learning_rate=0.1, train_loss_key="loss"),
)
# q-FedAvg cannot do with integers.
FLOATS = [name for name, array in MODEL.items() if array.dtype.kind == "f"]


def _robust(rng: random.Random) -> int:
    rule = rng.choice(ROBUST_RULES)
    optimizer = rng.choice(["sgd", "adam"])
    return message_episode(lambda **options: RobustStrategy(rule=rule, server_optimizer=optimizer, **options), rng)


def _guard(inner: Callable[[], Any]) -> Callable[[random.Random], int]:
    def play(rng: random.Random) -> int:
        rule = rng.choice(["fedra", "multi-krum"])
        return message_episode(lambda **options: Guard(inner(), rule=rule, **options), rng)

    return play


def _others(rng: random.Random) -> int:
    rule, inner = rng.choice(["fedra", "multi-krum"]), rng.choice(OTHERS)
    return message_episode(lambda **options: Guard(inner(), rule=rule, **options), rng, FLOATS)


def _flood(rng: random.Random) -> int:
    if rng.random() < 0.5:
        rule = rng.choice(sorted(RULES))
        return flooded_episode(lambda **options: RobustStrategy(rule=rule, server_optimizer="adam", **options), rng)
    rule, inner = rng.choice(SELECTING), rng.choice([current.FedAvg, current.FedAdam, *OTHERS])
    return flooded_episode(lambda **options: Guard(inner(), rule=rule, **options), rng)


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


def _nvflare(rng: random.Random) -> int:
    from tests.security.fuzz.jobs import job_episode

    return job_episode(rng)


# name -> plays an episode with a generator, and returns how many mutated replies it held
TARGETS: dict[str, Callable[[random.Random], int]] = {
    "robust": _robust,
    "guard-fedavg": _guard(current.FedAvg),
    "guard-fedadam": _guard(current.FedAdam),
    "guard-others": _others,
    "nobody-honest": _flood,
    "legacy-robust": _older_robust,
    "legacy-guard": _older_guard,
    "nvflare": _nvflare,
}
