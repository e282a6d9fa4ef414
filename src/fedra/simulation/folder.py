"""A run's folder: configuration, records, checkpoint and result, such that a kill at any moment loses nothing done.

Records are written in parts, one for each checkpoint and before it; a part that no checkpoint covers is dropped when
the run resumes. Every file appears whole or not at all.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from fedra.files import folder_inside, inside, locked, remove_folder, write_text, write_whole
from fedra.optimizers import OptimizerState
from fedra.simulation.config import SimulationConfig, to_toml
from fedra.simulation.rounds import ServerState

CONFIG, CHECKPOINT, RESULT = "config.toml", "checkpoint.safetensors", "result.json"
FRAMES = ("rounds", "clients")
PARTS = "parts"


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """Where one run keeps what it has done."""

    path: Path

    @classmethod
    def create(cls, path: Path, config: SimulationConfig) -> RunFolder:
        """Make the folder of a new run; one that holds anything already is an error."""
        if path.exists() and (not path.is_dir() or any(path.glob("[!.]*"))):
            raise ValueError(f"{path} is there already; choose another --out, or go on: fedra run --resume {path}")
        path.mkdir(parents=True, exist_ok=True)
        folder = cls(path=path)
        write_text(path / CONFIG, to_toml(config))
        return folder

    @classmethod
    def existing(cls, path: Path, *, trust: bool = False) -> tuple[RunFolder, SimulationConfig]:
        """Return the folder of an earlier run, and its configuration; `trust` as in `SimulationConfig.read`."""
        if not (path / CONFIG).is_file():
            raise ValueError(f"{path} is not a run folder: it has no {CONFIG}; start one with fedra run --out {path}")
        return cls(path=path), SimulationConfig.read(path / CONFIG, trust=trust)

    def locked(self) -> AbstractContextManager[None]:
        """Hold the folder; a second process that wants it is told."""
        return locked(self.path, f"{self.path} is in use by another process; wait for it or choose another")

    def save(self, state: ServerState, seconds: float, frames: dict[str, pd.DataFrame]) -> None:
        """Write the records since the last checkpoint, then the checkpoint."""
        parts = folder_inside(self.path, PARTS)
        for name, frame in frames.items():
            if len(frame):
                write_whole(parts / f"{name}-{state.round:08d}.parquet", frame.to_parquet)
        tensors: dict[str, npt.NDArray[Any]] = {"weights": np.ascontiguousarray(state.weights)}
        for name, moment in state.optimizer.moments.items():
            tensors[f"optimizer.{name}"] = np.ascontiguousarray(moment)
        metadata = {"round": str(state.round), "step": str(state.optimizer.step), "seconds": repr(seconds)}
        write_whole(self.path / CHECKPOINT, lambda target: save_file(tensors, target, metadata=metadata))

    def load(self) -> tuple[ServerState, float] | None:
        """Return the state at the last checkpoint and the seconds run until then; None before the first."""
        if not (self.path / CHECKPOINT).is_file():
            self._drop_parts_after(0)
            return None
        try:
            with safe_open(self.path / CHECKPOINT, framework="np") as stored:
                metadata = stored.metadata()
                tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (not a mapping)
            moments = {name.removeprefix("optimizer."): tensors[name] for name in tensors if name != "weights"}
            state = ServerState(
                round=int(metadata["round"]),
                weights=tensors["weights"],
                optimizer=OptimizerState(step=int(metadata["step"]), moments=moments),
            )
            seconds = float(metadata["seconds"])
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{self.path / CHECKPOINT} cannot be read ({error}); remove it to start this run again"
            ) from error
        self._drop_parts_after(state.round)
        return state, seconds

    def finish(self, result: dict[str, Any]) -> None:
        """Join the parts and write the result; afterwards the run is complete."""
        for name in FRAMES:
            write_whole(self.path / f"{name}.parquet", self.frame(name).to_parquet)
        write_text(self.path / RESULT, json.dumps(result, indent=2, sort_keys=True) + "\n")
        remove_folder(self.path, PARTS)

    def result(self) -> dict[str, Any] | None:
        """Return the result of a complete run, None of one that is not."""
        file = self.path / RESULT
        if not file.is_file():
            return None
        result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return result

    def frame(self, name: str) -> pd.DataFrame:
        """Return a record, whole or as far as it goes."""
        whole = self.path / f"{name}.parquet"
        if self.result() is not None:
            if not whole.is_file():
                raise ValueError(f"{whole} is not there, or no file; remove {self.path / RESULT} to run this again")
            return pd.read_parquet(whole)
        parts = sorted(part for part in (self.path / PARTS).glob(f"{name}-*.parquet") if part.is_file())
        return pd.concat([pd.read_parquet(part) for part in parts], ignore_index=True) if parts else pd.DataFrame()

    def _drop_parts_after(self, until: int) -> None:
        for part in inside(self.path, PARTS).glob("*"):
            number = part.stem.rpartition("-")[2]
            if not number.isdigit() or int(number) > until or part.suffix != ".parquet":
                part.unlink()
