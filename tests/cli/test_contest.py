"""`fedra contest` as people call it, on the embedded digits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from fedra.cli import app, console
from fedra.cli.contest import show_board, show_setting
from fedra.contest import Contest, contest_tables
from fedra.contest.reference import boards

FEW = ("--settings", "digits-silos", "--rules", "fedavg,median", "--rounds", "2", "--workers", "1")
OWN = '''
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedra import Decision, Family, Rule


@dataclass(frozen=True, kw_only=True)
class First(Rule):
    """The first client decides."""

    name: ClassVar[str] = "first"
    family: ClassVar[Family] = Family.IGNORANT

    def decide(self, cohort):
        return Decision(weights=np.eye(len(cohort))[0])
'''


@pytest.fixture(autouse=True)
def _working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEDRA_DATA", raising=False)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["contest", *arguments])


def told(*arguments: str) -> dict[str, Any]:
    done = call(*arguments, "--json")
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def test_it_is_held_shown_resumed_and_added_to() -> None:
    few = (*FEW, "--attacks", "none,lie,adaptive", "--out", "x")
    done = call(*few)
    assert done.exit_code == 0, done.output
    assert "10 cells, 7 distinct runs, 0 done already, 7 to run" in done.stderr
    assert "\nContest: Digits (10 silos), IID\n" in done.stdout
    assert "\nLeaderboard\n" in done.stdout
    assert Path("x/report/report.html").is_file()
    assert Path("x/report/tables/contest-leaderboard.tex").is_file()
    assert Path("x/report/figures/contest-regret.svg").is_file()

    again = told(*few, "--no-report")
    assert (again["missing"], again["reused"], again["failed"]) == (0, 7, {})
    assert {standing["rule"] for standing in again["standings"]} == {"fedavg", "median"}
    assert [standing["worst_regret"] for standing in again["standings"]] == sorted(
        standing["worst_regret"] for standing in again["standings"]
    )
    assert all((standing["cells"], standing["of"]) == (4, 4) for standing in again["standings"])

    more = told(*few, "--seeds", "2,3", "--no-report")
    assert (more["distinct"], more["reused"]) == (14, 7)
    assert {len(entry["runs"]) for entry in more["entries"]} == {2}

    page = CliRunner().invoke(app, ["report", "x", "--out", "y", "--compact", "small", "--no-figures"])
    assert page.exit_code == 0, page.output
    assert "has the least worst regret" in page.stdout
    same = CliRunner().invoke(app, ["report", "small", "--out", "z", "--no-figures"])
    assert same.exit_code == 0, same.output
    assert Path("y/summary.md").read_bytes() == Path("z/summary.md").read_bytes()


def test_runs_whose_folders_are_gone_are_not_run_again() -> None:
    few = (*FEW, "--attacks", "none,lie")
    told(*few, "--out", "x", "--no-report")
    kept = CliRunner().invoke(app, ["report", "x", "--compact", "small", "--no-figures"])
    assert kept.exit_code == 0, kept.output
    more = told(*few, "--add-rule", "uniform", "--out", "y", "--known", "small", "--no-report")
    assert (more["cells"], more["missing"], more["failed"]) == (12, 2, {})
    cells = {standing["rule"]: (standing["cells"], standing["of"]) for standing in more["standings"]}
    assert cells == dict.fromkeys(("fedavg", "median", "uniform"), (3, 3))
    assert all("-uniform-" in path.name for path in Path("y/runs").iterdir())


def test_known_results_are_of_the_same_protocol() -> None:
    few = (*FEW, "--attacks", "lie")
    told(*few, "--out", "x", "--no-report")
    CliRunner().invoke(app, ["report", "x", "--compact", "small", "--no-figures"])
    done = call(*few, "--rounds", "3", "--known", "small", "--out", "y")
    assert done.exit_code == 2
    assert "small has another run for" in done.stderr
    assert "leave --known out" in done.stderr
    assert not Path("y").exists()


def test_an_own_rule_enters_with_one_flag() -> None:
    Path("my_first.py").write_text(OWN, encoding="utf-8")
    outcome = told(*FEW, "--attacks", "lie", "--add-rule", "my_first:First label=Mine", "--out", "x", "--no-report")
    assert {standing["label"] for standing in outcome["standings"]} == {"FedAdam", "Median", "Mine"}


def test_assumptions_can_be_broken_in_the_same_folder() -> None:
    told(*FEW, "--attacks", "lie", "--out", "x", "--no-report")
    few = ("--settings", "digits-silos", "--rules", "fedavg", "--rounds", "1", "--workers", "1", "--broken")
    done = call(*few, "--attacks", "optimize", "--add-rule", "bulyan", "--out", "x")
    assert done.exit_code == 0, done.output
    assert "bulyan has no part in Digits (5 silos): bulyan needs n >= 4m+3" in done.stderr
    assert "ref: the rule refuses so few clients." in done.stdout
    assert "\nLeaderboard, assumption broken\n" in done.stdout
    page = Path("x/report/report.html").read_text(encoding="utf-8")
    assert "Who is never far behind" in page
    assert "Where an assumption is broken" in page


def test_a_plan_runs_nothing() -> None:
    outcome = told(*FEW, "--dry-run", "--out", "x")
    # The median does not look at claims, so that it has one run for each attack.
    assert outcome["missing"] == outcome["distinct"] == (1 + 8 * 2 + 1) + (1 + 8 + 1)
    assert not Path("x").exists()
    listed = call(*FEW, "--attacks", "lie", "--dry-run", "--out", "x")
    assert "to run" in listed.stdout
    far = told("--settings", "mnist-iid", "--rules", "fedavg", "--attacks", "lie", "--dry-run", "--out", "x")
    assert far["notes"][0].startswith("mnist is missing: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--settings", "digits"], "unknown setting of the contest 'digits'; did you mean 'digits-silos'?"),
        (["--seeds", "two"], "--seeds has 'two'; give whole numbers, separated by commas"),
        (["--rules", "fedra as printed"], "unknown rule of the contest 'fedra as printed'"),
        (["--add-rule", "nonesuch"], "unknown rule 'nonesuch'"),
        (["--add-rule", ""], "--add-rule '' has no name; write it as my_rules:Mine"),
        (["--settings", "mnist-iid"], "mnist is missing: "),
        (["--ray-address", "here"], "--ray-address here is for --engine ray"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], message: str) -> None:
    done = call(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_real_process_is_quiet_when_asked() -> None:
    command = [sys.executable, "-m", "fedra", "contest", *FEW, "--attacks", "lie", "--no-report", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_fits_into_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.contest.contest_results import contest_data

    narrow = Console(width=80, force_terminal=True, color_system=None, highlight=False, record=True)
    monkeypatch.setattr(console, "console", narrow)
    monkeypatch.setattr(sys.modules["fedra.cli.contest"], "console", narrow)
    data = contest_data(Contest(), Contest(broken=True))
    for broken in (False, True):
        tables = contest_tables(data, broken=broken)
        for table in tables:
            show_setting(table)
        for board in boards(tables, broken=broken):
            show_board(board)
    text = narrow.export_text()
    captions = [line for line in text.splitlines() if len(line) > 80]
    assert all(line.endswith(".") for line in captions), captions
    assert "NNM + trimmed mean" in text
    assert "95/9\n" not in text
