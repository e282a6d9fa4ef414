"""Tables of accuracies on terminals of any width, and where there is none."""

from __future__ import annotations

import re

import pytest
from rich.console import Console

from fedra.cli import console, tables
from fedra.cli.tables import show_table
from fedra.report.model import Column, Entry, Row, Table


def entry(mean: float | None, *, std: float | None = None, published: float | None = None, **others: str) -> Entry:
    rule, by = others.get("rule", ""), others.get("by", "")
    return Entry(mean=mean, std=std, runs=("run",), statuses=("done",), published=published, rule=rule, by=by)


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
            rule="best-quantity-ignorant",
            entries=(
                entry(91.0, published=94.5, rule="bulyan", by="Bulyan"),
                entry(91.0, published=94.5, rule="bulyan", by="Bulyan"),
                entry(None, published=98.76, rule="krum", by="Krum"),
            ),
        ),
        Row(
            label="FedRA",
            family="quantity-robust",
            rule="fedra",
            entries=(entry(99.254, std=0.5, published=99.2), None, None),
        ),
        Row(label="[red]mine", family="own rule", rule="mine", entries=(None, entry(10.0), entry(None))),
    ),
)


@pytest.fixture
def terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> list[str]:
    made = Console(width=request.param, force_terminal=True, no_color=True, highlight=False)
    monkeypatch.setattr(console, "console", made)
    monkeypatch.setattr(tables, "console", made)
    show_table(TABLE)
    return re.sub(r"\x1b\[\d+m", "", capsys.readouterr().out).splitlines()


def test_ours_published_and_difference_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(TABLE)
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()] == [
        "",
        "Table 2: MNIST [bold]",
        "attack rule alpha_q 0 alpha_q 10",
        "LIE Best QI: Bulyan 91.00 (94.50, -3.50) 91.00 (94.50, -3.50)",
        "LIE FedRA 99.25±0.50 (99.20, +0.05)",
        "LIE [red]mine 10.00",
        "Optimize Best QI none done (98.76)",
        "Optimize [red]mine none done",
        "1 round. In brackets: published, and the difference (ours minus published).",
    ]


@pytest.mark.parametrize("terminal", [120], indirect=True)
def test_a_wide_terminal_has_one_table(terminal: list[str]) -> None:
    assert any(re.search(r"│ LIE +│ FedRA +│ 99\.25±0\.50 \(99\.20, \+0\.05\) │", line) for line in terminal)


@pytest.mark.parametrize("terminal", [60, 40], indirect=True)
def test_a_narrow_terminal_has_a_table_for_each_attack_and_cuts_nothing(terminal: list[str]) -> None:
    assert [line for line in terminal if line in ("LIE", "Optimize")] == ["LIE", "Optimize"]
    # The caption is left to the terminal to wrap.
    assert all(len(line) <= 60 for line in terminal[:-1])
    whole = " ".join(" ".join(terminal).split())
    assert "…" not in whole
    assert re.search(r"FedRA .*99\.25 ±0\.50 .*\(99\.20, .*\+0\.05\)", whole)
