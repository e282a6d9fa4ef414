"""What a server must not forget between rounds, in one file that is replaced in one step."""

from __future__ import annotations

import json
import re
import secrets
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.cohort import RuleState
from fedra.files import open_plain, sync_folder, write_whole
from fedra.server.faults import printable, short

_VERSION = 1
_LEFTOVER = re.compile(r"(\.[0-9a-f]{8})?\.new")

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False, kw_only=True)
class SavedState:
    """The model after a round, what optimizer, inner strategy and rule remember, and who wrote it.

    Attributes:
        round: the last round that is done.
        writer: describes the strategy, so that one of another kind does not resume from it.
        arrays: the model by name.
        memory: arrays that the optimizer or inner strategy remembers.
        numbers: plain values that they remember.
        rule: what a stateful rule remembers; empty for others.
        rule_name: which rule that is; empty where the file does not say.
    """

    round: int
    writer: str
    arrays: Arrays
    memory: Arrays = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)
    rule: RuleState = field(default_factory=dict)
    rule_name: str = ""


def save_state(path: Path, state: SavedState) -> None:
    """Write the state; a crash at any moment leaves the old file or the new one, whole."""
    groups = {"array": state.arrays, "memory": state.memory, "rule": state.rule}
    about = {
        "version": _VERSION,
        "round": state.round,
        "writer": state.writer,
        "arrays": list(state.arrays),
        "memory": list(state.memory),
        "rule": list(state.rule),
        "rule_name": state.rule_name,
        "numbers": dict(state.numbers),
    }
    contents: dict[str, Any] = {"about": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)}
    for group, arrays in groups.items():
        contents |= {f"{group}-{i}": array for i, array in enumerate(arrays.values())}

    def write(fresh: Path) -> None:
        with open_plain(fresh, "wb") as file:
            np.savez(file, **contents)

    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, write, fresh=_fresh(path))
    sync_folder(path.parent)


def check_writable(path: Path) -> None:
    """Raise OSError where a state could not be written: better now than after the first round.

    What a killed server was writing is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for leftover in path.parent.iterdir():
        name = leftover.name
        if name.startswith(path.name) and _LEFTOVER.fullmatch(name, len(path.name)) and not leftover.is_dir():
            leftover.unlink(missing_ok=True)
    fresh = _fresh(path)
    fresh.open("xb").close()
    fresh.unlink()


def load_state(path: Path, writer: str) -> SavedState | None:
    """Read the state, or return None where there is none; ValueError where it is not this writer's."""
    if not path.exists():
        return None
    try:
        _check_stored(path)
        with np.load(path, allow_pickle=False) as contents:
            about = json.loads(contents["about"].tobytes())
            version, wrote = about["version"], str(about["writer"])
            state = SavedState(
                round=about["round"],
                writer=wrote,
                arrays=_group(contents, "array", about["arrays"]),
                memory=_group(contents, "memory", about["memory"]),
                rule=_group(contents, "rule", about.get("rule", [])),
                rule_name=str(about.get("rule_name", "")),
                numbers=about["numbers"],
            )
    except Exception as error:
        raise ValueError(
            f"{path} is not a state that fedra saved ({short(error, 120)}); move it away to start again"
        ) from error
    if version != _VERSION:
        raise ValueError(
            f"{path} has version {short(version)}, this fedra reads {_VERSION}; move it away to start again"
        )
    if wrote != writer:
        raise ValueError(
            f"{path} was saved by {printable(wrote, 300)}, this is {writer}; use the same settings, or move it away to "
            "start again"
        )
    if fault := _fault(state):
        raise ValueError(f"{path} is not a state that fedra saved ({fault}); move it away to start again")
    return state


def _fresh(path: Path) -> Path:
    # A name of its own for each write: two servers that were given one state would write into the same file, and leave
    # one that neither can read.
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")


def _group(contents: Mapping[str, npt.NDArray[Any]], group: str, names: list[Any]) -> dict[str, npt.NDArray[Any]]:
    return {str(name): contents[f"{group}-{i}"] for i, name in enumerate(names)}


def _check_stored(path: Path) -> None:
    """Refuse a file whose contents are larger than itself: fedra does not compress, and a small file may expand to all
    of the memory.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    size = sum(member.file_size for member in members)
    if any(member.compress_type != zipfile.ZIP_STORED for member in members) or size > path.stat().st_size:
        raise ValueError(f"{size} bytes in a file of {path.stat().st_size}")


def _fault(state: SavedState) -> str:
    if type(state.round) is not int or state.round < 0:
        return f"its round is {short(state.round)}"
    if not isinstance(state.numbers, dict):
        return "its values have no names"
    for name, array in state.arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return f"array {short(name)} of its model is not finite"
    return ""
