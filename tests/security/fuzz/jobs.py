"""Rounds of an NVFlare job, with honest clients and a few whose replies are mutated in any way."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from tests.nvflare.job import KEY, Job, difference, moved, reply
from tests.security.fuzz import values
from tests.security.fuzz.episodes import (
    HONEST,
    MODEL,
    MOST_BAD,
    ROUNDS,
    check_arrays,
    check_metrics,
    check_report,
    in_time,
)

RULES = ("fedra", "multi-krum", "median", "trimmed-mean", "rfa", "fedavg", "centered-clipping")
Mutation = Callable[[FLModel, random.Random], None]


class Broken:
    """An object that raises whatever is asked of it."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("\x1b[2J" * 50)


def _claim(made: FLModel, rng: random.Random) -> None:
    made.meta[KEY] = rng.choice([*values.NUMBERS, Broken()])


def _drop_claim(made: FLModel, rng: random.Random) -> None:
    made.meta.pop(KEY, None)


def _other_meta(made: FLModel, rng: random.Random) -> None:
    made.meta[rng.choice([*values.NAMES, 5, None])] = rng.choice(values.NUMBERS)


def _metric(made: FLModel, rng: random.Random) -> None:
    made.metrics[rng.choice([*values.NAMES, "accuracy", 5, None])] = rng.choice([*values.NUMBERS, Broken()])


def _metrics(made: FLModel, rng: random.Random) -> None:
    made.metrics = rng.choice([None, [], 5, "text", {}, {f"m{place}": 0.5 for place in range(20_000)}])


def _kind(made: FLModel, rng: random.Random) -> None:
    made.params_type = rng.choice([ParamsType.DIFF, ParamsType.FULL, "FULL", "DIFF", None, 5, "x" * 5000])


def _params(made: FLModel, rng: random.Random) -> None:
    made.params = rng.choice([None, {}, [], "text", 5, np.zeros(3), {"a": {"b": {}}}, Broken()])


def _array(made: FLModel, rng: random.Random) -> None:
    made.params[rng.choice([*values.NAMES, *MODEL, 5])] = values.array(rng)


def _no_array(made: FLModel, rng: random.Random) -> None:
    made.params[rng.choice(list(MODEL))] = rng.choice([*values.NUMBERS, Broken(), {"fc": {}}, np.float32(1)])


def _drop_array(made: FLModel, rng: random.Random) -> None:
    made.params.pop(rng.choice(list(MODEL)), None)


def _respelled(made: FLModel, rng: random.Random) -> None:
    name = rng.choice([name for name, value in made.params.items() if isinstance(value, np.ndarray)])
    made.params[name] = values.respelled(made.params[name], rng)


def _tensor(made: FLModel, rng: random.Random) -> None:
    name = rng.choice(list(MODEL))
    tensor = torch.from_numpy(np.array(made.params[name]))
    changes: list[Callable[[], Any]] = [
        lambda: tensor,
        lambda: tensor.bfloat16(),
        lambda: tensor.to_sparse(),
        lambda: tensor.to("meta"),
        lambda: tensor.to(torch.complex64),
        lambda: tensor.float() * float("nan"),
    ]
    made.params[name] = rng.choice(changes)()


def _many(made: FLModel, rng: random.Random) -> None:
    made.params.update({f"key-{place}": 0 for place in range(20_000)})


def _far(made: FLModel, rng: random.Random) -> None:
    by = rng.choice([1e3, 1e30, 3e38])
    with np.errstate(all="ignore"):
        made.params["fc"] = (made.params["fc"] + np.float32(by)).astype(np.float32)


MUTATIONS: list[Mutation] = [
    *(_claim, _drop_claim, _other_meta, _metric, _metrics, _kind, _params, _array, _no_array, _drop_array, _respelled),
    *(_tensor, _many, _far),
]


def spoilt(made: FLModel, rng: random.Random) -> FLModel:
    """Spoil a good reply in one to three ways."""
    for mutation in rng.sample(MUTATIONS, rng.randint(1, 3)):
        try:
            mutation(made, rng)
        except Exception:  # an earlier mutation has taken away what this one would change
            continue
    return made


def job_episode(rng: random.Random) -> int:
    """Play some rounds; return how many replies were mutated."""
    names = [str(number) for number in range(HONEST)]
    job = Job(
        dict(MODEL),
        rule=rng.choice(RULES),
        server_optimizer=rng.choice(["sgd", "adam"]),
        clients=[*names, *(f"bad-{number}" for number in range(MOST_BAD))],
    )
    count = 0
    for _ in range(ROUNDS):
        bad = rng.randint(2, MOST_BAD)
        replies: list[tuple[str, FLModel]] = []
        for name in [*names, *(f"bad-{number}" for number in range(bad))]:
            good = moved(job.params, rng.randrange(10**6))
            kind = rng.choice([ParamsType.FULL, ParamsType.DIFF])
            good = good if kind == ParamsType.FULL else difference(job.params, good)
            made = reply(good, claim=rng.randint(15, 30), kind=kind, metrics={"accuracy": 0.5, "by": "me"})
            replies.append((name, made if name in names else spoilt(made, rng)))
        rng.shuffle(replies)
        job.begin()
        with in_time():
            for name, made in replies:
                job.send(name, made)
            result = job.finish()
        check_report(job.record)
        assert not job.panics, job.panics
        assert result.params_type == ParamsType.FULL, "the round has no result"
        assert list(result.params) == list(MODEL), "the model's arrays are others"
        assert all(array.dtype == MODEL[name].dtype for name, array in result.params.items()), "types are others"
        check_arrays(result.params)
        check_metrics(result.metrics)
        assert result.meta == {}
        count += bad
    return count
