"""`fedra federation`, and `fedra run --federation`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fedra.cli import app
from fedra.simulation import SimulationConfig, read_toml

HOSPITALS = """
name = "three hospitals"
quantities = [400, 300, 20]
num_sampled = 3
malicious = [1]
assumed_ratio = 0.05
"""


@pytest.fixture(autouse=True)
def _working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hospitals.toml").write_text(HOSPITALS, encoding="utf-8")


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def stored(folder: str) -> SimulationConfig:
    return SimulationConfig.from_dict(read_toml(Path(folder) / "config.toml"))


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_it_is_drawn_as_wide_as_the_terminal(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    found = call("federation", "hospitals.toml")
    assert found.exit_code == 0, found.output
    assert found.output.startswith("three hospitals: 3 clients hold 720 samples")
    assert int(columns) - 15 < max(map(len, found.output.splitlines())) <= int(columns)


def test_json_and_a_picture() -> None:
    found = call("federation", "hospitals.toml", "--json", "--out", "x.svg")
    assert found.exit_code == 0, found.output
    values = json.loads(found.stdout)
    assert [client["malicious"] for client in values["clients"]] == [False, True, False]
    assert values["samples_of_nobody"] == 718
    assert Path("x.svg").read_bytes().startswith(b"<?xml")
    assert "picture: x.pdf" in call("federation", "hospitals.toml", "--width", "60", "--out", "x.pdf").output


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("quantities = [1400, 100]\nnum_sampled = 2", "add up to 1500, but there are 1438 training samples"),
        ("num_clients = 3\nquantities = 'equal'\nnum_sampled = 3\nnum_malicious = 4", "give at most as many"),
        ("num_clients = 3\nquantities = 'equal'\nnum_sampled = 3\nmalicious = 'largest 4'", "give at most as many"),
        ("malicious = [999]", "clients are numbers from 0 to 139"),
        ("partition = 'natural'", "does not say who holds what"),
        ("partition = 'who.csv'", "clients of 2 samples, but there are 1,438 training samples"),
        ("partition = 'none.csv'", "there is no file none.csv"),
        ("partition = 'binary.csv'", "is no text"),
        ("quantities = [nan]", "a whole number"),
        ("malicious_ratio = nan", "malicious_ratio=nan"),
        ("dataset = 'mnits'", "did you mean 'mnist'"),
        ("dataset = 'my_data:load'", "--trust"),
        ("num_clients = 3\nquantities = [5, 5]", "num_clients=3, but quantities has 2 numbers"),
    ],
)
def test_what_cannot_be_is_one_line_before_any_work(text: str, remedy: str) -> None:
    Path("who.csv").write_text("a\nb\n", encoding="utf-8")
    Path("binary.csv").write_bytes(bytes(range(128, 256)))
    Path("wrong.toml").write_text(text, encoding="utf-8")
    before = sorted(Path.cwd().rglob("*"))
    for command in (
        ("federation", "wrong.toml", "--out", "x.png"),
        ("run", "--federation", "wrong.toml", "--rule", "fedavg"),
    ):
        found = call(*command)
        assert found.exit_code == 2, found.output
        assert found.stdout == ""
        assert remedy in found.stderr
        assert found.stderr.startswith("error:")
    assert sorted(Path.cwd().rglob("*")) == before


def test_a_picture_of_no_format_is_refused_first() -> None:
    found = call("federation", "missing.toml", "--out", "x.gif")
    assert found.exit_code == 2
    assert "name it .png, .svg or .pdf" in found.stderr


def test_a_run_takes_it_and_flags_win() -> None:
    short = ("--rule", "fedavg", "--attack", "lie", "--rounds", "2")
    found = call("run", "--federation", "hospitals.toml", *short, "--out", "x")
    assert found.exit_code == 0, found.output
    assert stored("x") == SimulationConfig(
        rule="fedavg",
        quantities="400,300,20",
        num_sampled=3,
        malicious=[1],
        assumed_ratio=0.05,
        attack="lie",
        rounds=2,
    )
    flags = ("--quantities", "30,20,20,10", "--num-sampled", "4", "--num-malicious", "2")
    found = call("run", "--federation", "hospitals.toml", *flags, *short, "--out", "y")
    assert found.exit_code == 0, found.output
    assert (stored("y").quantities, stored("y").num_malicious, stored("y").malicious) == ("30,20,20,10", 2, None)


def test_a_configuration_has_or_names_it() -> None:
    Path("deeper").mkdir()
    Path("deeper/f.toml").write_text("quantities = 'q.txt'\nnum_sampled = 2\nnum_malicious = 0", encoding="utf-8")
    Path("deeper/q.txt").write_text("7\n9\n", encoding="utf-8")
    Path("deeper/run.toml").write_text(
        "federation = 'f.toml'\nrule = 'fedavg'\nrounds = 1\nnum_malicious = 1", encoding="utf-8"
    )
    found = call("run", "--config", "deeper/run.toml", "--out", "x", "--quiet")
    assert found.exit_code == 0, found.output
    assert (stored("x").quantities, stored("x").num_malicious) == ("7,9", 1)
    Path("run.toml").write_text(
        "rounds = 1\nrule = 'fedavg'\n[federation]\nquantities = [3, 4]\nnum_sampled = 2", encoding="utf-8"
    )
    assert call("run", "--config", "run.toml", "--out", "y", "--quiet").exit_code == 0
    assert stored("y").quantities == "3,4"
    found = call("run", "--config", "run.toml", "--federation", "hospitals.toml", "--out", "z", "--quiet")
    assert found.exit_code == 0, found.output
    assert stored("z").quantities == "400,300,20"


def test_going_on_takes_no_federation() -> None:
    found = call("run", "--resume", "x", "--federation", "hospitals.toml")
    assert found.exit_code == 2
    assert "give no others than --rounds" in found.stderr


def test_a_flag_wins_over_what_it_excludes() -> None:
    wards = [str(number % 3) for number in range(1438)]
    Path("who.csv").write_text("\n".join(wards), encoding="utf-8")
    Path("held.toml").write_text(
        "partition = 'who.csv'\nnum_sampled = 3\nmalicious = ['1']\ndataset_params = {a = 1}", encoding="utf-8"
    )
    short = ("--rule", "fedavg", "--rounds", "1", "--quiet")
    for number, (file, flags, expected) in enumerate(
        (
            ("hospitals.toml", ("--partition", "who.csv"), (None, None, "1")),
            ("hospitals.toml", ("--malicious-ratio", "0.2"), ("400,300,20", None, None)),
            ("held.toml", ("--dataset", "digits", "--quantities", "30,20,20"), ("30,20,20", None, "1")),
            ("held.toml", ("--dataset", "digits", "--num-malicious", "2"), (None, 2, None)),
        )
    ):
        found = call("run", "--federation", file, *flags, *short, "--out", f"x{number}")
        assert found.exit_code == 0, found.output
        config = stored(f"x{number}")
        assert (config.quantities, config.num_malicious, config.malicious) == expected


def test_a_grid_that_cannot_be_is_told_before_any_work() -> None:
    Path("grid.toml").write_text("rules = ['fedavg']\n[fixed]\nnum_sampled = 141\nrounds = 1", encoding="utf-8")
    for flags in ((), ("--dry-run",)):
        found = call("grid", "grid.toml", "--out", "g", "--workers", "1", *flags)
        assert found.exit_code == 2, found.output
        assert "has only 140 clients" in found.stderr
        assert not Path("g").exists()
