"""A whole report: all files, the same from run folders and from compact files, whatever state the runs are in."""

import shutil
import sys

import pytest
from fedra.report.drawing import require_matplotlib
from tests.report.paper_results import grid_cells, paper_results
from tests.report.small_grid import GRID, fail, small_grid

from fedra.experiments import Results
from fedra.report import build_report


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A paper's grid with a study beside it; one run failed, one was not started."""
    path = tmp_path_factory.mktemp("grid")
    grid = small_grid(path, leave_out=("fedavg-lie-q10-seed1", "median-lie-seed1"))
    study = {"rules": [{"rule": "fedra", "label": "a|b_$&"}], "attacks": ["lie"], "fixed": GRID["fixed"]}
    small_grid(path, name="study-x", values=study)
    fail(path, next(run for run in grid.runs if "median-lie-seed1" in run), "RuntimeError: <b>lost</b> | all")
    return path


@pytest.fixture(scope="module")
def report(whole):
    return build_report(whole, compact=whole.parent / "compact-of-report")


def test_what_is_written(whole, report):
    assert report.page == whole / "report" / "report.html"
    assert "<html" in report.page.read_text(encoding="utf-8")
    names = {file.name for file in report.tables}
    assert {"all.csv", "table4-digits.md", "table4-digits.csv", "table4-digits.tex", "table5-digits.md"} <= names
    assert "study-x-digits-iid-dynamic.tex" in names
    assert "figure1-digits-iid-dynamic.csv" in names
    assert all(file.is_file() and file.stat().st_size for file in (*report.tables, *report.figures))
    assert {file.name for file in report.figures} >= {"figure1.png", "figure1.svg"}
    assert report.missing == ("figure2", "figure4", "figure5", "figure6")
    assert report.counts["failed"] == 1
    assert report.counts["missing"] == 1


def test_the_summary_has_it_all(report):
    text = report.summary.read_text(encoding="utf-8")
    assert r"RuntimeError: &lt;b&gt;lost&lt;/b&gt; \| all" in text
    assert "1 failed, 1 missing" in text
    assert r"a\|b\_\$&amp;" in text
    assert "No results for figure2, figure4, figure5, figure6." in text
    assert "![Figure 1: accuracy without attack, by family of rules.](figures/figure1.png)" in text
    assert "Mean error of the estimated number of malicious clients" in text


def test_compact_files_make_the_same_report(report, tmp_path):
    again = build_report(report.compact, tmp_path)
    ours = [report.summary, *report.tables, *report.figures]
    theirs = [again.summary, *again.tables, *again.figures]
    assert [file.name for file in ours] == [file.name for file in theirs]
    for first, second in zip(ours, theirs, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name
    assert again.counts == report.counts
    assert again.compact is None


def test_damaged_runs_cost_only_themselves(whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "copy", ignore=shutil.ignore_patterns("report"))
    runs = sorted(run for run in (folder / "runs").iterdir() if (run / "result.json").is_file())
    (runs[0] / "result.json").write_text("{", encoding="utf-8")
    (runs[1] / "clients.parquet").write_bytes(b"PAR1")
    (runs[2] / "rounds.parquet").unlink()
    made = build_report(folder, figures=False)
    assert made.counts["failed"] == 2
    assert (made.figures, made.missing) == ((), ())
    text = made.summary.read_text(encoding="utf-8")
    assert "its result cannot be read" in text
    assert "its clients cannot be read" in text


def test_nothing_was_run_yet(tmp_path):
    small_grid(tmp_path, leave_out=("seed",))
    made = build_report(tmp_path)
    assert set(made.counts) == {"missing"}
    assert made.figures == ()
    assert "missing" in made.summary.read_text(encoding="utf-8")


def test_hundreds_of_cells_at_once(tmp_path):
    cells = grid_cells(datasets=("mnist",), num_seeds=2)
    assert len(cells) > 400
    paper_results(cells).write(tmp_path)
    told = []
    made = build_report(tmp_path, figures=False, progress=lambda *step: told.append(step))
    assert sum(share.columns for share in made.agreement) == 18
    assert (tmp_path / "report" / "tables" / "winners.csv").is_file()
    assert made.page.stat().st_size < 5_000_000
    assert told[-1] == ("writing the page", 1, 1)


def test_an_empty_grid_is_told(tmp_path):
    (tmp_path / "grids").mkdir()
    (tmp_path / "grids" / "x.json").write_text("[]", encoding="utf-8")
    with pytest.raises(ValueError, match="has no cells"):
        build_report(tmp_path)
    assert not (tmp_path / "report").exists()


def test_missing_matplotlib_is_told_before_any_work(whole, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r'pip install "fedra\[report\]"'):
        require_matplotlib()
    with pytest.raises(ValueError, match="--no-figures"):
        build_report(whole, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert build_report(whole, tmp_path / "out", figures=False).page.is_file()


def test_results_are_read_once_written(report):
    assert set(Results.read(report.compact).cells["grid"]) == {"paper-quick-small", "study-x"}
