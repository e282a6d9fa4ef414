"""What stands around the tables: what was run, what failed, and the data sets, as HTML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

from fedra.experiments import Results
from fedra.report.captions import learning_rate
from fedra.report.names import printed
from fedra.report.page_tables import DASH
from fedra.report.statistics import statistics_lines
from fedra.report.winners import Winner, agreements

_STATES = ("done", "failed", "unfinished", "missing")
_WINNER_HEAD = ("attack", "alpha_q", "best in the paper", "best here", "", "points behind")


def overview_html(cells: pd.DataFrame) -> str:
    """Return counts of runs by how they ended, and a line for each data set, partition and setting."""
    runs = _runs(cells)
    counts = runs["status"].value_counts()
    tiles = "".join(
        f'<div class="tile {state}"><b>{int(counts.get(state, 0)):,}</b> runs {state}</div>'
        for state in _STATES
        if state == "done" or counts.get(state, 0)
    )
    seeds = sorted({int(seed) for seed in cells["seed"].dropna()})
    first_seen = {dataset: at for at, dataset in enumerate(runs["dataset"].unique())}
    groups = runs.groupby(["dataset", "partition", "setting"], sort=False)
    lines = [
        [
            *(printed(str(label)) for label in where),
            *_protocol(group),
            _ranges(group["seed"]),
            f"{int((group['status'] == 'done').sum())} of {len(group)}",
        ]
        for where, group in sorted(groups, key=lambda item: (first_seen[item[0][0]], *item[0][1:]))
    ]
    head = ["data set", "partition", "setting", "rounds", "learning rate", "cap", "seeds", "runs done"]
    return (
        f'<div class="tiles"><div class="tile"><b>{len(cells):,}</b> cells</div>{tiles}'
        f'<div class="tile"><b>{len(seeds)}</b> {"seed" if len(seeds) == 1 else "seeds"}</div></div>'
        f"{plain_table(head, lines, 'What was run', numbers=range(3, 8))}{_failures(runs)}"
    )


def winners_html(found: Sequence[Winner]) -> str:
    """Return in how many columns of each table the published rule wins here too, and who wins in each."""
    if not found:
        return ""
    parts = []
    for line in agreements(found):
        own = [_winner_line(winner) for winner in found if winner.table == line.table]
        table = plain_table(_WINNER_HEAD, own, f"Winners, {line.title}", numbers=(1, 5))
        opened = " open" if line.same < line.columns else ""
        said = f"<b>{line.same} of {line.columns}</b> the same in {escape(line.title)}"
        parts.append(f"<details{opened}><summary>{said}</summary>{table}</details>")
    return (
        '<section id="winners"><h2>Who wins</h2><p class="caption">In which columns the rule that is best in the paper '
        f"is best here too; where it is not, how far it is behind here.</p>{''.join(parts)}</section>"
    )


def _winner_line(winner: Winner) -> list[str]:
    return [
        winner.attack,
        DASH if winner.alpha_q is None else f"{winner.alpha_q:g}",
        ", ".join(winner.published),
        ", ".join(winner.ours),
        "✓ same" if winner.agrees else "✗ differs",
        DASH if winner.agrees else f"{winner.behind:.2f}",
    ]


def statistics_html(results: Results) -> str:
    """Return the paper's Table 1, with the number of clients of our own partitions beside it."""
    published = ("num_classes", "num_train", "num_test", "num_clients", "mean_quantity", "std_quantity", "max_quantity")
    lines = [
        [
            printed(line.dataset),
            ", ".join(f"{count:,}" for count in line.num_clients) or DASH,
            *(DASH if line.published is None else f"{getattr(line.published, name):,}" for name in published),
        ]
        for line in statistics_lines(results)
    ]
    head = ["data set", "clients, ours", "classes", "training", "test", "clients", "mean quantity", "std", "largest"]
    return plain_table(head, lines, "Table 1: data sets", numbers=range(1, 9))


def plain_table(head: Sequence[str], lines: Iterable[Sequence[Any]], label: str, numbers: Iterable[int] = ()) -> str:
    """Return a table of texts; columns in `numbers` are set to the right."""
    right = set(numbers)
    heads = "".join(
        f'<th scope="col"{" class=n" if at in right else ""}>{escape(text)}</th>' for at, text in enumerate(head)
    )
    body = "".join(f"<tr>{_cells(line, right)}</tr>" for line in lines)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label, quote=True)}">'
        f'<table class="text"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _cells(line: Sequence[Any], right: set[int]) -> str:
    first, *rest = line
    cells = (
        f"<td{' class=n' if at in right else ''}>{escape(str(text))}</td>" for at, text in enumerate(rest, start=1)
    )
    return f'<th scope="row">{escape(str(first))}</th>{"".join(cells)}'


def _runs(cells: pd.DataFrame) -> pd.DataFrame:
    return cells.drop_duplicates("run")


def _protocol(group: pd.DataFrame) -> list[str]:
    configs: list[Mapping[str, Any]] = [json.loads(text) for text in group["config"].dropna()]
    rates = {learning_rate(config) for config in configs}
    caps = {config.get("max_quantity") for config in configs}
    return [_listed({config.get("rounds") for config in configs}), _listed(rates), _listed(caps)]


def _listed(values: set[Any]) -> str:
    known = [f"{value:g}" for value in sorted(value for value in values if value is not None)]
    return ", ".join([*known, *(["none"] if None in values else [])])


def _ranges(values: pd.Series[Any]) -> str:
    """Return whole numbers as they are listed, a stretch of three or more as first to last."""
    numbers = sorted({int(value) for value in values.dropna()})
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(f"{number:,}" for number in numbers) or DASH


def _failures(runs: pd.DataFrame) -> str:
    failed = runs[runs["status"] == "failed"]
    if failed.empty:
        return ""
    lines = zip(failed["run"], failed["error"].fillna("no error was recorded"), strict=True)
    return (
        f"<details><summary>{len(failed)} failed</summary>"
        f"{plain_table(['run', 'error'], lines, 'Failed runs')}</details>"
    )
