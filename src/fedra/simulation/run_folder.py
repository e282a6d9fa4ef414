"""A run's folder: configuration, records, checkpoint and result, such that a kill at any moment loses nothing done.

Records are written in parts, one for each checkpoint and before it; a part that no checkpoint covers is dropped when
the run resumes. Every file appears whole or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from fedra.attacks import Attack
from fedra.files import folder_inside, inside, locked, remove_folder, write_text, write_whole
from fedra.rules import Rule
from fedra.simulation.checkpoint import read_checkpoint, write_checkpoint
from fedra.simulation.config import SimulationConfig, to_toml
from fedra.simulation.parquet import as_frame
from fedra.simulation.round_step import ServerState
from fedra.simulation.run_records import CHECKPOINT, PARTS, RECORD_TYPES, parts_of, read_records
from fedra.simulation.run_result import read_result, summary
from fedra.untrusted import MEBIBYTE, clipped, read_bounded

CONFIG, RESULT = "config.toml", "result.json"


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """Where one run keeps what it has done."""

    path: Path

    @classmethod
    def create(cls, path: Path, config: SimulationConfig, *, chosen: Mapping[str, Any] | None = None) -> RunFolder:
        """Make the folder of a new run; one that holds anything already is an error.

        Args:
            path: the folder.
            config: the run's.
            chosen: what the data set decided where the configuration leaves it open, for people to read.
        """
        if path.exists() and (not path.is_dir() or any(path.glob("[!.]*"))):
            raise ValueError(f"{path} exists already; choose another --out, or resume it: fedra run --resume {path}")
        path.mkdir(parents=True, exist_ok=True)
        folder = cls(path=path)
        write_text(path / CONFIG, _stated(config, chosen or {}))
        return folder

    @classmethod
    def existing(cls, path: Path, *, trust: bool = False) -> tuple[RunFolder, SimulationConfig]:
        """Return the folder of an earlier run, and its configuration; `trust` as in `SimulationConfig.read`."""
        if not os.path.lexists(path / CONFIG):
            raise ValueError(f"{path} is not a run folder: it has no {CONFIG}; start one with fedra run --out {path}")
        try:
            return cls(path=path), SimulationConfig.read(path / CONFIG, trust=trust)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise error if str(path / CONFIG) in str(error) else ValueError(f"{path / CONFIG}: {error}") from error

    def extend(self, config: SimulationConfig, rounds: int) -> SimulationConfig:
        """Let a run have more rounds, whether it is complete or not; a kill at any moment leaves one or the other.

        Args:
            config: the run's.
            rounds: how many it is to have in all.
        """
        if rounds == config.rounds:
            return config
        longer = replace(config, rounds=rounds)
        if rounds < config.rounds:
            raise ValueError(f"rounds={rounds}, and {self.path} is a run of {config.rounds} rounds; give more, or none")
        with self.locked():
            complete = self.complete(config)
            if complete is not None:
                parts = folder_inside(self.path, PARTS)
                for name, frame in complete[1].items():
                    write = partial(frame.to_parquet, write_page_checksum=True)
                    write_whole(parts / f"{name}-{config.rounds:08d}.parquet", write)
                # Without its result the run is one that was stopped after its last round.
                (self.path / RESULT).unlink()
            text = read_bounded(self.path / CONFIG, MEBIBYTE).decode()
            comments = [line for line in text.split("\n") if line.startswith("#")]
            write_text(self.path / CONFIG, "\n".join([*comments, to_toml(longer)]))
        return longer

    def locked(self) -> AbstractContextManager[None]:
        """Hold the folder; for a second process that wants it that is an error."""
        return locked(self.path, f"{self.path} is in use by another process; wait for it or choose another")

    def save(self, state: ServerState, seconds: float, frames: dict[str, pd.DataFrame]) -> None:
        """Write the records since the last checkpoint, then the checkpoint."""
        parts = folder_inside(self.path, PARTS)
        for name, frame in frames.items():
            if len(frame):
                write = partial(frame.to_parquet, write_page_checksum=True)
                write_whole(parts / f"{name}-{state.round:08d}.parquet", write)
        write_checkpoint(self.path / CHECKPOINT, state, seconds)

    def load(
        self, initial: ServerState, rounds: int, rule: Rule, attack: Attack | None = None
    ) -> tuple[ServerState, float] | None:
        """Return the state at the last checkpoint and the seconds run until then; None before the first.

        Args:
            initial: the run's state before the first round.
            rounds: how many the run has in all.
            rule: the run's.
            attack: the run's.
        """
        loaded = read_checkpoint(self.path / CHECKPOINT, initial, rounds, rule, attack)
        done = 0 if loaded is None else loaded[0].round
        # Better an error now than when the last round is done: a part that is missing or damaged cannot be made again.
        read_records(self.path, rounds=done, whole=False)
        self._drop_parts_after(done)
        return loaded

    def finish(self, result: dict[str, Any]) -> None:
        """Join the parts and write the result; afterwards the run is complete."""
        for name, frame in self.frames().items():
            write_whole(self.path / f"{name}.parquet", partial(frame.to_parquet, write_page_checksum=True))
        write_text(self.path / RESULT, json.dumps(result, indent=2, sort_keys=True) + "\n")
        remove_folder(self.path, PARTS)

    def result(self) -> dict[str, Any] | None:
        """Return the result of a complete run, None of one that is not."""
        return read_result(self.path / RESULT)

    def complete(self, config: SimulationConfig) -> tuple[dict[str, Any], dict[str, pd.DataFrame]] | None:
        """Return result and records of a complete run, None of one that is not; they must belong together."""
        result = self.result()
        if result is None:
            return None
        remedy = f"put the right file back, or remove {self.path} to run it again"
        if result["rounds"] != config.rounds:
            raise ValueError(
                f"{self.path / RESULT} is of {result['rounds']} rounds, {CONFIG} of {config.rounds}; {remedy}"
            )
        for key, ours, theirs in config.differences(result.get("config")):
            raise ValueError(
                f"{self.path / RESULT} is of a run with {key} {clipped(theirs)}, {CONFIG} has {ours}; {remedy}"
            )
        frames = self.frames()
        for key, value in summary(frames["rounds"]).items():
            if result.get(key) != value:
                raise ValueError(
                    f"{self.path / RESULT} has {key} {result.get(key)}, the records in rounds.parquet {value}; {remedy}"
                )
        return result, frames

    def frame(self, name: str) -> pd.DataFrame:
        """Return a record, whole or as far as it goes."""
        return self.frames()[name]

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the records of rounds and of clients, whole or as far as they go."""
        result = self.result()
        rounds = None if result is None else result["rounds"]
        tables = read_records(self.path, rounds=rounds, whole=result is not None)
        return {name: as_frame(table, RECORD_TYPES[name]) for name, table in tables.items()}

    def _drop_parts_after(self, until: int) -> None:
        kept = {file for parts in parts_of(self.path).values() for number, file in parts.items() if number <= until}
        for part in inside(self.path, PARTS).glob("*"):
            if part not in kept:
                part.unlink()


def _stated(config: SimulationConfig, chosen: Mapping[str, Any]) -> str:
    """Return the configuration as TOML, and above it as comments what the data set chose and what is not used."""
    import tomli_w

    settings = config.to_dict()
    lines = tomli_w.dumps({key: value for key, value in chosen.items() if settings[key] is None}).split("\n")[:-1]
    unused = [key for key, value in settings.items() if value is None and key not in chosen]
    comments = (
        ["# The data set's own, since nothing else was asked for:", *(f"# {line}" for line in lines)] if lines else []
    )
    comments += [f"# Not used: {', '.join(unused)}"] if unused else []
    return "\n".join([*comments, to_toml(config)])
