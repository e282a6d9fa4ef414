"""Rounds of files on a real Ray cluster: the bits of one process, whoever is killed."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.strategies import make_round
from tests.updates import killed, written
from tests.updates.test_rules_on_files import RULE_NAMES, assert_same
from typer.testing import CliRunner

import fedra
from fedra.cli import app
from fedra.cluster import RayWorkers, workers
from fedra.cluster.worker import Done, Job, Unread
from fedra.updates.aggregation import Aggregated, aggregate

pytest.importorskip("ray")

NUMBER, DIMENSION = 9, 70_001
ROUND = make_round(5, NUMBER, DIMENSION, np.float32, base=1.0, liars=1)
CLAIMS = [100 + place for place in range(NUMBER)]
pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return written.clients(tmp_path_factory.mktemp("round"), ROUND.updates, [1, 30_000, 0, 40_000])


def expected(rule: str) -> bytes:
    update = fedra.make_rule(rule)(ROUND.updates, CLAIMS).update
    assert update is not None
    return update.tobytes()


def result_of(path: Path) -> bytes:
    arrays = load_file(path)
    return b"".join(arrays[name].tobytes() for name in sorted(arrays))


def on_ray(paths: list[Path], out: Path, rule: str = "fedra", *, engine: Any = None, **options: Any) -> Aggregated:
    with engine or RayWorkers() as elsewhere:
        return aggregate(paths, CLAIMS, rule=fedra.make_rule(rule), out=out, elsewhere=elsewhere, **options)


@pytest.mark.parametrize("name", RULE_NAMES)
def test_every_rule_gives_the_bits_of_one_process(name: str, paths: list[Path], tmp_path: Path) -> None:
    rule = fedra.make_rule(name)
    with RayWorkers() as elsewhere, fedra.open_updates(paths, scratch=tmp_path) as updates:
        found = updates.judged_by(rule, CLAIMS, range(NUMBER), elsewhere=elsewhere)
        assert_same(found, rule(ROUND.updates, CLAIMS))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("rule", "passes"), [("fedra", 2), ("median", 1)])
def test_a_worker_killed_in_each_pass_costs_nothing(
    rule: str, passes: int, late: bool, paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    compute = workers.block_of_columns

    # Inside, so that it goes to the workers by value: these tests are nothing they could import.
    def deadly(job: Job, start: int, stop: int, vectors: list[Any], sent: list[Any] | None) -> Done | Unread:
        mark = marks / str(len(job.results))
        first = not mark.exists() and start > 0
        found = compute(job, start, stop, vectors, sent) if late or not first else None
        if first:
            # With the shard written, where it is late, and nobody told of it.
            mark.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        assert found is not None
        return found

    monkeypatch.setattr(workers, "block_of_columns", deadly)
    done = on_ray(paths, tmp_path / "new.safetensors", rule)
    assert len(list(marks.iterdir())) == passes
    assert done.resumed == 0
    assert result_of(tmp_path / "new.safetensors") == expected(rule)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["marks", "new.safetensors"]


def test_what_is_lost_too_often_says_so_and_goes_on_later(
    paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute = workers.block_of_columns

    def deadly(job: Job, start: int, stop: int, vectors: list[Any], sent: list[Any] | None) -> Done | Unread:
        if start > 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return compute(job, start, stop, vectors, sent)

    out = tmp_path / "new.safetensors"
    with monkeypatch.context() as patch:
        patch.setattr(workers, "block_of_columns", deadly)
        with pytest.raises(OSError, match=r"Ray lost a block of columns 1 times .*the same command goes on"):
            on_ray(paths, out, engine=RayWorkers(retries=0, workers=1))
    assert not out.exists()
    assert on_ray(paths, out).resumed == 1
    assert result_of(out) == expected("fedra")


def test_stopped_on_ray_it_goes_on_here_and_back(paths: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "new.safetensors"

    def stop_at(block: int) -> Any:
        calls = []

        def progress(*_: int) -> None:
            calls.append(1)
            if len(calls) == block:
                raise KeyboardInterrupt

        return progress

    with pytest.raises(KeyboardInterrupt):
        on_ray(paths, out, progress=stop_at(3))
    with pytest.raises(KeyboardInterrupt):
        aggregate(paths, CLAIMS, rule=fedra.FedRA(), out=out, threads=1, progress=stop_at(7))
    assert on_ray(paths, out).resumed == 7
    assert result_of(out) == expected("fedra")


def test_a_driver_that_is_killed_goes_on(paths: list[Path], tmp_path: Path, cluster: Any) -> None:
    out = tmp_path / "new.safetensors"
    # The seventh block is one of the second pass, which writes.
    command = [sys.executable, killed.__file__, str(paths[0].parent), "fedra", str(out), "kill", "7", cluster.address]
    stopped = subprocess.run(command, capture_output=True, text=True, check=False)
    assert stopped.returncode == -9, stopped.stderr
    assert not out.exists()
    assert on_ray(paths, out).resumed == 7
    assert result_of(out) == expected("fedra")
    assert [path.name for path in tmp_path.iterdir()] == ["new.safetensors"]


@pytest.mark.parametrize("name", ["fedra", "median", "huber", "centered-clipping"])
def test_columns_are_sent_where_files_are_not_shared(
    name: str, paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compute = workers.block_of_columns

    def far_away(job: Job, start: int, stop: int, vectors: list[Any], sent: list[Any] | None) -> Done | Unread:
        rows = tuple(dataclasses.replace(row, path=row.path.with_name("nowhere.npy")) for row in job.rows)
        away = dataclasses.replace(job, rows=rows, shared=None)
        return compute(away, start, stop, vectors, sent)

    monkeypatch.setattr(workers, "block_of_columns", far_away)
    on_ray(paths, tmp_path / "new.safetensors", name)
    assert result_of(tmp_path / "new.safetensors") == expected(name)
    (warning,) = [record.message for record in caplog.records if record.name == "fedra"]
    assert "there is no file 'nowhere.npy'): from here on columns are sent to workers" in warning


@pytest.mark.parametrize("shared", [True, False])
def test_bad_files_are_rejected_as_without_a_cluster(shared: bool, tmp_path: Path) -> None:
    files = written.clients(tmp_path, ROUND.updates)
    (tmp_path / "client4.safetensors").write_bytes(b"")
    written.write_safetensors(tmp_path / "client5", {"t000": np.full(DIMENSION, np.nan, np.float32)})
    rule = fedra.Median()
    with RayWorkers(shared=shared) as elsewhere, fedra.open_updates(files) as updates:
        # One that was whole when it was opened.
        os.truncate(files[2], files[2].stat().st_size - 1000)
        found = updates.judged_by(rule, CLAIMS, range(NUMBER), elsewhere=elsewhere)
        assert elsewhere.shared is shared, "a client's fault is nothing that sending would help"
    good = [place for place in range(NUMBER) if place not in (2, 4, 5)]
    expected = rule(ROUND.updates[good], [CLAIMS[place] for place in good])
    assert found.update is not None
    assert expected.update is not None
    assert found.update.tobytes() == expected.update.tobytes()
    assert found.usable.tolist() == [place in good for place in range(NUMBER)]
    assert "while it was read" in found.reasons[2]
    assert found.reasons[5]


def test_the_command(paths: list[Path], tmp_path: Path, cluster: Any) -> None:
    out = tmp_path / "new.safetensors"
    flags = ("--rule", "median", "--engine", "ray", "--ray-address", cluster.address, "--workers", "2", "--explain")
    done = CliRunner().invoke(app, ["aggregate", *map(str, paths), "--out", str(out), *flags])
    assert done.exit_code == 0, done.output
    assert result_of(out) == expected("median")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.safetensors", "new.safetensors.audit.jsonl"]


def test_it_is_a_context(paths: list[Path]) -> None:
    with (
        fedra.open_updates(paths) as updates,
        pytest.raises(ValueError, match=r"connected to no cluster; use it as: with RayWorkers"),
    ):
        updates.judged_by(fedra.Median(), CLAIMS, elsewhere=RayWorkers())
    with pytest.raises(ValueError, match="workers=0"):
        RayWorkers(workers=0)
