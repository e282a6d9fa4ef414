"""A whole report: all files, the same from run folders and from compact files, whatever state the runs are in."""

import re
import shutil
import sys
from dataclasses import replace

import pytest
from tests.report.small_grid import GRID, fail, small_grid

from fedra.experiments import Results
from fedra.report import Extension, Reference, ReportData, build_report, grid_tables
from fedra.report.appearance import DISPLAY_NAMES
from fedra.report.figures import Drawing, require_matplotlib
from fedra.report.figures.curves import curve_drawing
from fedra.report.figures.drawing import panels, styled


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A grid with another beside it; one run failed, one was not started."""
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
    stems = ("small-digits-iid-dynamic", "study-x-digits-iid-dynamic")
    assert names == {"all.csv", *(f"{stem}.{kind}" for stem in stems for kind in ("md", "csv", "tex"))}
    assert all(file.is_file() and file.stat().st_size for file in (*report.tables, *report.figures))
    drawn = {f"curves-{stem}.{kind}" for stem in stems for kind in ("png", "svg", "pdf")}
    assert {file.name for file in report.figures} == drawn
    assert (report.missing, report.notes, report.values) == ((), (), {})
    assert report.counts["failed"] == 1
    assert report.counts["missing"] == 1


def test_the_summary_has_it_all(report):
    text = report.summary.read_text(encoding="utf-8")
    assert r"RuntimeError: &lt;b&gt;lost&lt;/b&gt; \| all" in text
    assert "1 failed, 1 missing" in text
    assert r"a\|b\_\$&amp;" in text
    assert text.startswith("# Results of small, study-x\n")
    assert "](figures/curves-small-digits-iid-dynamic.png)" in text
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


def test_what_a_reference_adds(whole, tmp_path):
    drawn = []

    def picture(_data, tables):
        drawn.append([table.key for table in tables])
        with styled():
            figure, _ = panels(1, 1, width=2, height=2)
        yield Drawing(key="extra", caption="An extra figure.", figure=figure)

    def extension(data):
        return Extension(
            title="Compared",
            names={**DISPLAY_NAMES, "fedavg": "Average"},
            grids=frozenset({"study-x"}),
            heading="Their tables",
            tables=grid_tables(data, without=["small"]),
            figures={"extra": picture, "nothing": lambda _data, _tables: ()},
            files={"extra.csv": "a\n"},
            notes=("so it is",),
            values={"so": 1},
        )

    def published(outcome):
        return 50.0 if outcome.attack == "lie" else None

    reference = Reference(source="Somebody", published=published, extension=extension)
    made = build_report(whole, tmp_path, reference=reference)
    assert drawn == [["study-x-digits-iid-dynamic", "small-digits-iid-dynamic"]]
    assert (made.missing, made.notes, made.values) == (("nothing",), ("so it is",), {"so": 1})
    assert "extra.csv" in {file.name for file in made.tables}
    text = made.summary.read_text(encoding="utf-8")
    assert text.startswith("# Compared\n")
    assert re.findall("^## (.*)$", text, re.MULTILINE) == ["Their tables", "Other comparisons", "Figures"]
    assert "| Average |" in text
    assert "(50.00, " in text
    page = made.page.read_text(encoding="utf-8")
    assert 'alt="An extra figure."' in page
    assert "Published: Somebody." in page


def test_own_rules_stand_out_in_the_curves(whole):
    data = ReportData.of(Results.read(whole))
    (table,) = grid_tables(data, without=["study-x"])
    own = replace(table, rows=(*table.rows[:1], replace(table.rows[1], own=True), *table.rows[2:]))
    lines = {}
    for name, made in (("plain", table), ("own", own)):
        axes = curve_drawing(made, data.curves).figure.axes[1]
        lines[name] = [(line.get_linewidth(), line.get_zorder(), line.get_alpha()) for line in axes.lines]
    assert [row.rule for row in table.rows] == ["fedavg", "median", "fedra"]
    assert max(lines["plain"]) == lines["plain"][2]
    assert max(lines["own"]) == lines["own"][1]
    assert lines["own"][0] == lines["own"][2] < lines["plain"][0]


def test_results_are_read_once_written(report):
    assert set(Results.read(report.compact).cells["grid"]) == {"small", "study-x"}
