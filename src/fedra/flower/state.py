"""What a server must not forget between rounds, in one file that is replaced in one step."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.flower.faults import printable, short

_VERSION = 1


@dataclass(frozen=True, eq=False, kw_only=True)
class ServerState:
    """The model after a round, what the optimizer or inner strategy remembers, and who wrote it.

    `arrays` is the model by name; `memory` further arrays by name; `numbers` further plain values; `writer` describes
    the strategy, so that one of another kind does not resume from it.
    """

    round: int
    writer: str
    arrays: Mapping[str, npt.NDArray[Any]]
    memory: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)


def save_state(path: Path, state: ServerState) -> None:
    """Write the state; a crash at any moment leaves the old file or the new one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {
        "version": _VERSION,
        "round": state.round,
        "writer": state.writer,
        "arrays": list(state.arrays),
        "memory": list(state.memory),
        "numbers": dict(state.numbers),
    }
    contents: dict[str, npt.NDArray[Any]] = {"about": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)}
    contents |= {f"array-{i}": array for i, array in enumerate(state.arrays.values())}
    contents |= {f"memory-{i}": array for i, array in enumerate(state.memory.values())}
    fresh = _fresh(path)
    try:
        with fresh.open("xb") as file:
            np.savez(file, **contents)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        # On a full disk, the room it takes is needed for what else the round has to write.
        fresh.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def check_writable(path: Path) -> None:
    """Raise OSError where a state could not be written: better now than after the first round."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = _fresh(path)
    fresh.open("xb").close()
    fresh.unlink()


def load_state(path: Path, writer: str) -> ServerState | None:
    """Read the state, or return None where there is none; ValueError where it is not this writer's."""
    if not path.exists():
        return None
    try:
        _check_stored(path)
        with np.load(path, allow_pickle=False) as contents:
            about = json.loads(contents["about"].tobytes())
            version, wrote = about["version"], str(about["writer"])
            state = ServerState(
                round=about["round"],
                writer=wrote,
                arrays={str(name): contents[f"array-{i}"] for i, name in enumerate(about["arrays"])},
                memory={str(name): contents[f"memory-{i}"] for i, name in enumerate(about["memory"])},
                numbers=about["numbers"],
            )
    except Exception as error:
        raise ValueError(
            f"{path} is not a state that fedra saved ({short(error, 120)}); move it away to start anew"
        ) from error
    if version != _VERSION:
        raise ValueError(
            f"{path} has version {short(version)}, this fedra reads {_VERSION}; move it away to start anew"
        )
    if wrote != writer:
        raise ValueError(
            f"{path} was saved by {printable(wrote, 300)}, this is {writer}; use the same settings, or move it away to "
            "start anew"
        )
    if fault := _fault(state):
        raise ValueError(f"{path} is not a state that fedra saved ({fault}); move it away to start anew")
    return state


def _check_stored(path: Path) -> None:
    """Refuse a file whose contents are larger than itself: fedra does not compress, and a small file may expand to all
    of the memory.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    size = sum(member.file_size for member in members)
    if any(member.compress_type != zipfile.ZIP_STORED for member in members) or size > path.stat().st_size:
        raise ValueError(f"{size} bytes in a file of {path.stat().st_size}")


def _fault(state: ServerState) -> str:
    if type(state.round) is not int or state.round < 0:
        return f"its round is {short(state.round)}"
    if not isinstance(state.numbers, dict):
        return "its values have no names"
    for name, array in state.arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return f"array {short(name)} of its model is not finite"
    return ""


def _fresh(path: Path) -> Path:
    """Return where to write the new state; what a killed server left there, or a link put there, is removed."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    return fresh


def _sync_directory(directory: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
