"""How `fedra paper` prints a table, on values made by hand."""

from __future__ import annotations

import re

import pytest
from rich.console import Console

from fedra.cli import console
from fedra.cli.paper_tables import entries_of, tell_statistics, tell_table
from fedra.experiments import read_paper
from fedra.report.model import Column, Entry, Row, Table


def entry(mean: float | None, *, std: float | None = None, published: float | None = None, rule: str = "") -> Entry:
    return Entry(mean=mean, std=std, runs=("run",), published=published, rule=rule)


TABLE = Table(
    key="table2-mnist",
    title="Table 2: MNIST [bold]",
    number=2,
    dataset="mnist",
    partition="iid",
    setting="fixed",
    caption="1 round.",
    columns=(
        Column(attack="lie", alpha_q=0.0, attack_label="LIE"),
        Column(attack="lie", alpha_q=10.0, attack_label="LIE"),
        Column(attack="optimize", alpha_q=10.0, attack_label="Optimize"),
    ),
    rows=(
        Row(
            label="Best QI",
            family="quantity-ignorant",
            entries=(
                entry(91.0, published=94.5, rule="bulyan"),
                entry(91.0, published=94.5, rule="bulyan"),
                entry(None, published=98.76, rule="krum"),
            ),
        ),
        Row(label="FedRA", family="quantity-robust", entries=(entry(99.254, std=0.5, published=99.2), None, None)),
        Row(label="[red]mine", family="own rule", entries=(None, entry(10.0), entry(None))),
    ),
)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_ours_published_and_difference_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    tell_table(TABLE)
    assert lines(capsys) == [
        "",
        "Table 2: MNIST [bold]",
        "attack rule alpha_q 0 alpha_q 10",
        "LIE Best QI: Bulyan 91.00 (94.50, -3.50) 91.00 (94.50, -3.50)",
        "LIE FedRA 99.25±0.50 (99.20, +0.05)",
        "LIE [red]mine 10.00",
        "Optimize Best QI none done (98.76)",
        "Optimize [red]mine none done",
        "1 round. In brackets: published, and ours less published.",
    ]


def test_a_narrow_terminal_breaks_before_the_brackets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow = Console(width=70, force_terminal=True, no_color=True, highlight=False)
    monkeypatch.setattr(console, "console", narrow)
    tell_table(TABLE)
    told = re.sub(r"\x1b\[\d+m", "", capsys.readouterr().out)
    assert re.search(r"│ LIE +│ FedRA +│ +99\.25±0\.50 │ ", told)
    assert " (99.20, +0.05) │ " in told


def test_entries_are_plain_values() -> None:
    found = entries_of(TABLE)
    assert len(found) == 6
    assert found[3] == {
        "table": 2,
        "dataset": "mnist",
        "partition": "iid",
        "setting": "fixed",
        "row": "FedRA",
        "attack": "lie",
        "alpha_q": 0.0,
        "mean": 99.254,
        "std": 0.5,
        "runs": ("run",),
        "published": 99.2,
        "rule": "",
        "difference": pytest.approx(0.054),
    }


def test_table_1_has_the_papers_line_under_ours(capsys: pytest.CaptureFixture[str]) -> None:
    mnist = read_paper().statistics[0]
    tell_statistics([mnist])
    told = lines(capsys)
    assert told[2:5] == [
        "data set classes train test clients mean quantity std max",
        "mnist ours 10 60,000 10,000 3,025 19.77 179.28 6,820",
        "mnist published 10 60,000 10,000 3,025 19.77 179.28 6,820",
    ]
