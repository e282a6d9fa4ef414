"""A checkpoint: the state of a run in a file, and back, bit for bit.

What is read is the state of this very run at a round that it can have reached, or an error that names the file.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from fedra.attacks import Attack, StatefulAttack
from fedra.checks import is_number
from fedra.cohort import RuleState
from fedra.files import write_whole
from fedra.optimizers import OptimizerState
from fedra.rules.base import Rule, StatefulRule
from fedra.simulation.round_step import ServerState
from fedra.untrusted import MEBIBYTE, clipped, opened

# What a rule may remember: as many bytes, as many arrays, of these names and kinds.
LARGEST_RULE_STATE = 1024 * MEBIBYTE
_MOST_RULE_ARRAYS = 1000
_RULE_ARRAY = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_KINDS = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16, "U32": np.uint32,
    "I32": np.int32, "U64": np.uint64, "I64": np.int64, "F16": np.float16, "F32": np.float32, "F64": np.float64,
}  # fmt: skip
_DTYPES = {name: np.dtype(kind) for name, kind in _KINDS.items()}

_OPTIMIZER = "optimizer."
# Whoever remembers: arrays have this name and a dot in front, and their order stands in the metadata by this name.
_ARTICLES = {"rule": "a", "attack": "an"}
_DIGEST = "sha256"
_UNSIGNED = {"round", "step", "seconds"}
_WHOLE = re.compile(r"[0-9]{1,18}")

Arrays = dict[str, npt.NDArray[Any]]


def write_checkpoint(path: Path, state: ServerState, seconds: float) -> None:
    """Write the state after a round, and the seconds run until then."""
    remembered = {"rule": check_rule_state(state.rule), "attack": check_rule_state(state.attack, "attack")}
    arrays = _fixed_arrays(state)
    for who, stored in remembered.items():
        arrays |= {f"{who}.{name}": array for name, array in stored.items()}
    # Unlike ascontiguousarray this leaves a single number a single number.
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    metadata = {"round": str(state.round), "step": str(state.optimizer.step), "seconds": repr(seconds)}
    # The file has an order of its own, and a rule may go through what it remembers.
    metadata |= {who: " ".join(stored) for who, stored in remembered.items() if stored}
    metadata[_DIGEST] = _digest(arrays, metadata)
    write_whole(path, lambda target: save_file(arrays, target, metadata=metadata))


def read_checkpoint(
    path: Path, initial: ServerState, rounds: int, rule: Rule, attack: Attack | None = None
) -> tuple[ServerState, float] | None:
    """Return the state of a checkpoint and the seconds run until then; None where there is none.

    Args:
        path: the file.
        initial: the state before the first round, whose shapes weights and moments must have.
        rounds: how many the run has in all.
        rule: restores what it remembered, and refuses what it cannot have.
        attack: the same.
    """
    expected = _fixed_arrays(initial)
    remembering: dict[str, StatefulRule | StatefulAttack] = {}
    if isinstance(rule, StatefulRule):
        remembering["rule"] = rule
    if isinstance(attack, StatefulAttack):
        remembering["attack"] = attack
    try:
        with opened(path) as file:
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return None
    try:
        most = sum(array.nbytes for array in expected.values()) + len(remembering) * LARGEST_RULE_STATE + MEBIBYTE
        if size > most:
            raise ValueError(f"{size:,} bytes are too many for a model of {len(initial.weights):,} parameters")
        metadata, arrays = _content(path, expected, remembering)
        # The first versions wrote no checksum, and knew no rules that remember.
        unsigned = not remembering and metadata.keys() == _UNSIGNED
        if not unsigned and metadata.get(_DIGEST) != _digest(arrays, metadata):
            raise ValueError("its content does not have the checksum that it states")
        done, step = _whole(metadata, "round", least=1, most=rounds), _whole(metadata, "step", least=0, most=rounds)
        seconds = float(metadata["seconds"])
        if not is_number(seconds, least=0):
            raise ValueError(f"seconds is {seconds}")
        remembered = {
            who: _restored(owner, who, _ordered(who, _below(f"{who}.", arrays), metadata), len(initial.weights))
            for who, owner in remembering.items()
        }
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} cannot be read ({clipped(error)}); remove it to start this run again") from error
    optimizer = OptimizerState(step=step, moments=_below(_OPTIMIZER, arrays))
    state = ServerState(
        round=done,
        weights=arrays["weights"],
        optimizer=optimizer,
        rule=remembered.get("rule"),
        attack=remembered.get("attack"),
    )
    return state, seconds


def check_rule_state(state: RuleState | None, who: str = "rule") -> RuleState:
    """Return what a rule or an attack remembers, having checked that a checkpoint can hold it; nothing for None.

    Raises:
        TypeError: where it is no table of arrays of numbers.
        ValueError: where names or sizes are out of range.
    """
    if state is None:
        return {}
    remedy = f"give {_ARTICLES[who]} {who}'s state as a table of NumPy arrays of numbers"
    if not isinstance(state, Mapping):
        raise TypeError(f"the {who}'s state is {type(state).__name__}; {remedy}")
    for name, array in state.items():
        if not isinstance(array, np.ndarray) or array.dtype not in _DTYPES.values():
            kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise TypeError(f"{name!r} in the {who}'s state is {kind}; {remedy}")
        if not isinstance(name, str) or not _RULE_ARRAY.fullmatch(name):
            raise ValueError(f"an array in the {who}'s state is named {clipped(name, 120)!r}; use letters, digits, _.-")
    size = sum(array.nbytes for array in state.values())
    if size > LARGEST_RULE_STATE or len(state) > _MOST_RULE_ARRAYS:
        raise ValueError(
            f"the {who}'s state has {len(state):,} arrays of {size:,} bytes together; a checkpoint holds "
            f"{_MOST_RULE_ARRAYS:,} of {LARGEST_RULE_STATE:,}"
        )
    return state


def _fixed_arrays(state: ServerState) -> Arrays:
    """Return what has the same shape in all rounds, by its name in the file."""
    moments = {f"{_OPTIMIZER}{name}": moment for name, moment in state.optimizer.moments.items()}
    return {"weights": state.weights, **moments}


def _below(prefix: str, arrays: Arrays) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _digest(arrays: Arrays, metadata: Mapping[str, str]) -> str:
    """Return what tells a checkpoint from one with a bit changed."""
    found = hashlib.sha256(repr(sorted((key, text) for key, text in metadata.items() if key != _DIGEST)).encode())
    for name in sorted(arrays):
        found.update(name.encode())
        if name.startswith(tuple(f"{who}." for who in _ARTICLES)):
            # Of other arrays the run itself knows kind and shape.
            found.update(f"{arrays[name].dtype} {arrays[name].shape}".encode())
        found.update(arrays[name].data)
    return found.hexdigest()


def _content(path: Path, expected: Arrays, remembering: Iterable[str]) -> tuple[dict[str, str], Arrays]:
    """Return metadata and arrays; those of rule and attack with any shape, which may be another after each round."""
    with safe_open(path, framework="np") as stored:
        metadata: dict[str, str] = stored.metadata() or {}
        names = set(stored.keys())
        remembered: set[str] = set()
        for who in remembering:
            theirs = {name for name in names if name.startswith(f"{who}.")}
            if len(theirs) > _MOST_RULE_ARRAYS:
                raise ValueError(f"it holds {len(theirs):,} arrays of the {who}, more than {_MOST_RULE_ARRAYS:,}")
            remembered |= theirs
        if names - remembered != set(expected):
            listed = ", ".join(sorted(names)[:_MOST_RULE_ARRAYS])
            raise ValueError(f"it holds {listed}, this run has {', '.join(sorted(expected))}")
        for name, like in expected.items():
            found = stored.get_slice(name)
            if _DTYPES.get(found.get_dtype()) != like.dtype or found.get_shape() != list(like.shape):
                raise ValueError(
                    f"{name} is {found.get_dtype()} {found.get_shape()}, this run has {like.dtype} {list(like.shape)}"
                )
        for name in remembered:
            if (kind := stored.get_slice(name).get_dtype()) not in _DTYPES:
                raise ValueError(f"{name} is {kind}, which no {name.partition('.')[0]} remembers")
        arrays = {name: stored.get_tensor(name) for name in sorted(names)}
    return metadata, arrays


def _ordered(who: str, state: Arrays, metadata: Mapping[str, str]) -> Arrays:
    order = metadata.get(who, "").split()
    if sorted(order) != sorted(state):
        held = ", ".join(sorted(state)) or "nothing"
        raise ValueError(f"it holds {held} of the {who}, and states {', '.join(order)}")
    return {name: state[name] for name in order}


def _restored(owner: StatefulRule | StatefulAttack, who: str, state: Arrays, dimension: int) -> RuleState:
    try:
        return check_rule_state(owner.restore(check_rule_state(state, who), dimension), who)
    except Exception as error:  # a rule or attack of somebody else, given what a file holds
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(f"what {owner.name} remembers: {kind}{error}") from error


def _whole(metadata: Mapping[str, str], name: str, *, least: int, most: int) -> int:
    text = metadata[name]
    if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
        raise ValueError(f"{name} is {text}, this run has {most} rounds")
    return int(text)
