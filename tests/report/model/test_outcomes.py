"""The lines of results as values."""

import dataclasses

import pandas as pd
import pytest
from tests.report import synthetic

from fedra.report import ReportData
from fedra.report.model.outcomes import entry_of, in_order, unique, wrongly_rejected


@pytest.fixture(scope="module")
def data():
    return ReportData.of(synthetic.results())


def test_every_line_is_an_outcome(data):
    cells = data.results.cells
    assert [outcome.run for outcome in data.outcomes] == cells["run"].tolist()
    done = [outcome for outcome in data.outcomes if outcome.status == "done"]
    assert [outcome.accuracy for outcome in done] == cells.loc[cells["status"] == "done", "final_accuracy"].tolist()
    assert all(outcome.accuracy is None for outcome in data.outcomes if outcome.status != "done")


def test_a_run_counts_once(data):
    assert len(data.runs) == data.results.cells["run"].nunique() < len(data.outcomes)
    assert sum(data.counts.values()) == len(data.runs)
    assert data.counts["failed"] == len(data.errors) == 2
    assert set(data.errors.values()) == {synthetic.ERROR}


def test_measures_are_means_of_the_runs_that_have_them(data):
    chosen = [o for o in data.outcomes if (o.rule, o.attack, o.alpha_q, o.setting) == ("fedra", "lie", 10.0, "fixed")]
    entry = entry_of(chosen)
    assert entry.measures == {
        "filtering_precision": 0.91,
        "filtering_recall": 0.84,
        "mean_abs_error_malicious": 1.25,
    }
    without = [dataclasses.replace(outcome, figures={}) for outcome in chosen]
    assert entry_of([*without[:1], *chosen[1:]]).measures == entry.measures
    assert entry_of(without).measures == {}


def test_of_two_runs_for_one_seed_the_last_that_is_done_counts(data):
    first = data.outcomes[0]
    later = dataclasses.replace(first, run="later", accuracy=1.0)
    failed = dataclasses.replace(first, run="failed", accuracy=None, status="failed")
    assert entry_of([first, later, failed]).runs == ("later",)
    assert entry_of([failed, first]).runs == (first.run,)
    assert entry_of([]) is None


@pytest.mark.parametrize("name", ["wrongly_rejected", "wronged"])
def test_results_of_earlier_versions_are_read(name):
    assert wrongly_rejected(pd.DataFrame({name: [1, 2]})).tolist() == [1, 2]


def test_order():
    assert unique("abcab") == ["a", "b", "c"]
    assert in_order("dcab", "abx") == ["a", "b", "d", "c"]
