"""Compact results: the same as the run folders say, and never an exception for a run that is damaged."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from tests.report.small_grid import GRID, fail, small_grid

from fedra.experiments import GridFolder, Results, read_results
from fedra.experiments.results import CELL_KEY, CELLS, CURVES, SCORE_EDGES, SCORES
from fedra.experiments.treatment import TREATMENT_TYPES, treatment
from fedra.simulation import RunFolder


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("grid")
    small_grid(path)
    return path


@pytest.fixture
def folder(whole, tmp_path):
    """A copy to damage."""
    return shutil.copytree(whole, tmp_path / "copy")


def some_run(path, rule, attack="lie"):
    return sorted(run.name for run in (path / "runs").iterdir() if f"-{rule}-{attack}" in run.name)[0]


def test_cells_are_those_of_the_folder(whole):
    cells = Results.read(whole).cells
    pd.testing.assert_frame_equal(cells.drop(columns=list(TREATMENT_TYPES)), read_results(whole))
    for line in cells.drop_duplicates("run").to_dict("records"):
        clients = pd.read_parquet(whole / "runs" / line["run"] / "clients.parquet")
        expected = treatment({name: clients[name].to_numpy() for name in clients})
        assert {name: line[name] for name in TREATMENT_TYPES} == pytest.approx(expected, nan_ok=True)


def test_curves_are_what_the_rounds_add_up_to(whole):
    curves = Results.read(whole).curves
    assert set(curves["run"]) == {run.name for run in (whole / "runs").iterdir()}
    for rule in ("fedavg", "median", "fedra"):
        run = some_run(whole, rule)
        rounds = RunFolder(path=whole / "runs" / run).frame("rounds")
        lines = curves[curves["run"] == run].to_dict("records")
        assert [line["round"] for line in lines] == [2, 4]
        for line, (first, last) in zip(lines, ((0, 1), (2, 3)), strict=True):
            own = rounds[(rounds["round"] >= first) & (rounds["round"] <= last)]
            for name in ("caught", "missed", "wrongly_rejected"):
                assert line[name] == own[name].sum()
            assert line["accuracy"] == own["accuracy"].iloc[-1]
            errors = (own["estimated_malicious"] - own["num_malicious"]).abs().dropna()
            if rule == "fedra":
                assert line["estimate_error"] == pytest.approx(errors.mean())
            elif errors.empty:
                assert np.isnan(line["estimate_error"])


def test_scores_are_counted_against_the_median_of_their_round(whole):
    scores = Results.read(whole).scores
    run = some_run(whole, "fedra")
    clients = RunFolder(path=whole / "runs" / run).frame("clients")
    expected = {}
    for _, lines in clients.groupby("round"):
        for score, malicious in zip(lines["score"], lines["malicious"], strict=True):
            power = np.clip(np.log10(score / lines["score"].median()), SCORE_EDGES[0], SCORE_EDGES[-1])
            place = min(int(np.searchsorted(SCORE_EDGES, power, side="right")) - 1, len(SCORE_EDGES) - 2)
            expected[malicious, place] = expected.get((malicious, place), 0) + 1
    own = scores[scores["run"] == run]
    found = {
        (malicious, int(np.searchsorted(SCORE_EDGES, low))): count
        for malicious, low, count in zip(own["malicious"], own["low"], own["count"], strict=True)
    }
    assert found == expected
    assert np.allclose(own["high"] - own["low"], SCORE_EDGES[1] - SCORE_EDGES[0])
    assert not scores["run"].str.contains("fedavg").any()


def test_only_the_last_fifty_rounds_are_counted(tmp_path):
    values = {"rules": ["fedra"], "fixed": {"rounds": 53, "num_sampled": 12, "eval_every": 50}}
    small_grid(tmp_path, values=values)
    assert Results.read(tmp_path).scores["count"].sum() == 50 * 12


def test_files_say_the_same_as_the_folder(whole, tmp_path):
    results = Results.read(whole)
    results.write(tmp_path / "small")
    again = Results.read(tmp_path / "small")
    assert sorted(file.name for file in (tmp_path / "small").iterdir()) == sorted([CELLS, CURVES, SCORES])
    for name in ("cells", "curves", "scores"):
        pd.testing.assert_frame_equal(getattr(again, name), getattr(results, name))
    metadata = pq.read_metadata(tmp_path / "small" / CELLS)
    assert metadata.row_group(0).column(0).compression == "ZSTD"


def parts(results, chosen):
    """The results of these runs alone."""
    return Results(
        **{
            field.name: (frame := getattr(results, field.name))[frame["run"].isin(chosen)].reset_index(drop=True)
            for field in dataclasses.fields(results)
        }
    )


def in_order(frame):
    return frame.sort_values(list(frame.columns), ignore_index=True)


@pytest.mark.parametrize("overlap", [0, 2, 100])
def test_parts_added_up_are_the_whole(whole, overlap):
    results = Results.read(whole)
    runs = sorted(set(results.cells["run"]))
    half = len(runs) // 2
    later = parts(results, runs[max(0, half - overlap) :])
    found = later.added_to(parts(results, runs[:half]))
    for field in dataclasses.fields(results):
        pd.testing.assert_frame_equal(
            in_order(getattr(found, field.name)), in_order(getattr(results, field.name)), check_categorical=False
        )


def test_of_two_the_one_that_is_done_counts_and_of_two_done_the_later(whole):
    results = Results.read(whole)
    run = some_run(whole, "fedra")
    own = results.cells["run"] == run

    def changed(**values):
        cells = results.cells.assign(**{name: results.cells[name].mask(own, value) for name, value in values.items()})
        curves = results.curves.assign(caught=results.curves["caught"].mask(results.curves["run"] == run, 77))
        return dataclasses.replace(results, cells=cells, curves=curves)

    def of_run(found):
        caught = found.curves.loc[found.curves["run"] == run, "caught"]
        return found.cells.loc[found.cells["run"] == run, "final_accuracy"].iloc[0], (caught == 77).all()

    assert of_run(changed(final_accuracy=12.5).added_to(results)) == (12.5, True)
    before = of_run(results)
    assert of_run(results.added_to(changed(final_accuracy=12.5))) == before
    assert of_run(changed(final_accuracy=12.5, status="unfinished").added_to(results)) == before
    assert of_run(results.added_to(changed(final_accuracy=12.5, status="failed"))) == before


def test_a_cell_whose_run_is_done_in_another_grid_has_its_figures(whole):
    results = Results.read(whole)
    done = results.cells["status"] == "done"
    figures = [name for name in results.cells.columns if name not in (*CELL_KEY, "config")]
    lacking = results.cells.assign(grid="other", status="missing", final_accuracy=np.nan, class_accuracy=None)
    nothing = Results(cells=lacking, curves=results.curves[:0], scores=results.scores[:0])
    for found in (nothing.added_to(results), results.added_to(nothing)):
        cells = {name: part.sort_values("run", ignore_index=True) for name, part in found.cells.groupby("grid")}
        assert len(cells) == results.cells["grid"].nunique() + 1
        other = cells["other"].drop_duplicates("run", ignore_index=True)
        same = results.cells[done].drop_duplicates("run").sort_values("run", ignore_index=True)
        pd.testing.assert_frame_equal(
            other[other["run"].isin(same["run"])].reset_index(drop=True)[figures], same[figures]
        )
        assert (other.loc[~other["run"].isin(same["run"]), "status"] == "missing").all()


def test_where_the_data_lay_is_not_told(tmp_path):
    secret = str(tmp_path / "secret")
    small_grid(
        tmp_path, values={**GRID, "fixed": {**GRID["fixed"], "data_dir": secret}}, leave_out=("median", "seed1", "q10")
    )
    run = read_results(tmp_path)["run"][lambda runs: runs.str.contains("median")].iloc[0]
    fail(tmp_path, run, f"OSError: no data in {secret}/x")
    results = Results.read(tmp_path)
    assert "secret" not in results.cells.to_csv()
    assert "OSError: no data in data_dir/x" in set(results.cells["error"].dropna())
    assert "data_dir" not in json.loads(results.cells["config"].iloc[0])
    results.write(tmp_path / "small")
    assert b"secret" not in b"".join(file.read_bytes() for file in (tmp_path / "small").iterdir())


def test_progress_is_told(whole):
    told = []
    Results.read(whole, lambda done, of: told.append((done, of)))
    count = len(list((whole / "runs").iterdir()))
    assert told == [(number, count) for number in range(1, count + 1)]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"final_accuracy": 3}'])
def test_a_damaged_result_is_a_failed_run(folder, text):
    run = some_run(folder, "fedra")
    (folder / "runs" / run / "result.json").write_text(text, encoding="utf-8")
    results = Results.read(folder)
    own = results.cells[results.cells["run"] == run]
    assert set(own["status"]) == {"failed"}
    assert own["error"].str.startswith("its result cannot be read").all()
    assert (results.cells["status"] == "done").sum() == len(results.cells) - len(own)


def test_a_figure_that_is_no_number_is_a_failed_run(folder):
    file = folder / "runs" / some_run(folder, "fedra") / "result.json"
    result = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**result, "final_accuracy": "good"}), encoding="utf-8")
    cells = Results.read(folder).cells
    assert cells.set_index("run").loc[[file.parent.name], "status"].unique().tolist() == ["failed"]


@pytest.mark.parametrize("name", ["rounds", "clients"])
def test_damaged_records_are_told_and_cost_only_themselves(folder, name):
    run = some_run(folder, "fedra")
    file = folder / "runs" / run / f"{name}.parquet"
    file.write_bytes(file.read_bytes()[:100])
    results = Results.read(folder)
    own = results.cells[results.cells["run"] == run]
    assert set(own["status"]) == {"done"}
    assert own["error"].str.startswith(f"its {name} cannot be read").all()
    assert (run in set(results.scores["run"])) == (name == "rounds")
    assert (run in set(results.curves["run"])) == (name == "clients")
    assert len(set(results.curves["run"])) >= len(list((folder / "runs").iterdir())) - 1


def test_records_without_a_column_are_damaged(folder):
    run = some_run(folder, "median")
    pd.DataFrame({"round": [0, 1]}).to_parquet(folder / "runs" / run / "rounds.parquet")
    cells = Results.read(folder).cells
    assert cells.set_index("run").loc[[run], "error"].notna().all()


def test_an_unfinished_run_is_shown_as_far_as_it_goes(folder):
    run = some_run(folder, "fedra")
    path = folder / "runs" / run
    (path / "parts").mkdir()
    for name in ("rounds", "clients"):
        frame = pd.read_parquet(path / f"{name}.parquet")
        (path / f"{name}.parquet").unlink()
        frame[frame["round"] < 2].to_parquet(path / "parts" / f"{name}-00000002.parquet")
    (path / "result.json").unlink()
    results = Results.read(folder)
    assert results.cells.set_index("run").loc[[run], "status"].unique().tolist() == ["unfinished"]
    assert results.curves[results.curves["run"] == run]["round"].tolist() == [2]
    assert results.scores[results.scores["run"] == run]["count"].sum() == 2 * 16


def test_an_empty_run_folder_and_a_missing_one_are_no_error(folder):
    empty, missing = some_run(folder, "fedra"), some_run(folder, "median")
    shutil.rmtree(folder / "runs" / empty)
    (folder / "runs" / empty).mkdir()
    shutil.rmtree(folder / "runs" / missing)
    results = Results.read(folder)
    status = results.cells.drop_duplicates("run").set_index("run")["status"]
    assert (status[empty], status[missing]) == ("unfinished", "missing")
    assert not {empty, missing} & set(results.curves["run"])


def test_a_folder_of_nothing_is_told(tmp_path):
    with pytest.raises(ValueError, match="holds no results: neither grids/ and runs/"):
        Results.read(tmp_path)
    (tmp_path / "grids").mkdir()
    with pytest.raises(ValueError, match="not a grid's folder"):
        Results.read(tmp_path)


@pytest.mark.parametrize("text", ["{", "{}", "7", "[" * 5000])
def test_a_damaged_grid_is_told(tmp_path, text):
    (tmp_path / "grids").mkdir()
    (tmp_path / "grids" / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"grids/x\.json cannot be read"):
        Results.read(tmp_path)


@pytest.mark.parametrize("text", ["[1]", "[{}]"])
def test_a_damaged_cell_is_a_failed_one(tmp_path, text):
    (tmp_path / "grids").mkdir()
    (tmp_path / "grids" / "x.json").write_text(text, encoding="utf-8")
    cells = Results.read(tmp_path).cells
    assert cells["status"].tolist() == ["failed"]
    assert cells["error"].tolist() == ["cell 1 of grid x cannot be read: dataset is missing"]


def test_compact_files_that_are_not_whole_are_told(whole, tmp_path):
    Results.read(whole).write(tmp_path)
    (tmp_path / SCORES).unlink()
    with pytest.raises(ValueError, match=r"scores\.parquet cannot be read"):
        Results.read(tmp_path)
    pd.DataFrame({"run": ["x"]}).to_parquet(tmp_path / SCORES)
    with pytest.raises(ValueError, match=r"scores\.parquet cannot be read \(no column malicious, low, high, count\)"):
        Results.read(tmp_path)


def test_results_that_nothing_was_run_for(tmp_path):
    small_grid(tmp_path, leave_out=("seed",))
    results = Results.read(tmp_path)
    assert set(results.cells["status"]) == {"missing"}
    assert (len(results.curves), len(results.scores)) == (0, 0)
    results.write(tmp_path / "small")
    pd.testing.assert_frame_equal(Results.read(tmp_path / "small").cells, results.cells)
    assert len(GridFolder(path=tmp_path).frame()) == len(results.cells)


def test_files_of_earlier_versions_have_no_treatment(whole, tmp_path):
    results = Results.read(whole)
    added = ["attack_success", "auc", "class_accuracy", "worst_class_accuracy", *TREATMENT_TYPES]
    dataclasses.replace(results, cells=results.cells.drop(columns=added)).write(tmp_path)
    cells = Results.read(tmp_path).cells
    assert not set(TREATMENT_TYPES) & set(cells.columns)
    pd.testing.assert_frame_equal(cells, results.cells[cells.columns])


def test_files_of_an_earlier_version_are_read(whole, tmp_path):
    """`wrongly_rejected` was called `wronged` before."""
    results = Results.read(whole)
    counted = results.curves.assign(wrongly_rejected=np.arange(len(results.curves)))
    results = dataclasses.replace(results, curves=counted)
    results.write(tmp_path)
    old = pd.read_parquet(tmp_path / CURVES).rename(columns={"wrongly_rejected": "wronged"})
    old.to_parquet(tmp_path / CURVES)
    pd.testing.assert_frame_equal(Results.read(tmp_path).curves, results.curves)
    old.assign(wrongly_rejected=3).to_parquet(tmp_path / CURVES)
    assert set(Results.read(tmp_path).curves["wrongly_rejected"]) == {3}, "where both are there, the new one counts"
    old.drop(columns="wronged").to_parquet(tmp_path / CURVES)
    with pytest.raises(ValueError, match=r"curves\.parquet cannot be read \(no column wrongly_rejected\); "):
        Results.read(tmp_path)
    old.assign(wronged=-1).to_parquet(tmp_path / CURVES)
    damaged = Results.read(tmp_path)
    assert damaged.curves.empty
    assert damaged.cells["error"].str.contains("wrongly_rejected -1").all()


def test_the_committed_results_are_read():
    committed = Path(__file__).parents[2] / "results"
    stored = pq.read_table(committed / CURVES).to_pandas()
    former = "wronged" if "wronged" in stored else "wrongly_rejected"
    results = Results.read(committed)
    assert list(results.curves["wrongly_rejected"]) == list(stored[former])
    assert len(results.cells) > 100
    assert (results.cells["status"] == "done").all()
