"""Replies on disk make no difference to what becomes of them."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable
from pathlib import Path

import pytest
from flwr.app import ConfigRecord, Message
from tests.flower.federation import MemoryGrid, arrays_of, federation, honest, model, record

from fedra.flower import RobustStrategy
from fedra.flower.spilling import SpillingGrid
from fedra.server.spill import Spill

SHAPES = {"a": (3, 2), "b": (), "c": (20_000,)}


class PolledGrid(MemoryGrid):
    """A grid that is polled for replies, as Flower's own are."""

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        self.waiting = {}
        for number, message in enumerate(messages):
            reply = self.clients[message.metadata.dst_node_id](message)
            assert isinstance(reply, Message)
            self.waiting[str(number)] = reply
        return list(self.waiting)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self.waiting.pop(number) for number in message_ids if number in self.waiting]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        return list(self.pull_messages(set(self.push_messages(messages))))


def grid_of(count: int) -> PolledGrid:
    return PolledGrid(federation(count).clients)


def spill(folder: Path) -> Spill:
    made = Spill(folder, logging.getLogger("tests.spill"))
    made.check()
    return made


@pytest.mark.parametrize("rule", ["fedra", "norm-bound", "median"])
@pytest.mark.parametrize("grid", [grid_of, federation])
def test_the_model_is_the_same_to_the_bit(rule: str, grid, tmp_path: Path) -> None:
    found = []
    for folder in (None, tmp_path / "spill"):
        random.seed(0)  # Flower draws the order of nodes
        strategy = RobustStrategy(rule=rule, spill=folder, audit=tmp_path / f"{folder is None}.jsonl")
        result = strategy.start(grid(9), record(model(shapes=SHAPES)), num_rounds=2)
        found.append({name: array.tobytes() for name, array in arrays_of(result.arrays).items()})
    assert found[0] == found[1]
    assert list((tmp_path / "spill").iterdir()) == []


def test_each_reply_is_on_disk_before_the_next_is_fetched(tmp_path: Path) -> None:
    pulled: list[list[str]] = []

    class Watched(PolledGrid):
        def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
            pulled.append(list(message_ids))
            return super().pull_messages(pulled[-1])

    grid = SpillingGrid(Watched(federation(5).clients), spill(tmp_path))
    strategy = RobustStrategy(rule="fedavg")
    messages = strategy.configure_train(1, record(model(shapes=SHAPES)), ConfigRecord(), grid)
    replies = list(grid.send_and_receive(messages))
    assert len(replies) == 5
    assert all(len(ids) == 1 for ids in pulled)
    for reply in replies:
        assert all(isinstance(array.data, memoryview) for array in reply.content["arrays"].values())
    arrays, _ = strategy.aggregate_train(1, replies)
    assert arrays is not None


def test_the_other_grid_is_there_in_full(tmp_path: Path) -> None:
    grid = SpillingGrid(federation(3), spill(tmp_path))
    assert list(grid.get_node_ids()) == [1, 2, 3]
    assert grid.extra_nodes == 0


@pytest.mark.parametrize("data", [None, 5, "text", b"", b"x", bytearray(b"\x93NUMPY"), memoryview(b"\x93NUMPY")])
def test_bad_replies_are_rejected_as_before(data: object, tmp_path: Path) -> None:
    def bad(message: Message) -> Message:
        reply = honest(3)(message)
        assert isinstance(reply, Message)
        if "arrays" in reply.content:
            reply.content["arrays"]["c"].data = data
        return reply

    grid = PolledGrid(federation(8).clients | {3: bad})
    records = []
    strategy = RobustStrategy(rule="fedra", spill=tmp_path, on_round=records.append)
    strategy.start(grid, record(model(shapes=SHAPES)), num_rounds=1)
    (train,) = [each for each in records if each.phase == "train"]
    (client,) = [each for each in train.clients if each["client"] == 3]
    assert not client["usable"]
    assert train.kept >= 6


def test_an_error_for_a_reply_passes(tmp_path: Path) -> None:
    from flwr.app import Error

    def failing(message: Message) -> Message:
        return Message(Error(code=1, reason="out of memory"), reply_to=message)

    grid = PolledGrid(federation(8).clients | {3: failing})
    strategy = RobustStrategy(rule="fedra", spill=tmp_path)
    result = strategy.start(grid, record(model(shapes=SHAPES)), num_rounds=1)
    assert result.train_metrics_clientapp[1]["fedra-rejected"] >= 1


def test_the_older_api_takes_it_too(tmp_path: Path) -> None:
    from fedra.flower.legacy import RobustStrategy as Older

    strategy = Older(rule="fedra", spill=tmp_path)
    assert strategy.server.spill is not None
