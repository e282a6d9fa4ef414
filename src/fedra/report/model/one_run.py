"""One run by itself: what it was, how far it came, and whom its rule rejected."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fedra.experiments.cell_table import cell_problem
from fedra.experiments.jobs import ERROR
from fedra.experiments.results import SCORE_EDGES
from fedra.report.model import DONE
from fedra.report.model.outcomes import FIGURES, Outcome, wrongly_rejected
from fedra.simulation import RunFolder, SimulationConfig, read_toml
from fedra.simulation.run_folder import CONFIG
from fedra.untrusted import MEBIBYTE, clipped, encodable, parsed_json, read_bounded

SCORED_ROUNDS = 50
_LARGEST_ERROR = 16 * MEBIBYTE
_LONGEST_ERROR = 2_000
_LABELS = ("dataset", "partition", "setting", "rule", "attack", "alpha_q", "seed")
_HIDDEN = ("data_dir",)
# Points that a chart over rounds has at most; more could not be told apart.
_MOST_POINTS = 250


@dataclass(frozen=True, kw_only=True, eq=False)
class OneRun:
    """A run's folder, read.

    Attributes:
        outcome: what it was and how it ended; its grid is empty.
        rounds: a line for each round that is recorded.
        clients: a line for each client in each of these rounds.
        result: the figures of a run that is done, empty of any other.
    """

    outcome: Outcome
    rounds: pd.DataFrame
    clients: pd.DataFrame
    result: Mapping[str, Any]

    @property
    def planned_rounds(self) -> int:
        """How many rounds it has when it is done."""
        return int(self.outcome.config.get("rounds", SimulationConfig.rounds))

    @cached_property
    def measured(self) -> pd.DataFrame:
        """How many rounds were done (`round`) when `accuracy` was measured."""
        found = self.rounds.dropna(subset=["accuracy"])
        return pd.DataFrame({"round": found["round"] + 1, "accuracy": found["accuracy"]})

    @cached_property
    def totals(self) -> dict[str, int]:
        """Over all rounds: how many malicious and honest clients took part, and how many of each were rejected."""
        malicious, sampled = (int(self.rounds[name].sum()) for name in ("num_malicious", "num_sampled"))
        return {
            "malicious": malicious,
            "honest": sampled - malicious,
            "caught": int(self.rounds["caught"].sum()),
            "wrongly_rejected": int(wrongly_rejected(self.rounds).sum()),
        }

    @cached_property
    def per_round(self) -> tuple[int, pd.DataFrame]:
        """How many rounds are one point, and for each point the means of what happened in a round.

        Columns: `round`, the last of its rounds, `malicious`, `caught`, `wrongly_rejected`, and `estimated`, which is
        missing where the rule did not estimate.
        """
        frame = pd.DataFrame(
            {
                "round": self.rounds["round"] + 1,
                "malicious": self.rounds["num_malicious"].astype("float64"),
                "caught": self.rounds["caught"].astype("float64"),
                "wrongly_rejected": wrongly_rejected(self.rounds).astype("float64"),
                "estimated": self.rounds["estimated_malicious"].astype("float64"),
            }
        )
        size = max(1, -(-len(frame) // _MOST_POINTS))
        if size == 1:
            return 1, frame
        groups = frame.groupby(np.arange(len(frame)) // size)
        return size, groups.mean().assign(round=groups["round"].last()).reset_index(drop=True)

    @cached_property
    def rejected_clients(self) -> pd.DataFrame:
        """A line for each client that took part, the most often rejected first.

        Columns: `client`, `malicious`, `rounds` it took part in, `rejected` in how many of them, `true_quantity`, the
        largest `claimed_quantity`, and the `reason` of the last rejection.
        """
        if self.clients.empty:
            return pd.DataFrame(columns=["client", "malicious", "rounds", "rejected", "reason"])
        ordered = self.clients.assign(rejected=~self.clients["kept"])
        found = ordered.groupby("client").agg(
            malicious=("malicious", "max"),
            rounds=("round", "size"),
            rejected=("rejected", "sum"),
            true_quantity=("true_quantity", "max"),
            claimed_quantity=("claimed_quantity", "max"),
        )
        reasons = ordered[ordered["rejected"]].groupby("client")["reason"].last()
        found["reason"] = reasons.reindex(found.index).fillna("")
        return found.reset_index().sort_values(["rejected", "client"], ascending=[False, True], ignore_index=True)

    @cached_property
    def scores(self) -> dict[str, npt.NDArray[np.int64]]:
        """Scores of the last 50 rounds, by bin of log10(score / median score of the round); empty: there are none."""
        late = self.clients[np.isfinite(self.clients["score"].to_numpy(dtype=np.float64))]
        late = late[late["round"] > self.rounds["round"].max() - SCORED_ROUNDS] if len(late) else late
        if late.empty:
            return {}
        medians = late.groupby("round")["score"].transform("median").to_numpy()
        scores = late["score"].to_numpy()
        powers = np.full(len(late), SCORE_EDGES[0])
        with np.errstate(over="ignore", invalid="ignore"):
            ratios = np.divide(scores, medians, out=np.zeros(len(late)), where=medians > 0)
            np.log10(ratios, out=powers, where=ratios > 0)
        powers = np.clip(powers, SCORE_EDGES[0], SCORE_EDGES[-1])
        malicious = late["malicious"].to_numpy(dtype=bool)
        return {
            "honest": np.histogram(powers[~malicious], bins=SCORE_EDGES)[0],
            "malicious": np.histogram(powers[malicious], bins=SCORE_EDGES)[0],
        }


def is_run(path: Path) -> bool:
    """Whether a folder is that of one run."""
    return os.path.lexists(path / CONFIG)


def read_run(path: Path) -> OneRun:
    """Read a run's folder; code that its configuration names is not imported.

    Raises:
        ValueError: where a file makes no sense, with its name.
    """
    config = {key: value for key, value in read_toml(path / CONFIG).items() if key not in _HIDDEN}
    defaults = {known.name: known.default for known in fields(SimulationConfig)}
    labels = {name: config.get(name, defaults[name]) for name in _LABELS}
    if problem := cell_problem({**labels, "run": "run", "config": config}):
        raise ValueError(f"{path / CONFIG} cannot be read: {problem}; put the file back, or run it again")
    folder = RunFolder(path=path)
    result, frames = folder.result(), folder.frames()
    error = _error(path / ERROR) if result is None else ""
    status = DONE if result is not None else "failed" if error else "unfinished"
    known = {name: None if result is None else result.get(name) for name in FIGURES}
    figures = {name: float(value) for name, value in known.items() if value is not None}
    outcome = Outcome(
        grid="",
        **labels,
        run=clipped(encodable(path.resolve().name), 100) or "run",
        status=status,
        error=error,
        accuracy=figures.get("final_accuracy"),
        figures=figures,
        num_clients=None if result is None else int(result["num_clients"]),
        config=config,
    )
    return OneRun(outcome=outcome, rounds=frames["rounds"], clients=frames["clients"], result=result or {})


def _error(path: Path) -> str:
    """Return the error that a grid has left in the run's folder, empty where it has left none."""
    try:
        content = parsed_json(read_bounded(path, _LARGEST_ERROR))
        text = content.get("error") if isinstance(content, dict) else None
        return clipped(text, _LONGEST_ERROR) if isinstance(text, str) else f"{path.name} has no text named error"
    except FileNotFoundError:
        return ""
    except ValueError as error:
        return f"its error cannot be read: {clipped(error)}"


def facts(run: OneRun) -> list[tuple[str, str]]:
    """Return the figures of a run, each as what it is and its text; those that it does not have are left out."""
    figures, result = run.outcome.figures, run.result
    found: list[tuple[str, str | None]] = [
        ("status", run.outcome.status),
        ("rounds", f"{len(run.rounds):,} of {run.planned_rounds:,}"),
        ("accuracy at the end" if run.outcome.status == DONE else "last accuracy", _last_accuracy(run)),
        ("best accuracy", _best_accuracy(run)),
        ("clients", f"{result['num_clients']:,}" if result else None),
        ("of these malicious", f"{result['num_malicious_clients']:,}" if result else None),
        ("precision of rejections", _digits(figures.get("filtering_precision"), 3)),
        ("recall of rejections", _digits(figures.get("filtering_recall"), 3)),
        ("error of the estimated number of malicious clients", _digits(figures.get("mean_abs_error_malicious"), 2)),
        ("rounds without an update", f"{int((run.rounds['note'] != '').sum()):,}"),
    ]
    return [(name, text) for name, text in found if text is not None]


def explanation(run: OneRun) -> str:
    """Return what the figures of one run can and cannot say."""
    unfinished = (
        ""
        if run.outcome.status == DONE
        else f"This run is {run.outcome.status}: the figures are those of its first {len(run.rounds):,} rounds. "
    )
    return (
        f"{unfinished}One run with seed {run.outcome.seed}; runs with other seeds show how much of it is chance. "
        "Accuracy is measured on the test data. It is known who is malicious because the federation is simulated; a "
        "real server does not know it."
    )


def rejection_text(run: OneRun) -> str:
    """Return in a sentence or two whom the rule rejected."""
    totals = run.totals
    rejected = totals["caught"] + totals["wrongly_rejected"]
    if not len(run.rounds):
        return "No round is recorded yet."
    if not rejected:
        return (
            f"The rule rejected nobody in {len(run.rounds):,} rounds, in which {totals['malicious']:,} of "
            f"{totals['malicious'] + totals['honest']:,} replies came from malicious clients. A rule that gives "
            "weights, or combines all updates coordinate by coordinate, may withstand an attack without rejecting "
            "anybody; the accuracy shows whether it does."
        )
    return (
        f"In {len(run.rounds):,} rounds the rule rejected {totals['caught']:,} of {totals['malicious']:,} replies of "
        f"malicious clients, and wrongly {totals['wrongly_rejected']:,} of {totals['honest']:,} of honest ones."
    )


def _last_accuracy(run: OneRun) -> str | None:
    return None if run.measured.empty else f"{run.measured['accuracy'].iloc[-1]:.2f} %"


def _best_accuracy(run: OneRun) -> str | None:
    if run.measured.empty:
        return None
    best = run.measured.iloc[int(run.measured["accuracy"].to_numpy().argmax())]
    return f"{best['accuracy']:.2f} % after round {int(best['round']):,}"


def _digits(value: float | None, digits: int) -> str | None:
    return None if value is None else f"{value:.{digits}f}"
