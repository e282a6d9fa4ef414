"""Weights & Biases, offline: files in a folder, which ``wandb sync`` uploads when you say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fedra.checks import wrong
from fedra.files import folder_inside
from fedra.server.observers import RunInfo
from fedra.trackers.base import Session, Tracker, run_name, settings_of


@dataclass(kw_only=True, eq=False)
class WandB(Tracker):
    """Writes offline runs of Weights & Biases into <folder>/wandb; nothing leaves the machine.

    The W&B identifier is the run's, so that the parts of a run that went on are one run when they are uploaded.

    Attributes:
        project: the W&B project that the run belongs to.
    """

    name: ClassVar[str] = "wandb"
    library: ClassVar[str] = "wandb"

    project: str = "fedra"

    def __post_init__(self) -> None:
        if not isinstance(self.project, str) or not self.project.strip():
            raise TypeError(wrong("project", self.project, "the name of a W&B project"))
        super().__post_init__()

    def open(self, run: RunInfo, folder: Path) -> Session:
        """Open an offline run."""
        folder_inside(folder.resolve(), "wandb")
        return _OfflineRun(folder.resolve(), self.project, run)


class _OfflineRun(Session):
    """A run of W&B's library in offline mode."""

    def __init__(self, folder: Path, project: str, run: RunInfo) -> None:
        import wandb

        settings = settings_of(run)
        self._run = wandb.init(
            mode="offline",
            dir=str(folder),
            project=project,
            id=run_name(run),
            name=settings["run"],
            config=settings,
            resume="allow",
            # A run that the user's own code has open stays open.
            reinit="create_new",
            settings=wandb.Settings(
                console="off", silent=True, disable_git=True, disable_code=True, x_disable_stats=True
            ),
        )
        # W&B's own step only ever grows, and starts again when a run goes on offline.
        self._run.define_metric("round")
        self._run.define_metric("*", step_metric="round")

    def numbers(self, values: Mapping[str, float], *, step: int, time: float) -> None:
        """Add a row with the round and its numbers."""
        self._run.log({"round": step, **values})

    def texts(self, tag: str, lines: Sequence[str], *, step: int, time: float) -> None:
        """Add a row with the round and its texts."""
        self._run.log({"round": step, tag: "\n".join(lines)})

    def finish(self, numbers: Mapping[str, float], texts: Mapping[str, str]) -> None:
        """Put the run's figures into its summary as final/name."""
        self._run.summary.update({f"final/{name}": value for name, value in {**numbers, **texts}.items()})

    def close(self) -> None:
        """Finish the files."""
        self._run.finish()
