"""All cells of the paper's tables and figures with made-up figures: what `fedra paper all` leaves, without a run."""

import json
import zlib

import numpy as np
import pandas as pd

from fedra.experiments import Results
from fedra.experiments.results import CURVE_TYPES, SCORE_EDGES
from fedra.paper import Reproduction
from fedra.report import ReportData
from fedra.rules import RULES, Family

FIGURES = ("filtering_precision", "filtering_recall", "mean_abs_error_malicious")
_CURVE_COLUMNS = list(CURVE_TYPES)
_SCORE_COLUMNS = ["run", "malicious", "low", "high", "count"]
_WORDS = ("grid", "dataset", "partition", "setting", "rule", "attack", "run", "status", "error", "config")


def grid_cells(**choice):
    """The cells of a reproduction."""
    return Reproduction(**choice).grid().cells


def paper_results(cells, *, grid="paper-quick-x", drop=(), statuses=None):
    """Results of cells, with accuracies from `accuracy_of`; `statuses` are by run, for those not done."""
    lines, curves, scores = [], [], []
    for cell in cells:
        if cell.run in drop:
            continue
        status = (statuses or {}).get(cell.run, "done")
        done = status == "done"
        lines.append(
            {
                **cell.labels,
                "grid": grid,
                "run": cell.run,
                "status": status,
                "error": "RuntimeError: lost" if status == "failed" else None,
                "config": json.dumps({k: v for k, v in cell.config.to_dict().items() if v is not None}),
                "final_accuracy": accuracy_of(cell) if done else np.nan,
                "num_clients": 3060 if done else None,
                **dict.fromkeys(FIGURES, np.nan),
            }
        )
    for cell in {cell.run: cell for cell in cells}.values():
        if (statuses or {}).get(cell.run, "done") in ("done", "unfinished"):
            curves += _curve(cell)
            if cell.config.rule == "fedra":
                scores += _scores(cell)
    types = {**dict.fromkeys(_WORDS, "string"), "alpha_q": "float64", "seed": "Int64", "num_clients": "Int64"}
    return Results(
        cells=pd.DataFrame(lines).astype(types),
        curves=pd.DataFrame(curves, columns=_CURVE_COLUMNS).astype({"run": "string"}),
        scores=pd.DataFrame(scores, columns=_SCORE_COLUMNS).astype({"run": "string"}),
    )


def paper_data(cells, **others):
    """The same, as a report takes it."""
    return ReportData.of(paper_results(cells, **others))


def accuracy_of(cell):
    """A figure between 0 and 100 that depends on the run and nothing else, as bad as the paper's rules are."""
    family = RULES[cell.config.rule].family if cell.config.rule in RULES else None
    noise = zlib.crc32(cell.run.encode()) % 1000 / 400
    level = {"cifar10": 58.0, "huffpost": 45.0}.get(cell.dataset, 96.5) - 6 * (cell.partition == "non-iid")
    if cell.config.attack != "none":
        if family is Family.AWARE and cell.config.alpha_q:
            level = {"label-flip": 0.7 * level, "lie": 18.0, "optimize": 10.0}.get(cell.attack, 20.0)
        elif family is Family.IGNORANT:
            level *= 0.93
        elif cell.rule == "truncate":
            level *= 0.88
    return level + noise - 3 * ("estimated" in cell.rule)


def _curve(cell):
    last, every = cell.config.rounds, cell.config.eval_every
    end = accuracy_of(cell)
    return [
        {
            "run": cell.run,
            "round": number,
            "accuracy": end - (end - 10) * np.exp(-5 * number / last) * (number != last),
            "caught": 4,
            "missed": 1,
            _CURVE_COLUMNS[5]: 2,
            "estimate_error": 1.5 if cell.config.rule == "fedra" else np.nan,
        }
        for number in range(every, last + 1, every)
    ]


def _scores(cell):
    rng = np.random.default_rng(zlib.crc32(cell.run.encode()))
    lines = []
    for malicious, centre, size in ((False, 0.1, 2250), (True, 1.1, 250)):
        counts, _ = np.histogram(rng.normal(centre, 0.4, size), bins=SCORE_EDGES)
        lines += [
            {"run": cell.run, "malicious": malicious, "low": SCORE_EDGES[at], "high": SCORE_EDGES[at + 1], "count": n}
            for at, n in enumerate(counts)
            if n
        ]
    return lines
