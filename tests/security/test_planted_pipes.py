"""Somebody hands over a folder with a named pipe in it: nothing waits for ever for what nobody writes."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from tests.audit.records import round_record
from tests.data.conftest import write_idx as write_idx
from tests.data.test_download import get, mnist, server
from tests.security.planting import digits, nobody_waits_for, places_in
from tests.security.test_planted_links import begun, failed_grid, grid_into, run_places

from fedra.audit import AuditLog, read_trail
from fedra.data import DatasetError, load_dataset
from fedra.experiments import Results
from fedra.report import build_report
from fedra.simulation import resume

__all__ = ["failed_grid", "mnist", "run_places", "server", "write_idx"]

TOLD = (ValueError, OSError, KeyError)


def test_resuming_a_run(tmp_path: Path, run_places: list[str]) -> None:
    original = begun(tmp_path / "begun")
    shutil.copytree(original, tmp_path / "done")
    resume(tmp_path / "done", dataset=digits())
    for source in ("begun", "done"):
        for name in run_places:
            path = tmp_path / "run"
            shutil.copytree(tmp_path / source, path)
            (path / name).parent.mkdir(exist_ok=True)
            with nobody_waits_for(path / name), suppress(*TOLD):
                resume(path, dataset=digits())
            shutil.rmtree(path)


def test_going_on_with_a_grid_and_reporting_on_it(tmp_path: Path, failed_grid: tuple[Path, list[str]]) -> None:
    original, places = failed_grid
    for name in places:
        path = tmp_path / "grid"
        shutil.copytree(original, path)
        (path / name).parent.mkdir(exist_ok=True, parents=True)
        with nobody_waits_for(path / name):
            with suppress(*TOLD):
                build_report(path, figures=False)
            with suppress(*TOLD):
                grid_into(path)
            with suppress(*TOLD):
                build_report(path, figures=False)
        shutil.rmtree(path)


def test_reading_compact_results(tmp_path: Path) -> None:
    grid_into(tmp_path / "grid")
    Results.read(tmp_path / "grid").write(tmp_path / "whole")
    for name in places_in(tmp_path / "whole"):
        shutil.copytree(tmp_path / "whole", tmp_path / "compact")
        with nobody_waits_for(tmp_path / "compact" / name), suppress(*TOLD):
            Results.read(tmp_path / "compact")
        shutil.rmtree(tmp_path / "compact")


def test_reading_and_writing_an_audit_trail(tmp_path: Path) -> None:
    AuditLog(tmp_path / "a.jsonl").round(round_record(1))
    with nobody_waits_for(tmp_path / "a.jsonl.1"), pytest.raises(ValueError, match=r"a\.jsonl\.1 is a pipe"):
        read_trail(tmp_path / "a.jsonl")
    with nobody_waits_for(tmp_path / "a.jsonl"), pytest.raises(OSError, match="is a pipe"):
        AuditLog(tmp_path / "a.jsonl")


@pytest.mark.parametrize("mnist", ["generated"], indirect=True)
def test_downloading_and_loading(mnist: object, tmp_path: Path) -> None:
    raw = tmp_path / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    name = min(mnist.files)  # type: ignore[attr-defined]
    with nobody_waits_for(raw / f"{name}.part"):
        get(mnist, tmp_path / "data", "good")  # type: ignore[arg-type]
    with nobody_waits_for(raw / name), pytest.raises(DatasetError, match=f"{name} is a pipe"):
        load_dataset("mnist", tmp_path / "data")
