"""Reading a checkpoint back: the state of this very run at a round that it can have reached, or an error."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from fedra.checks import is_number
from fedra.optimizers import OptimizerState
from fedra.simulation.rounds import ServerState
from fedra.untrusted import MEBIBYTE, clipped, opened

DIGEST = "sha256"
_NAMES = {"F32": np.dtype(np.float32), "F64": np.dtype(np.float64)}
_WHOLE = re.compile(r"[0-9]{1,18}")


def digest(tensors: Mapping[str, npt.NDArray[Any]], metadata: Mapping[str, str]) -> str:
    """Return what tells a checkpoint from one with a bit changed."""
    found = hashlib.sha256(repr(sorted((key, text) for key, text in metadata.items() if key != DIGEST)).encode())
    for name in sorted(tensors):
        found.update(name.encode())
        found.update(np.ascontiguousarray(tensors[name]).data)
    return found.hexdigest()


def read_checkpoint(path: Path, initial: ServerState, rounds: int) -> tuple[ServerState, float] | None:
    """Return the state of a checkpoint and the seconds run until then; None where there is none.

    Args:
        path: the file.
        initial: the state before the first round, whose shapes the checkpoint must have.
        rounds: how many the run has in all.
    """
    expected = {"weights": initial.weights} | {f"optimizer.{name}": m for name, m in initial.optimizer.moments.items()}
    try:
        with opened(path) as file:
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return None
    try:
        if size > sum(array.nbytes for array in expected.values()) + MEBIBYTE:
            raise ValueError(f"{size:,} bytes are too many for a model of {len(initial.weights):,} parameters")
        metadata, tensors = _content(path, expected)
        if DIGEST in metadata and metadata[DIGEST] != digest(tensors, metadata):
            raise ValueError("its content does not have the checksum that it states")
        done, step = _whole(metadata, "round", least=1, most=rounds), _whole(metadata, "step", least=0, most=rounds)
        seconds = float(metadata["seconds"])
        if not is_number(seconds, least=0):
            raise ValueError(f"seconds is {seconds}")
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} cannot be read ({clipped(error)}); remove it to start this run again") from error
    moments = {name.removeprefix("optimizer."): array for name, array in tensors.items() if name != "weights"}
    state = ServerState(round=done, weights=tensors["weights"], optimizer=OptimizerState(step=step, moments=moments))
    return state, seconds


def _content(
    path: Path, expected: Mapping[str, npt.NDArray[Any]]
) -> tuple[dict[str, str], dict[str, npt.NDArray[Any]]]:
    tensors = {}
    with safe_open(path, framework="np") as stored:
        metadata: dict[str, str] = stored.metadata() or {}
        if set(stored.keys()) != set(expected):
            raise ValueError(f"it holds {', '.join(sorted(stored.keys()))}, this run has {', '.join(sorted(expected))}")
        for name, like in expected.items():
            found = stored.get_slice(name)
            if _NAMES.get(found.get_dtype()) != like.dtype or found.get_shape() != list(like.shape):
                raise ValueError(
                    f"{name} is {found.get_dtype()} {found.get_shape()}, this run has {like.dtype} {list(like.shape)}"
                )
            tensors[name] = stored.get_tensor(name)
    return metadata, tensors


def _whole(metadata: Mapping[str, str], name: str, *, least: int, most: int) -> int:
    text = metadata[name]
    if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
        raise ValueError(f"{name} is {text}, this run has {most} rounds")
    return int(text)
