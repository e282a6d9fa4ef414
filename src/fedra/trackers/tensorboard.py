"""TensorBoard: event files in a folder, drawn by ``tensorboard --logdir``."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from fedra.files import folder_inside, open_plain
from fedra.server.observers import RunInfo
from fedra.server.records import RoundRecord
from fedra.trackers.base import Session, Tracker, run_name, settings_of

# The file format's numbers are of single precision.
_LARGEST = 3.4e38


@dataclass(kw_only=True, eq=False)
class TensorBoard(Tracker):
    """Writes TensorBoard's event files into <folder>/<run>.

    A run that goes on writes one more file; TensorBoard then drops what an earlier one had of the rounds done again. A
    run that begins again under the same name takes the place of the earlier one.
    """

    name: ClassVar[str] = "tensorboard"
    library: ClassVar[str] = "tensorboard"

    def open(self, run: RunInfo, folder: Path) -> Session:
        """Open a new event file."""
        return _EventFile(folder_inside(folder, run_name(run)), run)

    def round(self, record: RoundRecord) -> None:
        """Add a round, having dropped what was there of it and of later ones if it is the first since a resume."""
        if isinstance(self._session, _EventFile) and record.phase == "train":
            self._session.purge(record.round)
        super().round(record)


class _EventFile(Session):
    """A file of TensorBoard's events, each on disk when its round is over."""

    def __init__(self, folder: Path, run: RunInfo) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.compat.proto.tensor_pb2 import TensorProto
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
        from tensorboard.plugins.text.metadata import create_summary_metadata
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._session_log, self._summary = Event, SessionLog, Summary
        self._tensor, self._shape = TensorProto, TensorShapeProto
        self._metadata = create_summary_metadata
        # TensorBoard reads a folder's files in the order of their names. Seconds, as its own writer has them, are too
        # few to keep two starts in their order.
        name = f"events.out.tfevents.{clock.time_ns():020d}.{os.getpid()}.fedra"
        self._file = open_plain(folder / name, "xb")
        self._writer = RecordWriter(self._file)
        self._unpurged = run.rounds_done > 0
        self._last = run.rounds_done
        self._write(file_version="brain.Event:2", wall_time=clock.time())
        if not self._unpurged:
            self._restart(0)
            lines = [f"{name} = {value}" for name, value in settings_of(run).items()]
            self.texts("settings", lines, step=0, time=clock.time())

    def purge(self, step: int) -> None:
        """Drop this round and later ones of what was there before a resume, once."""
        if self._unpurged:
            self._unpurged = False
            self._restart(step)

    def numbers(self, values: Mapping[str, float], *, step: int, time: float) -> None:
        """Add scalars."""
        self._last = max(self._last, step)
        scalars = [
            self._summary.Value(tag=tag, simple_value=value)
            for tag, value in values.items()
            if -_LARGEST <= value <= _LARGEST
        ]
        self._write(step=step, wall_time=time, summary=self._summary(value=scalars))

    def texts(self, tag: str, lines: Sequence[str], *, step: int, time: float) -> None:
        """Add a text, as a block of code: TensorBoard renders Markdown, images from elsewhere included."""
        block = "\n".join(f"    {line}" for line in lines)
        tensor = self._tensor(
            dtype="DT_STRING",
            string_val=[block.encode()],
            tensor_shape=self._shape(dim=[self._shape.Dim(size=1)]),
        )
        metadata = self._metadata(display_name=tag, description="")
        value = self._summary.Value(tag=tag, metadata=metadata, tensor=tensor)
        self._write(step=step, wall_time=time, summary=self._summary(value=[value]))

    def finish(self, numbers: Mapping[str, float], texts: Mapping[str, str]) -> None:
        """Add the run's figures as final/name, at its last round."""
        now = clock.time()
        self.numbers({f"final/{name}": value for name, value in numbers.items()}, step=self._last, time=now)
        if texts:
            self.texts("final", [f"{name} = {text}" for name, text in texts.items()], step=self._last, time=now)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _restart(self, step: int) -> None:
        self._write(step=step, wall_time=clock.time(), session_log=self._session_log(status=self._session_log.START))

    def _write(self, **fields: Any) -> None:
        self._writer.write(self._event(**fields).SerializeToString())
        self._writer.flush()
