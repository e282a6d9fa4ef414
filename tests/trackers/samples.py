"""Runs and rounds to track, and reading back what trackers wrote."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fedra.server import Observer, RoundRecord, RunInfo

HOSTILE = [
    "../../etc/passwd",
    "a\x00b\nc\x1b[31m",
    "![x](http://elsewhere.example/x.png)",
    "<script>alert(1)</script>",
    "\ud800 half a pair",
    "x" * 100_000,
    "",
    "..",
    "/",
    "'; DROP TABLE runs; --",
    "\u202egnp.exe",
]


def info(run: str = "digits-fedra", **changed: Any) -> RunInfo:
    settings = {"seed": 3, "rule_params": {"gamma": 0.5}}
    known = {"platform": "simulation", "rule": "fedra", "rounds": 5, "settings": settings}
    return RunInfo(run=run, **{**known, **changed})


def record(number: int, **changed: Any) -> RoundRecord:
    clients = [{"client": "1", "kept": True}, {"client": "2", "kept": True}, {"client": "3", "kept": False}]
    known = {"run": "digits-fedra", "phase": "train", "time": 1000.0 + number, "rule": "fedra", "num_malicious": 1}
    return RoundRecord(round=number, **{**known, "note": "", "clients": clients, **changed})


def tracked(tracker: Observer, run: RunInfo, rounds: Sequence[RoundRecord], summary: dict[str, Any]) -> None:
    tracker.start(run)
    for taken in rounds:
        tracker.round(taken)
    tracker.end(run, summary)


def measured(*numbers: int, offset: float = 0.0) -> list[RoundRecord]:
    return [record(number, metrics={"accuracy": number / 10 + offset}) for number in numbers]


def event_numbers(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """The scalars that TensorBoard would draw, by tag."""
    events = accumulated(folder)
    return {tag: [(e.step, round(e.value, 6)) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def event_texts(folder: Path) -> dict[str, list[tuple[int, str]]]:
    """The texts that TensorBoard would show, by tag."""
    events = accumulated(folder)
    return {
        tag: [(e.step, e.tensor_proto.string_val[0].decode()) for e in events.Tensors(tag)]
        for tag in events.Tags()["tensors"]
    }


def accumulated(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0}).Reload()


def mlflow_client(folder: Path) -> Any:
    from mlflow.tracking import MlflowClient

    assert (folder / "mlflow.db").is_file()
    return MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")


def mlflow_runs(folder: Path, experiment: str = "fedra") -> list[Any]:
    client = mlflow_client(folder)
    found = client.get_experiment_by_name(experiment)
    return list(client.search_runs([found.experiment_id], order_by=["attributes.start_time ASC"]))


def mlflow_history(folder: Path, run: Any, key: str) -> list[tuple[int, float]]:
    history = mlflow_client(folder).get_metric_history(run.info.run_id, key)
    return [
        (metric.step, metric.value) for metric in sorted(history, key=lambda metric: (metric.step, metric.timestamp))
    ]


def wandb_records(folder: Path) -> list[list[Any]]:
    """What each ended offline run in a folder holds, in the order of their starts.

    W&B's own process closes a file a moment after the run has ended, so the end is waited for.
    """
    from wandb.proto.wandb_internal_pb2 import Record

    deadline = time.monotonic() + 20
    while True:
        paths = sorted((folder / "wandb").glob("offline-run-*/*.wandb"))
        found = [[Record.FromString(entry) for entry in log_entries(path.read_bytes())] for path in paths]
        if all(any(entry.HasField("exit") for entry in records) for records in found):
            return found
        assert time.monotonic() < deadline, f"{folder}: W&B did not end its files"
        time.sleep(0.02)


def wandb_rows(records: list[Any]) -> list[dict[str, Any]]:
    """The rows of an offline run's history."""
    rows = [{"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in r.history.item} for r in records]
    return [{name: value for name, value in row.items() if not name.startswith("_")} for row in rows if row]


def wandb_summary(records: list[Any]) -> dict[str, Any]:
    """What an offline run's summary ends as."""
    return {
        "/".join(item.nested_key) or item.key: json.loads(item.value_json)
        for entry in records
        for item in entry.summary.update
    }


def log_entries(content: bytes) -> Iterator[bytes]:
    """The entries of a file in LevelDB's log format, which W&B's is but for its seven bytes in front."""
    place, entry = 7, b""
    while place + 7 <= len(content):
        if (left := 32768 - place % 32768) < 7:
            place += left
            continue
        size, kind = struct.unpack_from("<HB", content, place + 4)
        if place + 7 + size > len(content):
            return  # still being written
        entry += content[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield entry
            entry = b""
