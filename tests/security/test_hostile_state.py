"""State files that fedra did not write: refused with their path, and never more than they seem."""

from __future__ import annotations

import json
import pickle
import tracemalloc

import numpy as np
import pytest
from flwr.serverapp.strategy import FedAdam
from tests.flower.federation import federation, record

from fedra.flower import Guard, RobustStrategy

MODEL = {"w": np.ones(4, np.float32), "n": np.asarray(3, np.int64)}
ABOUT = {"version": 1, "round": 1, "arrays": ["w", "n"], "memory": [], "numbers": {}}
GUARD = {**ABOUT, "writer": "Guard of FedAdam"}


def write(path, about, arrays=MODEL, memory=(), save=np.savez) -> None:
    raw = about if isinstance(about, bytes) else json.dumps(about).encode()
    contents = {"about": np.frombuffer(raw, np.uint8)}
    contents |= {f"array-{place}": array for place, array in enumerate(arrays.values())}
    contents |= {f"memory-{place}": array for place, array in enumerate(memory)}
    save(path, **contents)


def start(strategy):
    return strategy.start(federation(7), record(MODEL), num_rounds=2)


def test_a_good_file_is_resumed_from(tmp_path):
    """The files below are refused for what is wrong in them alone."""
    write(tmp_path / "state.npz", GUARD)
    result = start(Guard(FedAdam(), state=tmp_path / "state.npz"))
    assert list(result.train_metrics_clientapp) == [2]


def moved(attribute, value) -> dict:
    return {**GUARD, "numbers": {"moved": {attribute: value}}}


BAD_ABOUT = {
    "round below 0": {**GUARD, "round": -5},
    "round of text": {**GUARD, "round": "1"},
    "round of truth": {**GUARD, "round": True},
    "endless round": {**GUARD, "round": float("inf")},
    "values in a list": {**GUARD, "numbers": [1]},
    "no values": {**GUARD, "numbers": None},
    "moved in a list": {**GUARD, "numbers": {"moved": [1]}},
    "accountants in a list": {**GUARD, "numbers": {"accountants": ["x"]}},
    "a method": moved("0\x1faggregate_train", "x"),
    "a class": moved("0\x1f__class__", 1),
    "a strategy too deep": moved("9\x1feta", 0.5),
    "a name without depth": moved("eta", 0.5),
    "text for a number": moved("0\x1feta", "x"),
    "a mapping for a number": moved("0\x1feta", {"a": 1}),
    "control characters": {**GUARD, "writer": "\x1b[2J\nFAKE"},
    "surrogates": {**GUARD, "writer": "\ud800"},
    "twice the same array": {**GUARD, "arrays": ["w", "w"]},
    "another version": {**GUARD, "version": "\x1b[2J"},
    "deep": b"[" * 100_000,
    "a number too long": b'{"version": ' + b"9" * 10_000 + b"}",
    "a list": b"[]",
    "no text": b"\xff\xfe",
}


@pytest.mark.parametrize("about", BAD_ABOUT.values(), ids=BAD_ABOUT)
def test_what_the_file_says_is_not_believed(tmp_path, about):
    write(tmp_path / "state.npz", about)
    strategy = Guard(FedAdam(), state=tmp_path / "state.npz")
    with pytest.raises(ValueError, match=r"state\.npz") as caught:
        start(strategy)
    assert str(caught.value).isprintable()


BAD_MODELS = {
    "nan": {**MODEL, "w": np.full(4, np.nan, np.float32)},
    "nan in a counter": {**MODEL, "n": np.asarray(np.nan)},
    "text": {**MODEL, "w": np.full(4, "x")},
    "complex": {**MODEL, "w": np.ones(4, np.complex64)},
    "integers for floats": {**MODEL, "w": np.ones(4, np.int64)},
    "other integers": {**MODEL, "n": np.asarray(3, np.int8)},
    "other shape": {**MODEL, "w": np.ones((2, 2), np.float32)},
}


@pytest.mark.parametrize("arrays", BAD_MODELS.values(), ids=BAD_MODELS)
def test_another_model_is_not_resumed_from(tmp_path, arrays):
    write(tmp_path / "state.npz", GUARD, arrays)
    with pytest.raises(ValueError, match=r"state\.npz"):
        start(Guard(FedAdam(), state=tmp_path / "state.npz"))


BAD_MEMORY = {"a method": "0\x1faggregate_train", "too deep": "7\x1fm_t", "no depth": "m_t", "not a depth": "x\x1fm_t"}


@pytest.mark.parametrize("name", BAD_MEMORY.values(), ids=BAD_MEMORY)
def test_memory_under_other_names_is_refused(tmp_path, name):
    write(tmp_path / "state.npz", {**GUARD, "memory": [name]}, memory=[np.ones(4)])
    with pytest.raises(ValueError, match=r"state\.npz"):
        start(Guard(FedAdam(), state=tmp_path / "state.npz"))


BAD_MOMENTS = {
    "short": (3, {"first": np.ones(3), "second": np.ones(4)}),
    "missing": (3, {"first": np.ones(4)}),
    "nan": (3, {"first": np.ones(4), "second": np.full(4, np.nan)}),
    "text": (3, {"first": np.ones(4), "second": np.full(4, "x")}),
    "step below 0": (-3, {"first": np.ones(4), "second": np.ones(4)}),
    "step of text": ("x", {"first": np.ones(4), "second": np.ones(4)}),
}


@pytest.mark.parametrize("case", BAD_MOMENTS.values(), ids=BAD_MOMENTS)
def test_moments_of_another_model_are_refused(tmp_path, case):
    step, moments = case
    strategy = RobustStrategy(server_optimizer="adam", state=tmp_path / "state.npz")
    about = {**ABOUT, "writer": strategy.server.writer, "memory": list(moments), "numbers": {"step": step}}
    write(tmp_path / "state.npz", about, memory=moments.values())
    with pytest.raises(ValueError, match=r"state\.npz"):
        start(strategy)


class Touches:
    """What a pickle of it does when it is read."""

    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return type(self.path).touch, (self.path,)


def test_nothing_in_the_file_is_run(tmp_path):
    path, mark = tmp_path / "state.npz", tmp_path / "mark"
    for content in (pickle.dumps(Touches(mark)), b"", b"PK\x05\x06" + bytes(18)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a state that fedra saved"):
            start(Guard(FedAdam(), state=path))
    held = np.empty(4, object)
    held[:] = [Touches(mark)] * 4
    write(path, GUARD, {**MODEL, "w": held})
    with pytest.raises(ValueError, match="not a state that fedra saved"):
        start(Guard(FedAdam(), state=path))
    assert not mark.exists()


def test_a_small_file_does_not_become_a_large_one(tmp_path):
    path = tmp_path / "state.npz"
    write(path, GUARD, {**MODEL, "w": np.zeros(5 * 10**7, np.uint8)}, save=np.savez_compressed)
    assert path.stat().st_size < 10**6
    tracemalloc.start()
    with pytest.raises(ValueError, match="not a state that fedra saved"):
        start(Guard(FedAdam(), state=path))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10**7
