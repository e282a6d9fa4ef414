"""`fedra paper` as people call it, on the embedded digits."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from fedra.cli import app
from fedra.cli.paper import show_statistics
from fedra.paper import read_paper, read_protocols

FEW = ("--datasets", "digits", "--rules", "FedAdam,median", "--workers", "1")
OWN = '''
from dataclasses import dataclass
from typing import ClassVar

from fedra import Family, Rule
from fedra.rules import Decision


@dataclass(frozen=True, kw_only=True)
class Failing(Rule):
    """Fails."""

    name: ClassVar[str] = "failing"
    family: ClassVar[Family] = Family.IGNORANT

    def decide(self, cohort):
        raise ArithmeticError("went wrong")
'''


@pytest.fixture(autouse=True)
def _working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEDRA_DATA", raising=False)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["paper", *arguments])


def told(*arguments: str) -> dict[str, Any]:
    done = call(*arguments, "--json")
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def test_tables_come_resume_and_grow() -> None:
    columns = len(read_protocols().named("quick").alpha_q)
    runs = 3 * (columns + 1)
    done = call("table2", "table3", *FEW, "--out", "x")
    assert done.exit_code == 0, done.output
    assert f"{3 * 2 * columns} cells, {runs} distinct runs, 0 done already, {runs} to run" in done.stderr
    assert "\nTable 2: Digits, IID, fixed ratio\n" in done.stdout
    assert "\nTable 3: Digits, IID, fixed ratio, quantity-ignorant rules\n" in done.stdout
    assert "Best QI: Median" in done.stdout
    assert "so there are no published figures" in done.stdout
    assert Path("x/report/report.html").is_file()

    again = told("table3", "table2", *FEW, "--out", "x", "--no-report")
    assert (again["missing"], again["reused"], again["failed"]) == (0, runs, {})
    frame = pd.read_parquet("x/results.parquet").set_index(["rule", "attack", "alpha_q"])["final_accuracy"]
    entries = {(line["table"], line["row"], line["attack"], line["alpha_q"]): line for line in again["entries"]}
    assert entries[2, "FedAdam", "lie", 10.0]["mean"] == frame["fedavg", "lie", 10.0]
    assert entries[3, "Median", "lie", None]["mean"] == frame["median", "lie", 10.0]
    assert entries[2, "Best QI", "lie", 0.0]["rule"] == "median"
    assert all(line["std"] is None and line["published"] is None for line in again["entries"])

    more = told("table2", *FEW, "--seeds", "2", "--out", "x", "--no-report")
    assert (more["distinct"], more["reused"]) == (2 * runs, runs)
    assert {len(line["runs"]) for line in more["entries"]} == {2}
    assert all(line["std"] is not None for line in more["entries"])
    assert {path.stem for path in Path("x/grids").iterdir()} == {again["grid"], more["grid"]}


def test_a_real_process_prints_the_tables_and_writes_the_report() -> None:
    command = [sys.executable, "-m", "fedra", "paper", "table1", "table3", "figure3", *FEW]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "80"})
    assert done.returncode == 0, done.stderr
    assert "digits    ours" in done.stdout
    assert "Table 3: Digits" in done.stdout
    assert "figure3 is a diagram of the method: there is nothing to run" in done.stderr
    assert "report: runs/paper/report/report.html" in done.stdout
    assert Path("runs/paper/report/report.html").is_file()


def test_an_added_rule_with_parameters_is_one_more_row() -> None:
    flags = ("--rules", "fedra", "--alpha-q", "10", "--no-report", "--workers", "1", "--datasets", "digits")
    outcome = told("table2", *flags, "--add-rule", "fedra gamma=0.5 label='FedRA, 0.5'")
    assert [line["row"] for line in outcome["entries"] if line["attack"] == "lie"] == ["FedRA", "FedRA, 0.5"]
    configs = pd.read_parquet("runs/paper/results.parquet").set_index("rule")["config"].map(json.loads)
    assert {json.dumps(config.get("rule_params", {})) for config in configs["FedRA, 0.5"]} == {'{"gamma": 0.5}'}
    mixed = told("table2", "--datasets", "digits", "--add-rule", "median before='bucketing size=2'", "--dry-run")
    assert any("bucketing-median" in line["run"] for line in mixed["runs"])
    plain = told("table3", "--datasets", "digits", "--add-rule", "uniform", "--dry-run")
    assert any("uniform" in line["run"] for line in plain["runs"])


def test_an_added_attack_is_one_more_column() -> None:
    flags = ("--rules", "fedavg", "--alpha-q", "10", "--no-report", "--workers", "1", "--datasets", "digits")
    before = {line["run"] for line in told("table2", *flags, "--dry-run")["runs"]}
    attacks = ("--add-attack", "sign-flip", "--add-attack", "tests.experiments.own:scaled factor=-3 label='Mine'")
    planned = told("table2", *flags, *attacks, "--dry-run")
    assert before < {line["run"] for line in planned["runs"]}
    outcome = told("table2", *flags, *attacks)
    means = {line["attack"]: line["mean"] for line in outcome["entries"]}
    assert list(means) == ["label-flip", "lie", "optimize", "sign-flip", "Mine"]
    frame = pd.read_parquet("runs/paper/results.parquet").set_index("attack")
    assert means["Mine"] == frame["final_accuracy"]["Mine"]
    assert json.loads(frame["config"]["Mine"])["attack_params"] == {"factor": -3}


def test_a_rule_that_fails_leaves_its_row_empty_and_makes_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("failing_rules.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    done = call("table3", *FEW, "--add-rule", "failing_rules:Failing")
    assert done.exit_code == 1, done.output
    assert done.stderr.count("ArithmeticError: went wrong") >= 3
    assert len(re.findall(r"failing_rules:Failing +none done", done.stdout)) == 3
    assert Path("runs/paper/report/report.html").is_file()


def test_a_dry_run_tells_what_is_missing_and_writes_nothing() -> None:
    plan = told("all", "--protocol", "quick", "--datasets", "mnist", "--dry-run")
    assert (plan["cells"] > plan["distinct"], plan["distinct"]) == (True, plan["missing"])
    assert len(plan["runs"]) == plan["distinct"]
    assert plan["notes"][0].startswith("figure3 is a diagram")
    assert plan["notes"][1].startswith("figure4 is about cifar10 and mind")
    assert plan["notes"][2].startswith("mnist is missing: get it with: fedra data get mnist")
    done = call("table2", "--dry-run")
    assert done.exit_code == 0
    assert done.stdout.count("to run") == told("table2", "--dry-run")["distinct"]
    assert list(Path().iterdir()) == []


def test_targets_without_runs() -> None:
    diagram = call("figure3")
    assert (diagram.exit_code, diagram.stdout) == (0, "")
    assert diagram.stderr == "figure3 is a diagram of the method: there is nothing to run\n"
    assert told("table1", "--datasets", "digits")["statistics"][0]["num_clients"] == 140
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tabel2",), "unknown target 'tabel2'; did you mean 'table2'?"),
        (("figure4",), "nothing to run: figure4 is about cifar10 and mind: mnist is not in it"),
        (("table3", "--rules", "fedra"), "nothing to run: table3 has none of the rules chosen"),
        (("table2",), "mnist is missing: get it with: fedra data get mnist"),
        (("table1", "--datasets", "digits,huffpost"), "huffpost is missing: lay out the HuffPost"),
        (("--datasets", "minst"), "did you mean 'mnist'?"),
        (("--protocol", "fast"), "unknown protocol 'fast'"),
        (("--alpha-q", "0,ten"), "--alpha-q has 'ten'; give numbers"),
        (("--alpha-q", ","), "alpha_q is empty"),
        (("--add-rule", "unifrom"), "did you mean 'uniform'?"),
        (("--add-rule", "fedra gamma"), "--add-rule fedra: 'gamma' is not of the form NAME=VALUE"),
        (("--add-rule", "fedra label='x"), "No closing quotation; write it as my_rules:Mine"),
        (("--add-rule", ""), "--add-rule '' has no name"),
        (("--add-rule", "fedra gama=1"), "rule 'fedra' has no parameter 'gama'"),
        (("--add-attack", "sign-filp"), "did you mean 'sign-flip'?"),
        (("--add-attack", "lie z"), "--add-attack lie: 'z' is not of the form NAME=VALUE"),
        (("--add-attack", "ipm epz=1"), "'epz'"),
        (("--add-attack", "none"), "'none' is no attack that could be added"),
        (("--add-attack", "lie"), "attacks has 'lie' twice; leave one out, or give it another label"),
        (("--ray-address", "x:1"), "--ray-address x:1 is for --engine ray"),
    ],
)
def test_mistakes_are_one_line_and_start_nothing(arguments: tuple[str, ...], message: str) -> None:
    done = call(*arguments)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(Path().iterdir()) == []


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_table_1_has_the_papers_line_under_ours(capsys: pytest.CaptureFixture[str]) -> None:
    mnist = read_paper().statistics[0]
    show_statistics([mnist])
    assert lines(capsys)[2:5] == [
        "data set classes train test clients mean quantity std max",
        "mnist ours 10 60,000 10,000 3,025 19.77 179.28 6,820",
        "mnist published 10 60,000 10,000 3,025 19.77 179.28 6,820",
    ]
