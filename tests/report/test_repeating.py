import dataclasses
import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report import synthetic
from typer.testing import CliRunner

import fedra.simulation
from fedra.cli import app
from fedra.report import ReportData
from fedra.report.page.embedded import page_data
from fedra.report.repeating import repeating_command
from fedra.simulation import SimulationConfig


class SeenEnough(Exception):
    pass


@pytest.fixture
def repeated(tmp_path, monkeypatch):
    """Return a function from a command to the configuration that the command line makes of it."""
    seen = []

    def simulate(config, **_):
        seen.append(config)
        raise SeenEnough

    monkeypatch.setattr(fedra.simulation, "simulate", simulate)
    monkeypatch.chdir(tmp_path)

    def run(command):
        program, *arguments = shlex.split(command)
        assert program == "fedra"
        outcome = CliRunner().invoke(app, arguments)
        assert isinstance(outcome.exception, SeenEnough), outcome.output
        return seen.pop()

    return run


def test_the_commands_of_the_page_make_the_same_configurations(repeated):
    found = synthetic.results()
    configs = dict(zip(found.cells["run"], found.cells["config"], strict=True))
    for run in page_data(ReportData.of(found), synthetic.tables(found))["runs"][::17]:
        assert repeated(run["command"]) == SimulationConfig.from_dict(json.loads(configs[run["name"]]))


def test_every_setting_has_its_flag(repeated):
    config = SimulationConfig(
        dataset="mnist",
        dataset_params={"limit": 3},
        partition="dirichlet",
        partition_seed=4,
        dirichlet_alpha=0.25,
        num_clients=60,
        quantities="zipf s=1.2",
        max_quantity=512,
        model="logistic",
        model_params={"bias": False},
        setting="fixed",
        num_sampled=40,
        num_malicious=9,
        assumed_ratio=0.05,
        rule="multi-krum",
        rule_params={"malicious_ratio": 0.2},
        optimizer="fedadam",
        optimizer_params={"beta1": 0.5},
        lr=0.125,
        attack="lie",
        attack_params={"z": 1.5},
        claimed_quantity=50.0,
        quantity_statistics="round",
        local_steps=3,
        local_lr=0.5,
        batch_size=16,
        rounds=30,
        eval_every=5,
        checkpoint_every=10,
        seed=7,
        threads=2,
    )
    for stated in (
        config,
        dataclasses.replace(config, claimed_quantity=None, alpha_q=2.5, local_steps=None, local_epochs=2),
        dataclasses.replace(config, num_malicious=None, malicious_ratio=0.15),
    ):
        assert repeated(repeating_command(stated.to_dict())) == stated


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1)
values = st.one_of(
    words,
    st.sampled_from(
        ["1.5", "true", "[1]", "pooled", '"quoted"', "-3", "2020-01-01", "a=b", "it's", "\x7f", "1\nb = 2"]
    ),
    st.integers(-(10**9), 10**9),
    st.floats(allow_nan=False),
    st.booleans(),
    st.lists(st.integers(0, 9), max_size=3),
    st.dictionaries(words, st.booleans(), max_size=2),
)


def test_any_parameter_survives_the_command(repeated):
    @given(st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True), values, min_size=1, max_size=3))
    def survives(params):
        config = SimulationConfig(dataset="own:data", dataset_params=params, lr=1e-5, alpha_q=2.0)
        assert repeated(repeating_command(config.to_dict())) == config

    survives()


def test_the_default_run_needs_no_flags():
    assert repeating_command(SimulationConfig().to_dict()) == "fedra run"
