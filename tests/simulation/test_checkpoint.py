"""What a checkpoint holds comes back bit for bit, or the file is refused in a sentence that names it."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from tests.simulation.own import Seniority

from fedra import FedAvg
from fedra.data import Dataset, load_dataset
from fedra.rules import Rule
from fedra.rules.clipping import CenteredClipping
from fedra.simulation import ServerState, Simulation, SimulationConfig, checkpoint
from fedra.simulation.checkpoint import check_rule_state, read_checkpoint, write_checkpoint

ROUNDS = 9


@cache
def digits() -> Dataset:
    return load_dataset("digits")


@cache
def run_of(rule: str) -> tuple[Rule, ServerState, ServerState]:
    """A rule, and a run's state before the first round and after three."""
    simulation = Simulation(SimulationConfig(rounds=ROUNDS, rule=rule, num_sampled=10), digits())
    initial = state = simulation.initial_state()
    for _ in range(3):
        state, _ = simulation.step(state)
    return simulation.rule, initial, state


RULES = ("fedavg", "centered-clipping", "tests.simulation.own:Seniority")


def stored(path: Path, rule: str) -> Path:
    write_checkpoint(path / "checkpoint.safetensors", run_of(rule)[2], 2.5)
    return path / "checkpoint.safetensors"


def read(file: Path, rule: str) -> tuple[ServerState, float] | None:
    made, initial, _ = run_of(rule)
    return read_checkpoint(file, initial, ROUNDS, made)


def rewritten(file: Path, arrays: dict[str, Any], *, digest: bool, **other: str) -> None:
    """Write other content under the metadata of a checkpoint, with the checksum of that content or with none."""
    with safe_open(file, framework="np") as before:
        metadata = {key: text for key, text in before.metadata().items() if key != "sha256"} | other
    if digest:
        metadata["sha256"] = checkpoint._digest(arrays, metadata)
    save_file(arrays, file, metadata=metadata)


@pytest.mark.parametrize("rule", RULES)
def test_a_state_comes_back_bit_for_bit(tmp_path: Path, rule: str) -> None:
    loaded = read(stored(tmp_path, rule), rule)
    assert loaded is not None
    found, expected = loaded[0], run_of(rule)[2]
    assert (found.round, found.optimizer.step, loaded[1]) == (3, 3, 2.5)
    assert found.weights.tobytes() == expected.weights.tobytes()
    assert {name: m.tobytes() for name, m in found.optimizer.moments.items()} == {
        name: m.tobytes() for name, m in expected.optimizer.moments.items()
    }
    if expected.rule is None:
        assert found.rule is None
        return
    assert found.rule is not None
    assert list(found.rule) == list(expected.rule)
    for name, array in expected.rule.items():
        assert (found.rule[name].dtype, found.rule[name].shape) == (array.dtype, array.shape)
        assert found.rule[name].tobytes() == array.tobytes()


def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    assert read(tmp_path / "checkpoint.safetensors", "fedavg") is None


def test_a_checkpoint_of_a_stateless_rule_is_as_it_always_was(tmp_path: Path) -> None:
    file = stored(tmp_path, "fedavg")
    with safe_open(file, framework="np") as content:
        assert set(content.keys()) == {"weights", "optimizer.first", "optimizer.second"}
        assert set(content.metadata()) == {"round", "step", "seconds", "sha256"}


def test_a_run_of_another_rule_is_refused(tmp_path: Path) -> None:
    file = stored(tmp_path, "centered-clipping")
    with pytest.raises(ValueError, match=r"it holds .*rule\.centre.*, this run has .*weights\); remove it to start"):
        read(file, "fedavg")
    with pytest.raises(ValueError, match="what seniority remembers: KeyError: 'clients'"):
        read(file, "tests.simulation.own:Seniority")
    file = stored(tmp_path, "fedavg")
    with pytest.raises(ValueError, match="what centered-clipping remembers: it holds nothing, centered-clipping has"):
        read(file, "centered-clipping")


HOSTILE = {
    "another length": lambda arrays: {**arrays, "rule.centre": np.zeros(3)},
    "another kind": lambda arrays: {**arrays, "rule.centre": arrays["rule.centre"].astype(np.float32)},
    "no numbers": lambda arrays: {**arrays, "rule.centre": np.full_like(arrays["rule.centre"], np.nan)},
    "nothing of the rule": lambda arrays: {k: v for k, v in arrays.items() if not k.startswith("rule.")},
    "more than the rule has": lambda arrays: {**arrays, "rule.more": np.zeros(2)},
    "a name that leads elsewhere": lambda arrays: {**arrays, "rule.../../x": np.zeros(2)},
    "an empty name": lambda arrays: {**arrays, "rule.": np.zeros(2)},
    "a thousand arrays": lambda arrays: {**arrays, **{f"rule.{n}": np.zeros(1) for n in range(1001)}},
    "other weights": lambda arrays: {**arrays, "weights": np.zeros(4, dtype=np.float32)},
    "a stranger": lambda arrays: {**arrays, "momentum": np.zeros(4)},
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("digest", [True, False])
def test_a_state_that_cannot_be_the_rules_is_refused(tmp_path: Path, change: Any, digest: bool) -> None:
    file = stored(tmp_path, "centered-clipping")
    arrays = change(load_file(file))
    order = " ".join(name.removeprefix("rule.") for name in arrays if name.startswith("rule."))
    rewritten(file, arrays, digest=digest, rule=order)
    with pytest.raises(ValueError, match=rf"^{re.escape(str(file))} cannot be read \(.+\); remove it") as refused:
        read(file, "centered-clipping")
    assert len(str(refused.value)) < 1000 + len(str(file))


def test_a_state_of_a_kind_that_no_array_of_numpy_has_is_refused(tmp_path: Path) -> None:
    file = stored(tmp_path, "centered-clipping")
    content = file.read_bytes()
    assert content.count(b'"rule.centre":{"dtype":"F64"') == 1
    file.write_bytes(content.replace(b'"rule.centre":{"dtype":"F64"', b'"rule.centre":{"dtype":"C64"'))
    with pytest.raises(ValueError, match=r"cannot be read \("):
        read(file, "centered-clipping")


def test_a_grown_state_is_checked_by_its_rule(tmp_path: Path) -> None:
    file = stored(tmp_path, "tests.simulation.own:Seniority")
    arrays = load_file(file)
    assert len(arrays["rule.clients"]) > 10
    rewritten(file, {**arrays, "rule.visits": arrays["rule.visits"][:-1]}, digest=True)
    with pytest.raises(ValueError, match=r"what seniority remembers: \(\d+,\) clients have \(\d+,\) visits"):
        read(file, "tests.simulation.own:Seniority")


def test_shape_and_kind_of_a_rules_array_are_part_of_the_checksum(tmp_path: Path) -> None:
    """The rule may take an array of any shape, so that only the checksum tells that this was another one."""
    file = stored(tmp_path, "tests.simulation.own:Seniority")
    content = file.read_bytes()
    with safe_open(file, framework="np") as before:
        dtype = before.get_slice("rule.rounds").get_dtype()
    changed = content.replace(b'"rule.rounds":{"dtype":"I64","shape":[]', b'"rule.rounds":{"dtype":"U64","shape":[]')
    assert (dtype, changed == content) == ("I64", False)
    file.write_bytes(changed)
    with pytest.raises(ValueError, match="does not have the checksum that it states"):
        read(file, "tests.simulation.own:Seniority")


def test_another_order_than_stated_is_refused(tmp_path: Path) -> None:
    file = stored(tmp_path, "tests.simulation.own:Seniority")
    for order in ("visits clients last", "visits visits last rounds", "", "visits clients last round"):
        rewritten(file, load_file(file), digest=True, rule=order)
        with pytest.raises(ValueError, match="it holds clients, last, rounds, visits of the rule, and states"):
            read(file, "tests.simulation.own:Seniority")


@pytest.mark.parametrize(("rule", "most"), [("fedavg", 2**20), ("centered-clipping", 2**30)])
def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, rule: str, most: int) -> None:
    file = stored(tmp_path, rule)
    os.truncate(file, most + 2**21)  # a sparse file
    with pytest.raises(ValueError, match="bytes are too many for a model of 650 parameters"):
        read(file, rule)


@pytest.mark.parametrize("error", [KeyError("x"), IndexError("y"), RuntimeError("z"), RecursionError("deep")])
def test_whatever_a_rule_raises_at_a_file_is_an_error_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def restore(self: Seniority, state: Any, dimension: int) -> Any:
        raise error

    file = stored(tmp_path, "tests.simulation.own:Seniority")
    monkeypatch.setattr(Seniority, "restore", restore)
    with pytest.raises(ValueError, match=f"what seniority remembers: {type(error).__name__}"):
        read_checkpoint(file, run_of("tests.simulation.own:Seniority")[1], ROUNDS, Seniority())


@pytest.mark.parametrize(
    ("state", "kind", "message"),
    [
        ([1, 2], TypeError, "the rule's state is list; give a rule's state as a table"),
        ({"a": [1.0]}, TypeError, "'a' in the rule's state is list; give"),
        ({"a": np.array(["x"])}, TypeError, "'a' in the rule's state is <U1; give"),
        ({"a": np.array([None])}, TypeError, "'a' in the rule's state is object; give"),
        ({"a": np.zeros(2, dtype=complex)}, TypeError, "'a' in the rule's state is complex128; give"),
        ({"a b": np.zeros(2)}, ValueError, "is named 'a b'; use letters, digits"),
        ({3: np.zeros(2)}, ValueError, "is named '3'; use letters, digits"),
        ({str(n): np.zeros(1) for n in range(1001)}, ValueError, "has 1,001 arrays of 8,008 bytes together"),
        ({"a": np.broadcast_to(np.zeros(1), (2**28,))}, ValueError, "1 arrays of 2,147,483,648 bytes together"),
    ],
)
def test_a_state_that_no_checkpoint_can_hold_is_an_error(state: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        check_rule_state(state)


def test_no_state_is_nothing_to_hold() -> None:
    assert check_rule_state(None) == {}
    assert run_of("fedavg")[2].rule is None
    assert isinstance(run_of("fedavg")[0], FedAvg)
    assert isinstance(run_of("centered-clipping")[0], CenteredClipping)


@pytest.mark.parametrize("attack", ["consistent", "adaptive"])
def test_what_an_attack_remembers_comes_back_and_is_refused_where_it_cannot_be_its(tmp_path: Path, attack: str) -> None:
    config = SimulationConfig(rounds=ROUNDS, attack=attack, rule="centered-clipping", num_sampled=20, setting="fixed")
    simulation = Simulation(config, digits())
    initial = state = simulation.initial_state()
    for _ in range(2):
        state, _ = simulation.step(state)
    assert state.attack is not None
    file = tmp_path / "checkpoint.safetensors"
    write_checkpoint(file, state, 1.0)
    found = read_checkpoint(file, initial, ROUNDS, simulation.rule, simulation.attack)
    assert found is not None
    assert found[0].attack is not None
    assert list(found[0].attack) == list(state.attack)
    for name, array in state.attack.items():
        np.testing.assert_array_equal(found[0].attack[name], array)
        assert found[0].attack[name].dtype == array.dtype
    with pytest.raises(ValueError, match="this run has"):
        read_checkpoint(file, initial, ROUNDS, simulation.rule)
    arrays = load_file(file)
    rewritten(
        file, {name: arrays[name] for name in arrays if name != f"attack.{next(iter(state.attack))}"}, digest=True
    )
    with pytest.raises(ValueError, match="of the attack, and states"):
        read_checkpoint(file, initial, ROUNDS, simulation.rule, simulation.attack)
    name = f"attack.{next(iter(state.attack))}"
    rewritten(file, {**arrays, name: arrays[name][:-1]}, digest=True)
    with pytest.raises(ValueError, match=f"what {attack} remembers: {name.removeprefix('attack.')} is "):
        read_checkpoint(file, initial, ROUNDS, simulation.rule, simulation.attack)
