"""Somebody hands over a folder with links in it: nothing outside it is written, truncated or removed, come what may."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.audit.records import round_record
from tests.data.conftest import write_idx as write_idx
from tests.data.test_download import BATCHES, archive_of, cifar_members, get, mnist, serve_archive, server
from tests.report.small_grid import fail
from tests.security.planting import PLANTS, InThisProcess, Outside, digits, places_in, plant, remove
from tests.simulation.watching import stop_in
from typer.testing import CliRunner

from fedra.audit import AuditLog
from fedra.audit.command import audit
from fedra.cli import app
from fedra.data import DatasetError, download_dataset
from fedra.experiments import Grid, Results, run_grid
from fedra.experiments.ray_engine import packed_folder, unpack_folder
from fedra.report import build_report
from fedra.simulation import SimulationConfig, resume, simulate

__all__ = ["mnist", "server", "write_idx"]

CONFIG = SimulationConfig(attack="lie", alpha_q=10, rounds=5, checkpoint_every=2, eval_every=2, num_sampled=10)
GRID = {"rules": ["fedavg"], "attacks": ["lie"], "fixed": {"rounds": 1, "num_sampled": 10}}
LINKS = [kind for kind in PLANTS if kind.startswith("link")]


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    found = Outside(tmp_path / "outside")
    yield found
    found.assert_untouched()


def begun(path: Path) -> Path:
    """A run that was stopped after its third round."""
    with pytest.raises(KeyboardInterrupt):
        simulate(CONFIG, out=path, dataset=digits(), observers=[stop_in(2)])
    return path


@contextmanager
def told_or_fine(place: Path) -> Iterator[None]:
    """What is called works, or says in which place something is wrong; what it reads there may be damaged besides."""
    said = str(place)
    try:
        yield
    except OSError as error:
        said = str(error)
    except ValueError:
        pass
    assert place.name in said


@pytest.fixture(scope="module")
def run_places(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("places")
    begun(path / "begun")
    shutil.copytree(path / "begun", path / "done")
    resume(path / "done", dataset=digits())
    found = places_in(path / "begun", path / "done")
    assert {".lock", "parts", "result.json", ".result.json.new", "parts/rounds-00000002.parquet"} <= set(found)
    return found


@pytest.mark.parametrize("kind", PLANTS)
def test_resuming_a_run(tmp_path: Path, outside: Outside, run_places: list[str], kind: str) -> None:
    original = begun(tmp_path / "begun")
    for name in run_places:
        path = tmp_path / "run"
        shutil.copytree(original, path)
        plant(path / name, kind, outside)
        with told_or_fine(path / name):
            resume(path, dataset=digits())
        outside.assert_untouched()
        shutil.rmtree(path)


@pytest.mark.parametrize("kind", PLANTS)
def test_a_new_run_into_a_folder_that_looks_empty(tmp_path: Path, outside: Outside, kind: str) -> None:
    for name in (".lock", ".config.toml.new", ".result.json.new"):
        path = tmp_path / name.strip(".")
        plant(path / name, kind, outside)
        with told_or_fine(path / name):
            simulate(CONFIG, out=path, dataset=digits())
        outside.assert_untouched()


def test_a_link_in_the_place_of_the_records_is_named_by_the_command(tmp_path: Path, outside: Outside) -> None:
    path = begun(tmp_path / "run")
    plant(path / "parts", "link to a folder", outside)
    told = CliRunner().invoke(app, ["run", "--resume", str(path)])
    assert told.exit_code == 2
    assert f"{path / 'parts'} is a link to '{outside.path / 'folder'}'" in told.stderr.replace("\n", "")
    assert told.stderr.count("\n") == 1


def grid_into(path: Path) -> None:
    outcome = run_grid(Grid.from_dict(GRID), out=path, name="g", engine=InThisProcess())
    for failed in outcome.failed.values():
        raise ValueError(failed.error)


@pytest.fixture(scope="module")
def failed_grid(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A grid whose one run failed, and the places in it before and after it is tried again."""
    path, whole = tmp_path_factory.mktemp("half"), tmp_path_factory.mktemp("whole")
    grid_into(whole)
    shutil.copytree(whole, path, dirs_exist_ok=True)
    (run,) = (path / "runs").iterdir()
    shutil.rmtree(run)
    fail(path, run.name)
    return path, places_in(path, whole)


@pytest.mark.parametrize("kind", PLANTS)
def test_going_on_with_a_grid(tmp_path: Path, outside: Outside, failed_grid: tuple[Path, list[str]], kind: str) -> None:
    original, places = failed_grid
    assert {"grids", "runs", ".lock", "grids/g.json", "results.csv"} <= set(places)
    for name in places:
        path = tmp_path / "grid"
        shutil.copytree(original, path)
        plant(path / name, kind, outside)
        with told_or_fine(path / name):
            grid_into(path)
        outside.assert_untouched()
        shutil.rmtree(path)


def test_a_failure_is_not_recorded_elsewhere(tmp_path: Path, outside: Outside) -> None:
    (run,) = Grid.from_dict(GRID).runs
    plant(tmp_path / "grid" / "runs" / run, "link to a folder", outside)
    with pytest.raises(OSError, match="is a link to"):
        fail(tmp_path / "grid", run)


def test_a_run_that_comes_back_from_a_cluster_does_not_go_elsewhere(tmp_path: Path, outside: Outside) -> None:
    archive = packed_folder(begun(tmp_path / "run"))
    for kind in LINKS:
        plant(tmp_path / "run", kind, outside)
        with pytest.raises(OSError, match="is a link to"):
            unpack_folder(archive, tmp_path / "run")
        remove(tmp_path / "run")
        plant(tmp_path / ".run.new", kind, outside)
        unpack_folder(archive, tmp_path / "run")
        assert packed_folder(tmp_path / "run") == archive
    plant(tmp_path / "run" / "parts", "link to a folder", outside)
    plant(tmp_path / "run" / "config.toml", "link to a file", outside)
    assert b"years of work" not in packed_folder(tmp_path / "run")


@pytest.mark.parametrize("kind", PLANTS)
def test_writing_a_report(tmp_path: Path, outside: Outside, failed_grid: tuple[Path, list[str]], kind: str) -> None:
    path = tmp_path / "grid"
    shutil.copytree(failed_grid[0], path)
    shutil.copytree(failed_grid[0], tmp_path / "other")
    build_report(tmp_path / "other", compact=tmp_path / "other" / "compact")
    places = places_in(tmp_path / "other" / "report", tmp_path / "other" / "compact")
    # Files all at once, since they are replaced; folders one by one, since they are refused.
    files = [name for name in places if "." in Path(name).name]
    for name in files:
        plant(path / "report" / name, kind, outside)
        plant(path / "compact" / name, kind, outside)
    made = build_report(path, compact=path / "compact")
    outside.assert_untouched()
    for file in (made.page, made.summary, *made.tables, *made.figures):
        assert file.is_file()
        assert not file.is_symlink()
    if kind in LINKS:
        for folder in ("report/tables", "report/figures", "report"):
            plant(path / folder, kind, outside)
            with pytest.raises(OSError, match=f"{Path(folder).name} is a link to"):
                build_report(path)
            remove(path / folder)


def test_compact_results_are_written_where_they_belong(tmp_path: Path, outside: Outside) -> None:
    grid_into(tmp_path / "grid")
    for name in ("results.parquet", ".curves.parquet.new"):
        plant(tmp_path / "compact" / name, "link to a file", outside)
    Results.read(tmp_path / "grid").write(tmp_path / "compact")
    assert len(Results.read(tmp_path / "compact").cells) == 1


@pytest.mark.parametrize("mnist", ["generated"], indirect=True)
@pytest.mark.parametrize("kind", PLANTS)
@pytest.mark.parametrize("behaviour", ["good", "cut", "no-range"])
def test_downloading(mnist: object, tmp_path: Path, outside: Outside, kind: str, behaviour: str) -> None:
    for name in mnist.files:  # type: ignore[attr-defined]
        plant(tmp_path / "data" / "MNIST" / "raw" / f"{name}.part", kind, outside)
        plant(tmp_path / "data" / "MNIST" / "raw" / name, kind, outside)
    paths = get(mnist, tmp_path / "data", behaviour)  # type: ignore[arg-type]
    assert {path.name: path.read_bytes() for path in paths} == mnist.files  # type: ignore[attr-defined]
    assert not any(path.is_symlink() for path in paths)


@pytest.mark.parametrize("mnist", ["generated"], indirect=True)
@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("folder", ["MNIST", "MNIST/raw"])
def test_downloading_into_a_folder_elsewhere(
    mnist: object, tmp_path: Path, outside: Outside, kind: str, folder: str
) -> None:
    plant(tmp_path / "data" / folder, kind, outside)
    with pytest.raises(DatasetError, match=f"{Path(folder).name} is a link to"):
        get(mnist, tmp_path / "data", "good")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", LINKS)
def test_unpacking_a_download(
    server: object, tmp_path: Path, outside: Outside, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = cifar_members()
    serve_archive(server, monkeypatch, archive_of(members), members)  # type: ignore[arg-type]
    plant(tmp_path / "one" / BATCHES[0], kind, outside)
    download_dataset("cifar10", tmp_path / "one")
    assert (tmp_path / "one" / BATCHES[0]).read_bytes() == members[BATCHES[0]]
    plant(tmp_path / "two" / Path(BATCHES[0]).parent, kind, outside)
    with pytest.raises(DatasetError, match="is a link to"):
        download_dataset("cifar10", tmp_path / "two")


@pytest.mark.parametrize("kind", LINKS)
def test_an_audit_trail_and_its_page(tmp_path: Path, outside: Outside, kind: str) -> None:
    trail, page = tmp_path / "a.jsonl", tmp_path / "a.html"
    plant(trail, kind, outside)
    with pytest.raises(OSError, match=r"a\.jsonl is a link to"):
        AuditLog(trail)
    remove(trail)
    log = AuditLog(trail)
    log.round(round_record(1))
    plant(page, kind, outside)
    with pytest.raises(OSError, match=r"a\.html is a link to"):
        audit(trail, page)
    plant(trail, kind, outside)
    with pytest.raises(OSError, match=r"a\.jsonl is a link to"):
        log.round(round_record(2))
    remove(trail)
    log.round(round_record(3))
    plant(tmp_path / "a.jsonl.1", kind, outside)
    AuditLog(trail, max_bytes=1).round(round_record(4))
    assert (tmp_path / "a.jsonl.2").is_file()


def test_the_picture_of_the_demo(tmp_path: Path, outside: Outside) -> None:
    plant(tmp_path / "x.png", "link to a file", outside)
    told = CliRunner().invoke(app, ["demo", "--rounds", "1", "--quiet", "--out", str(tmp_path / "x.png")])
    assert told.exit_code == 2
    assert "x.png is a link to" in told.stderr


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "disk")
    done = resume(begun(tmp_path / "runs"), dataset=digits())
    assert done.summary["weights_sha256"] == simulate(CONFIG, dataset=digits()).summary["weights_sha256"]
    assert (tmp_path / "disk" / "result.json").is_file()
