"""The same replies on both platforms: one server core, so the same bits, verdicts and records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.flower.conftest import _task_identity  # noqa: F401
from tests.flower.federation import MemoryGrid, arrays_of, one_round, record, reply_to
from tests.nvflare.job import Job, model, moved, reply

from fedra import RULES
from fedra.flower import RobustStrategy
from fedra.optimizers import Adam

ROUNDS = 3
CLIENTS = 9


def start() -> dict[str, np.ndarray]:
    return model() | {"half": np.ones(3, np.float16), "steps": np.asarray(7), "double": np.linspace(0, 1, 4)}


def sent_by(place: int, number: int, params: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], Any]:
    """What a client makes of the model, and what it claims; the last three are not honest."""
    made, claim = moved(params, 100 * number + place), 10 + place
    if place == CLIENTS:
        return {name: np.asarray(array + 50, array.dtype) for name, array in made.items()}, 10**9
    if place == CLIENTS - 1:
        return made | {"fc.weight": np.full((4, 5), np.nan, np.float32)}, claim
    if place == CLIENTS - 2:
        return made, -5
    return made, claim


@pytest.mark.parametrize("optimizer", ["sgd", Adam(lr=0.01)])
@pytest.mark.parametrize("rule", RULES)
def test_the_same_bits_and_the_same_verdicts(rule: str, optimizer: Any) -> None:
    records: list[Any] = []
    strategy = RobustStrategy(rule=rule, server_optimizer=optimizer, threads=1, on_round=records.append)

    def client(message: Any) -> Any:
        place, number = message.metadata.dst_node_id, message.content["config"]["server-round"]
        arrays, claim = sent_by(place, number, arrays_of(message.content["arrays"]))
        return reply_to(message, arrays, {"num-examples": claim, "accuracy": 0.5 + place / 100})

    grid = MemoryGrid(dict.fromkeys(range(1, CLIENTS + 1), client))
    theirs = record(start())
    job = Job(start(), rule=rule, server_optimizer=optimizer, clients=[f"site-{i}" for i in range(1, CLIENTS + 1)])
    for number in range(1, ROUNDS + 1):
        result, metrics = one_round(strategy, grid, theirs, number)
        replies = {}
        for place in range(1, CLIENTS + 1):
            arrays, claim = sent_by(place, number, job.params)
            replies[f"site-{place}"] = reply(arrays, claim=claim, metrics={"accuracy": 0.5 + place / 100})
        ours = job.round(replies)
        assert (result is None) is (not ours.params), f"{records[-1].note} / {job.record.note}"
        theirs = theirs if result is None else result
        assert list(job.params) == list(theirs)
        for name, array in arrays_of(theirs).items():
            assert job.params[name].dtype == array.dtype
            np.testing.assert_array_equal(job.params[name], array, err_msg=name)
        if result is not None:
            assert ours.metrics["accuracy"] == pytest.approx(metrics["accuracy"], rel=1e-12)
        assert len(records[-1].clients) == len(job.record.clients) == CLIENTS
        for flower, nvflare in zip(records[-1].clients, job.record.clients, strict=True):
            assert nvflare["client"] == f"site-{flower['client']}"
            for field in ("kept", "usable", "weight", "score", "cut", "claimed_quantity", "implied_quantity"):
                assert nvflare[field] == flower[field], field
            same = nvflare["reason"].replace("NUM_STEPS_CURRENT_ROUND", "num-examples") == flower["reason"]
            assert same, (nvflare["reason"], flower["reason"])
        assert job.record.note == records[-1].note
        assert len(job.record.warnings) == len(records[-1].warnings)
