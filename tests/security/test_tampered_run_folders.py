"""An attacker, or a full disk, changes any file of a run's folder.

Whatever it is, the run ends as it would have, or the command says in a line which file is wrong: no traceback, no
hang, and never fewer rounds than it says.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
import typer
from safetensors.numpy import load_file, save_file
from tests.security.mutations import DAMAGES, copied, files_of, json_text, with_value, within
from tests.simulation.watching import Calling, stop_in
from typer.testing import CliRunner

from fedra.cli import app
from fedra.cli.console import errors_reported
from fedra.data import load_dataset
from fedra.simulation import SimulationConfig, resume, simulate

CONFIG = SimulationConfig(attack="lie", alpha_q=10, rounds=6, checkpoint_every=2, eval_every=2, num_sampled=10)
METADATA = {"round": "5", "step": "5", "seconds": "1.0"}
FUZZED = 150


@cache
def digits():
    return load_dataset("digits")


@cache
def uninterrupted():
    return simulate(CONFIG, dataset=digits())


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run that is complete, and one that was stopped after five of its six rounds."""
    folder = tmp_path_factory.mktemp("runs")
    simulate(CONFIG, out=folder / "complete", dataset=digits())
    with pytest.raises(KeyboardInterrupt):
        simulate(CONFIG, out=folder / "stopped", dataset=digits(), observers=[stop_in(4)])
    return folder


def rewritten(path, change):
    """Change a JSON file."""
    path.write_text(json_text(change(json.loads(path.read_text(encoding="utf-8")))), encoding="utf-8")


def with_metadata(path, **other):
    save_file(load_file(path), path, metadata=METADATA | other)


def with_column(path, column, change):
    frame = pd.read_parquet(path)
    frame[column] = change(frame[column])
    frame.to_parquet(path)


def reshaped(path):
    save_file({name: array[:-1] for name, array in load_file(path).items()}, path, metadata=METADATA)


def bomb(path):
    """Half a million rounds in a few hundred bytes."""
    frame = pd.read_parquet(path)
    frame.iloc[np.zeros(500_000, dtype=int)].to_parquet(path, index=False)


STOPPED = {
    "a part is missing": lambda run: (run / "parts/rounds-00000004.parquet").unlink(),
    "a part of clients is missing": lambda run: (run / "parts/clients-00000002.parquet").unlink(),
    "a part is cut": lambda run: os.truncate(run / "parts/rounds-00000004.parquet", 700),
    "a part is there twice": lambda run: shutil.copy(
        run / "parts/rounds-00000002.parquet", run / "parts/rounds-00000003.parquet"
    ),
    "parts are in another order": lambda run: shutil.copy(
        run / "parts/rounds-00000002.parquet", run / "parts/rounds-00000004.parquet"
    ),
    "rounds overlap": lambda run: with_column(run / "parts/rounds-00000004.parquet", "round", lambda r: r - 1),
    "clients are missing": lambda run: (
        pd.read_parquet(run / "parts/clients-00000004.parquet")
        .iloc[:-3]
        .to_parquet(run / "parts/clients-00000004.parquet")
    ),
    "a column is text": lambda run: with_column(run / "parts/rounds-00000004.parquet", "caught", lambda r: "many"),
    "counts are negative": lambda run: with_column(run / "parts/rounds-00000004.parquet", "caught", lambda r: r - 99),
    "accuracy is infinite": lambda run: with_column(
        run / "parts/rounds-00000004.parquet", "accuracy", lambda r: r + np.inf
    ),
    "half a million rounds": lambda run: bomb(run / "parts/rounds-00000004.parquet"),
    "a part is a folder": lambda run: DAMAGES["a folder"](run / "parts/rounds-00000004.parquet", None),
    "parts lead elsewhere": lambda run: (
        (run / "parts").rename(run.parent / "elsewhere"),
        (run / "parts").symlink_to(run.parent / "elsewhere"),
    ),
    "round -5": lambda run: with_metadata(run / "checkpoint.safetensors", round="-5"),
    "round 5 in other digits": lambda run: with_metadata(run / "checkpoint.safetensors", round="\u0665"),
    "round 1000": lambda run: with_metadata(run / "checkpoint.safetensors", round="1000"),
    "step -1": lambda run: with_metadata(run / "checkpoint.safetensors", step="-1"),
    "seconds that are no number": lambda run: with_metadata(run / "checkpoint.safetensors", seconds="nan"),
    "another model": lambda run: reshaped(run / "checkpoint.safetensors"),
    "a folder for a checkpoint": lambda run: DAMAGES["a folder"](run / "checkpoint.safetensors", None),
    "settings too deep": lambda run: (run / "config.toml").write_text("seed = " + "[" * 5000 + "]" * 5000),
    "a learning rate of 400 digits": lambda run: (run / "config.toml").write_text(f"lr = {10**400}"),
    "a number of 6,000 digits": lambda run: (run / "config.toml").write_text(f"seed = 0x{'f' * 5000}"),
    "settings that never end": lambda run: DAMAGES["a device"](run / "config.toml", None),
}
COMPLETE = {
    "a result with NaN": lambda run: rewritten(run / "result.json", lambda r: {**r, "final_accuracy": float("nan")}),
    "a result of text": lambda run: rewritten(run / "result.json", lambda r: {**r, "seconds": "[red]\x1b[31m"}),
    "a result too deep": lambda run: (run / "result.json").write_text("[" * 5000),
    "a result that is a list": lambda run: (run / "result.json").write_text("[]"),
    "a result without figures": lambda run: (run / "result.json").write_text("{}"),
    "a result of thousands of digits": lambda run: (run / "result.json").write_text("9" * 5000),
    "a result that is a folder": lambda run: DAMAGES["a folder"](run / "result.json", None),
    "a result that never ends": lambda run: (
        DAMAGES["a pipe"](run / "result.json", None),
        DAMAGES["a device"](run / "rounds.parquet", None),
    ),
    "a better result": lambda run: rewritten(run / "result.json", lambda r: {**r, "final_accuracy": 99.5}),
    "a result of more rounds": lambda run: rewritten(run / "result.json", lambda r: {**r, "rounds": 60}),
    "a result of another run": lambda run: rewritten(
        run / "result.json", lambda r: {**r, "config": {**r["config"], "rule": "median"}}
    ),
    "records of fewer rounds": lambda run: (
        pd.read_parquet(run / "rounds.parquet").head(4).to_parquet(run / "rounds.parquet")
    ),
    "records are cut": lambda run: os.truncate(run / "clients.parquet", 900),
}


@pytest.mark.parametrize(
    ("state", "change"),
    [
        *(pytest.param("stopped", change, id=name) for name, change in STOPPED.items()),
        *(pytest.param("complete", change, id=name) for name, change in COMPLETE.items()),
    ],
)
def test_a_changed_file_is_told_in_a_line_that_names_it(runs, tmp_path, state, change):
    run = copied(runs / state, tmp_path / "run")
    change(run)
    with within(60):
        told = CliRunner().invoke(app, ["run", "--resume", str(run), "--quiet"], env={"COLUMNS": "1000"})
    assert told.exit_code == 2, told.output + repr(told.exception)
    assert told.stderr.startswith(f"error: {run}/")
    assert told.stderr.count("\n") == 1
    assert "\x1b" not in told.stderr


def test_a_link_for_the_parts_costs_nothing_that_lies_behind_it(runs, tmp_path):
    run = copied(runs / "stopped", tmp_path / "run")
    shutil.rmtree(run / "parts")
    (run / "checkpoint.safetensors").unlink()
    (tmp_path / "thesis.txt").write_text("years of work")
    (run / "parts").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="is a link"):
        resume(run, dataset=digits())
    assert (tmp_path / "thesis.txt").is_file()


@pytest.mark.parametrize("rule", ["fedra", "centered-clipping", "tests.simulation.own:Seniority"])
def test_a_checkpoint_with_one_bit_changed_is_told(tmp_path, rule):
    """Not a single bit of weights, moments, of what a rule remembers or of what is said about them goes unnoticed."""
    rng = np.random.default_rng(5)
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        simulate(replace(CONFIG, rule=rule), out=run, dataset=digits(), observers=[stop_in(4)])
    file = run / "checkpoint.safetensors"
    content = file.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    for at in [*rng.integers(0, header, 60), *rng.integers(header, len(content), 40)]:
        changed = bytearray(content)
        changed[at] ^= 1 << int(rng.integers(8))
        file.write_bytes(changed)
        with pytest.raises(ValueError, match=r"checkpoint\.safetensors cannot be read"):
            resume(run, dataset=digits(), trust=True)


def test_folders_of_an_earlier_version_go_on(runs, tmp_path):
    """Checkpoints had no checksum once, nor had pages of records."""
    run = copied(runs / "stopped", tmp_path / "run")
    with_metadata(run / "checkpoint.safetensors")
    for part in (run / "parts").iterdir():
        pd.read_parquet(part).to_parquet(part)
    assert_same(resume(run, dataset=digits()), uninterrupted())


def assert_same(found, expected):
    pd.testing.assert_frame_equal(found.rounds, expected.rounds, check_exact=True)
    pd.testing.assert_frame_equal(found.clients, expected.clients, check_exact=True)
    ours, theirs = ({k: v for k, v in each.summary.items() if k not in TIMES} for each in (found, expected))
    assert ours == theirs


# What a run took, and what ran it, is not what came of it.
TIMES = ("seconds", "rounds_per_second", "versions", "config")


class Enough(BaseException):
    """A configuration that asks for many rounds gets them; the test need not wait."""


def counting(record, most):
    if record.round > most:
        raise Enough


@pytest.mark.parametrize("seed", range(3))
def test_any_mutation_ends_in_the_same_result_or_in_a_line(runs, tmp_path, capsys, seed):
    rng = np.random.default_rng(seed)
    seen = {"same": 0, "told": 0}
    for number in range(FUZZED // 3):
        state = ("complete", "stopped")[rng.integers(2)]
        run = copied(runs / state, tmp_path / "run")
        file = (files := files_of(run))[rng.integers(len(files))]
        if file.suffix == ".json" and rng.integers(3):
            what = "a value"
            rewritten(file, partial(with_value, rng=rng))
        else:
            what = list(DAMAGES)[rng.integers(len(DAMAGES))]
            DAMAGES[what](file, rng)
        said = f"seed {seed}, number {number}: {state} {file.name}, {what}"
        capsys.readouterr()
        try:
            with within(60), errors_reported():
                result = resume(run, dataset=digits(), observers=[Calling(partial(counting, most=30))])
        except Enough:
            assert file.name == "config.toml", said
        except typer.Exit:
            assert str(run) in capsys.readouterr().err.replace("\n", ""), said
            seen["told"] += 1
        except BaseException as error:
            raise AssertionError(said) from error
        else:
            seen["same"] += 1
            assert len(result.rounds) == result.summary["rounds"], said
            if file.name == "result.json" and what != "a value":
                # A digit of a figure that no record repeats, such as the seconds, may be another.
                pd.testing.assert_frame_equal(result.rounds, uninterrupted().rounds, check_exact=True)
            elif file.name != "config.toml":
                assert_same(result, uninterrupted())
    assert min(seen.values()) > 3
