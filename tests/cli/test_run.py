from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from typer.testing import CliRunner, Result

from fedra.cli import app
from fedra.cli.run import run
from fedra.simulation import SimulationConfig, read_toml, simulate

FAST = ("--rounds", "3", "--num-sampled", "10", "--eval-every", "2")


@pytest.fixture(autouse=True)
def _working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["run", *arguments])


def ran(*arguments: str) -> Result:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result


def mistake(*arguments: str) -> str:
    """Return the one line that a mistake gets; nothing was run and nothing written."""
    before = sorted(Path.cwd().rglob("*"))
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert sorted(Path.cwd().rglob("*")) == before
    return result.stderr


def stored(folder: str = "x") -> SimulationConfig:
    return SimulationConfig.from_dict(read_toml(Path(folder) / "config.toml"))


def test_the_flags_of_the_interface_reach_the_configuration() -> None:
    ran(
        *("--dataset", "digits", "--data-dir", "DIR", "--partition", "non-iid", "--setting", "fixed"),
        *("--rule", "fedra", "--rule-param", "gamma=0.2", "--rule-param", "variance=pooled"),
        *("--attack", "lie", "--attack-param", "z=1.5", "--alpha-q", "10", "--rounds", "2", "--lr", "0.001"),
        *("--num-sampled", "20", "--malicious-ratio", "0.2", "--max-quantity", "512", "--seed", "7"),
        *("--optimizer", "fedadam", "--optimizer-param", "tau=0.01", "--partition-seed", "161", "--out", "x"),
    )
    assert stored() == SimulationConfig(
        dataset="digits",
        data_dir="DIR",
        partition="non-iid",
        setting="fixed",
        rule="fedra",
        rule_params={"gamma": 0.2, "variance": "pooled"},
        attack="lie",
        attack_params={"z": 1.5},
        alpha_q=10,
        rounds=2,
        lr=0.001,
        num_sampled=20,
        malicious_ratio=0.2,
        max_quantity=512,
        seed=7,
        optimizer="fedadam",
        optimizer_params={"tau": 0.01},
        partition_seed=161,
    )


def test_a_federation_can_be_described() -> None:
    Path("sizes.txt").write_text("500\n300\n90\n60\n40\n10\n", encoding="utf-8")
    ran(
        *("--quantities", "sizes.txt", "--num-sampled", "6", "--num-malicious", "1", "--assumed-ratio", "0.05"),
        *("--attack", "lie", "--rounds", "2", "--out", "x"),
    )
    assert stored().quantities == "500,300,90,60,40,10"
    assert (stored().num_malicious, stored().assumed_ratio) == (1, 0.05)
    result = json.loads((Path("x") / "result.json").read_text(encoding="utf-8"))
    assert (result["num_clients"], result["num_malicious_clients"]) == (6, 1)
    ran("--num-clients", "8", "--quantities", "equal", "--num-sampled", "8", "--rounds", "2", "--out", "y")
    assert json.loads((Path("y") / "result.json").read_text(encoding="utf-8"))["num_clients"] == 8


def test_the_command_and_the_call_give_the_same_bits() -> None:
    result = json.loads(ran(*FAST, "--attack", "lie", "--seed", "4", "--json", "--out", "x").stdout)
    config = SimulationConfig(rounds=3, num_sampled=10, eval_every=2, attack="lie", seed=4)
    assert result["weights_sha256"] == simulate(config).summary["weights_sha256"]


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("z=max", "max"),
        ("z='max'", "max"),
        ("z=2", 2),
        ("z=0.5", 0.5),
        ("z = 1e-3", 1e-3),
    ],
)
def test_parameters_are_read_as_toml_or_text(flag: str, value: Any) -> None:
    ran(*FAST, "--attack", "lie", "--attack-param", flag, "--out", "x")
    assert stored().attack_params == {"z": value}


def test_parameters_may_be_switches_lists_and_hyphenated() -> None:
    ran(*FAST, "--rule", "krum", "--rule-param", "clamp=true", "--rule-param", "num-malicious=1", "--out", "x")
    assert stored().rule_params == {"clamp": True, "num_malicious": 1}


def test_a_flag_wins_over_the_file() -> None:
    text = """
rounds = 50
num-sampled = 10
rule = "multi-krum"
attack = "lie"
out = "from-file"
quiet = true
[rule-params]
clamp = true
num_selected = 3
[attack-params]
z = 0.5
"""
    Path("run.toml").write_text(text, encoding="utf-8")
    result = ran("--config", "run.toml", "--rounds", "2", "--rule-param", "num_selected=4")
    assert result.output == ""
    config = stored("from-file")
    assert (config.rounds, config.num_sampled, config.rule) == (2, 10, "multi-krum")
    assert config.rule_params == {"clamp": True, "num_selected": 4}
    assert config.attack_params == {"z": 0.5}
    ran("--config", "run.toml", "--rounds", "2", "--out", "x")
    assert stored().rule_params["num_selected"] == 3


def test_something_may_stand_before_the_rule() -> None:
    ran(*FAST, "--rule", "median", "--before", "bucketing size=4", "--attack", "lie", "--seed", "4", "--out", "x")
    assert (stored().before, stored().before_params) == ("bucketing", {"size": 4})
    Path("run.toml").write_text('rule = "median"\nbefore = "bucketing"\n[before-params]\nsize = 3\n', encoding="utf-8")
    ran("--config", "run.toml", *FAST, "--out", "y")
    assert stored("y").before_params == {"size": 3}
    ran("--config", "run.toml", *FAST, "--before", "nnm", "--out", "z")
    assert (stored("z").before, stored("z").before_params) == ("nnm", {})
    ran(*FAST, "--rule", "median", "--before", "nnm")
    assert [path.name for path in Path("runs").iterdir()] == ["digits-iid-nnm-median-none-seed0"]
    assert "unknown pre-aggregator 'mnn'" in mistake("--before", "mnn")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rule", "fedrra"], "unknown rule 'fedrra'; did you mean 'fedra'?"),
        (["--rule-param", "gama=0.1"], "rule 'fedra' has no parameter 'gama'; did you mean 'gamma'?"),
        (["--rule-param", "gamma"], "--rule-param 'gamma' is not of the form NAME=VALUE"),
        (["--rule-param", "gamma=high"], "gamma='high'"),
        (["--attack", "lye"], "unknown attack 'lye'; did you mean 'lie'?"),
        (["--attack", "lie", "--attack-param", "y=1"], "attack 'lie' has no parameter 'y'"),
        (["--dataset", "digit"], "unknown dataset 'digit'; did you mean 'digits'?"),
        (["--dataset", "nowhere:load"], "there is no module 'nowhere'"),
        (["--dataset", "mnist", "--data-dir", "nowhere"], "fedra data get mnist"),
        (["--dataset-param", "shape=3"], "digits has no option 'shape'"),
        (["--model", "lgistic"], "unknown model 'lgistic'; did you mean 'logistic'?"),
        (["--model-param", "depth=3"], "model 'logistic' has no parameter 'depth'"),
        (["--optimizer", "adm"], "unknown optimizer 'adm'; did you mean 'adam'?"),
        (["--partition", "idd"], "partition='idd'; did you mean 'iid'?"),
        (["--setting", "dynamc"], "setting='dynamc'; did you mean 'dynamic'?"),
        (["--rounds", "0"], "rounds=0; give a whole number from 1 to 2147483647"),
        (["--alpha-q", "-1"], "alpha_q=-1.0; give a finite number of at least 0"),
        (["--num-clients", "10"], "num_sampled=50 but the federation has only 10 clients; sample fewer"),
        (["--quantities", "none.csv"], "there is no file none.csv with quantities"),
        (["--malicious-ratio", "0.7"], "malicious_ratio=0.7; give a number from 0 up to, not including, 0.5"),
        (["--num-sampled", "500"], "num_sampled=500 but the federation has only 140 clients"),
        (["--num-sampled", "3"], "fedra needs n > 2m+2 for m assumed malicious clients, but has n = 3 and m = 1"),
        (["--config", "none.toml"], "there is no configuration file none.toml"),
        (["--resume", "nowhere"], "nowhere is not a run folder"),
        (["--resume", "nowhere", "--seed", "3"], "--resume takes its settings from the run folder; give no others"),
        (["--resume", "nowhere", "--rounds", "3"], "nowhere is not a run folder"),
    ],
)
def test_a_mistake_is_one_line_before_any_work(arguments: list[str], message: str) -> None:
    told = mistake(*arguments)
    assert told.startswith("error: ")
    assert message in told
    assert told.count("\n") == 1


def test_an_unknown_key_of_the_file() -> None:
    Path("run.toml").write_text("ronds = 3\n", encoding="utf-8")
    assert "unknown setting 'ronds'; did you mean 'rounds'?" in mistake("--config", "run.toml")


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        ("out = 3", (), "out=3; give the name of a folder"),
        ('quiet = "no"', (), "quiet='no'; give True or False"),
        ("json = 1", (), "json=1; give True or False"),
        ('rule-params = "gamma=1"', ("--rule-param", "gamma=0.2"), "rule_params='gamma=1'; give a table"),
        ('rule-params = "gamma=1"', (), "rule_params='gamma=1'; give a table"),
        ('attack = "lie"\nattack-params = {z = true}', (), "z=True; give a number"),
        ('optimizer-params = {beta1 = "high"}', (), "beta1='high'; give a finite number"),
        ("lr = true", (), "lr=True; give a finite number above 0"),
    ],
)
def test_a_wrong_kind_in_the_file_is_one_line(text: str, flags: tuple[str, ...], message: str) -> None:
    Path("run.toml").write_text(text, encoding="utf-8")
    told = mistake("--config", "run.toml", *flags)
    assert told.startswith("error: ")
    assert message in told
    assert told.count("\n") == 1


def test_a_directory_for_a_file() -> None:
    assert "is a folder, not a file; a file must be there" in mistake("--config", ".")


def test_an_unknown_flag_gets_the_nearest() -> None:
    assert "--rule" in mistake("--rul", "fedra")


def test_a_folder_in_the_way() -> None:
    ran(*FAST, "--out", "x", "--quiet")
    told = mistake(*FAST, "--out", "x")
    assert "x exists already; choose another --out, or resume it: fedra run --resume x" in told


def test_runs_without_a_name_get_folders_of_their_own() -> None:
    for _ in range(2):
        ran(*FAST, "--quiet")
    assert sorted(path.name for path in Path("runs").iterdir()) == [
        "digits-iid-fedra-none-seed0",
        "digits-iid-fedra-none-seed0-2",
    ]


def test_output_that_nobody_looks_at_is_plain_lines() -> None:
    result = ran(*FAST, "--attack", "lie", "--out", "x")
    assert "\x1b" not in result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("fedra / lie: round 3/3  accuracy ")
    assert " caught " in line
    assert " missed " in line
    assert line.endswith(" 0 s left")
    figures = dict(re.split(r" {2,}", line.strip()) for line in result.stdout.splitlines()[:-1])
    assert figures["clients"] == "140"
    assert figures["of them malicious"] == "14"
    assert "mean error of the estimated number of malicious clients" in figures
    assert not set("│┃━─") & set(result.stdout)
    assert result.stdout.splitlines()[-1] == "records: x"


def test_more_rounds_go_on_with_a_run_that_was_complete() -> None:
    ran(*FAST, "--attack", "lie", "--out", "x", "--quiet")
    again = ran("--resume", "x")
    assert again.stderr == "all rounds are done already; --rounds MORE extends the run\n"
    longer = ran("--resume", "x", "--rounds", "6")
    assert "round 6/6" in longer.stderr
    result = json.loads((Path("x") / "result.json").read_text(encoding="utf-8"))
    straight = json.loads(ran(*FAST, "--attack", "lie", "--rounds", "6", "--out", "y", "--json").stdout)
    assert (result["rounds"], result["weights_sha256"]) == (6, straight["weights_sha256"])
    assert "rounds=2, and x is a run of 6 rounds; give more, or none" in mistake("--resume", "x", "--rounds", "2")


def test_the_stated_defaults_are_those_of_a_configuration() -> None:
    defaults = {field.name: field.default for field in fields(SimulationConfig)}
    stated = {
        name: option.show_default
        for name, kind in get_type_hints(run, include_extras=True).items()
        for option in getattr(kind, "__metadata__", ())
        if isinstance(option.show_default, str)
    }
    assert stated == {name: str(defaults[name]) for name in stated}
    plain = {
        name
        for name, default in defaults.items()
        if default is not None and not name.endswith("_params") and isinstance(default, str | int | float)
    }
    assert stated.keys() == plain


def test_a_run_states_every_setting_in_its_folder() -> None:
    ran(*FAST, "--out", "x", "--quiet")
    text = (Path("x") / "config.toml").read_text(encoding="utf-8")
    for field in fields(SimulationConfig):
        assert re.search(rf"\b{field.name}\b", text), field.name
    for line in ('# model = "logistic"', "# lr = 0.01", "# partition_seed = 161"):
        assert line in text.splitlines()
    ran(*FAST, "--lr", "0.5", "--out", "y", "--quiet")
    text = (Path("y") / "config.toml").read_text(encoding="utf-8")
    assert "# lr" not in text
    assert "lr = 0.5" in text.splitlines()


def test_quiet_says_nothing() -> None:
    assert ran(*FAST, "--out", "x", "--quiet").output == ""


def test_json_is_the_result_and_nothing_else() -> None:
    result = ran(*FAST, "--out", "x", "--json")
    assert result.stderr == ""
    assert json.loads(result.stdout) == json.loads((Path("x") / "result.json").read_text(encoding="utf-8"))


def test_an_error_in_ones_own_code_is_not_hidden(tmp_path: Path) -> None:
    code = "def broken(view, rng):\n    return None + view.own_gradients\n"
    (tmp_path / "broken_attacks.py").write_text(code, encoding="utf-8")
    result = call(*FAST, "--setting", "fixed", "--attack", "broken_attacks:broken", "--out", "x")
    assert result.exit_code == 1
    assert isinstance(result.exception, TypeError)


def test_an_attack_of_the_wrong_shape_is_told_in_a_line() -> None:
    result = call(*FAST, "--setting", "fixed", "--attack", "tests.simulation.own:misshapen", "--out", "x")
    assert result.exit_code == 2
    assert "returned shape (3,)" in result.stderr
