"""Cells of the contest with made-up figures: what `fedra contest` leaves, without a run."""

import dataclasses
import zlib

import numpy as np
import pandas as pd
from tests.paper.paper_results import paper_results

from fedra.contest import Contest
from fedra.experiments import Results
from fedra.report import ReportData


def contest_results(*contests, **others):
    """Results of some contests in one folder."""
    parts = [paper_results(contest.grid.cells, grid=contest.name, **others) for contest in contests or (Contest(),)]
    cells = pd.concat([_with_treatment(part.cells) for part in parts], ignore_index=True)
    curves = pd.concat([part.curves for part in parts], ignore_index=True)
    scores = pd.concat([part.scores for part in parts], ignore_index=True)
    return Results(cells=cells, curves=curves, scores=scores)


def contest_data(*contests, **others):
    """The same, as a report takes it."""
    return ReportData.of(contest_results(*contests, **others))


def with_accuracies(data, accuracy):
    """The data with other accuracies: a function of an outcome."""
    outcomes = tuple(dataclasses.replace(outcome, accuracy=accuracy(outcome)) for outcome in data.outcomes)
    return dataclasses.replace(data, outcomes=outcomes)


def _with_treatment(cells):
    shares = np.array([zlib.crc32(run.encode()) % 100 / 100 for run in cells["run"]])
    attacked = (cells["attack"] != "none").to_numpy()
    weighed = ~cells["rule"].isin(["median", "nnm+trimmed-mean"]).to_numpy()
    return cells.assign(
        malicious_weight=np.where(attacked & weighed, shares / 2, np.nan),
        honest_dropped=shares / 4,
        honest_data_dropped=shares / 5,
        honest_silenced=np.where(weighed, shares / 3, np.nan),
        attack_success=np.where(cells["attack"] == "backdoor", 100 * shares, np.nan),
    )
