from __future__ import annotations

import dataclasses
import json
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file
from tests.simulation.watching import Calling, stop_in

from fedra import files
from fedra.data import Dataset, load_dataset
from fedra.simulation import (
    RunFolder,
    SimulationConfig,
    SimulationResult,
    checkpoint,
    read_toml,
    resume,
    round_loop,
    run_folder,
    simulate,
)

CONFIG = SimulationConfig(attack="lie", alpha_q=10, rounds=7, checkpoint_every=3, eval_every=2, num_sampled=10)


@cache
def digits() -> Dataset:
    return load_dataset("digits")


@cache
def uninterrupted() -> SimulationResult:
    return simulate(CONFIG, dataset=digits())


def assert_same(found: SimulationResult, expected: SimulationResult) -> None:
    pd.testing.assert_frame_equal(found.rounds, expected.rounds, check_exact=True)
    pd.testing.assert_frame_equal(found.clients, expected.clients, check_exact=True)
    timing = {"seconds", "rounds_per_second"}
    assert {key: value for key, value in found.summary.items() if key not in timing} == {
        key: value for key, value in expected.summary.items() if key not in timing
    }


class Killed(BaseException):
    """Stands for the end of the process: nothing that comes after it succeeds."""


def test_a_finished_run_leaves_its_files_and_no_others(tmp_path: Path) -> None:
    result = simulate(CONFIG, out=tmp_path / "a" / "run", dataset=digits())
    path = tmp_path / "a" / "run"
    names = {"config.toml", "rounds.parquet", "clients.parquet", "result.json", "checkpoint.safetensors", ".lock"}
    assert {file.name for file in path.iterdir()} == names
    assert SimulationConfig.from_dict(read_toml(path / "config.toml")) == CONFIG
    assert_same(result, uninterrupted())
    pd.testing.assert_frame_equal(pd.read_parquet(path / "rounds.parquet"), result.rounds)
    pd.testing.assert_frame_equal(pd.read_parquet(path / "clients.parquet"), result.clients)


def test_the_result_says_what_was_run_and_what_came_of_it(tmp_path: Path) -> None:
    simulate(CONFIG, out=tmp_path / "run", dataset=digits())
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    for key in (
        "final_accuracy",
        "best_accuracy",
        "filtering_precision",
        "filtering_recall",
        "mean_abs_error_malicious",
    ):
        assert isinstance(result[key], float), key
    assert result["seconds"] > 0
    assert result["rounds_per_second"] > 0
    assert (result["seed"], result["rounds"], result["num_clients"], result["num_malicious_clients"]) == (0, 7, 140, 14)
    assert set(result["versions"]) == {"fedra", "python", "numpy", "numba", "torch"}
    assert SimulationConfig.from_dict(result["config"]) == CONFIG
    assert len(result["weights_sha256"]) == 64


def test_a_finished_run_is_read_not_run_again(tmp_path: Path) -> None:
    simulate(CONFIG, out=tmp_path / "run", dataset=digits())
    before = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "run").iterdir()}
    again = resume(tmp_path / "run", observers=[Calling(lambda record: pytest.fail("a round was run"))])
    assert_same(again, uninterrupted())
    assert before == {file.name: file.stat().st_mtime_ns for file in (tmp_path / "run").iterdir()}


@pytest.mark.parametrize("when", ["during", "after"])
@pytest.mark.parametrize("fatal", range(1, 14))
def test_killed_at_any_write_it_resumes_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fatal: int, when: str
) -> None:
    """The configuration, three checkpoints of three files, and a result of three: `fatal` is the write that kills."""
    written = 0

    def dying(path: Path, write: Any) -> None:
        nonlocal written
        written += 1
        if written > fatal:
            raise Killed
        if written == fatal and when == "during":
            path.with_name(".fedra-0123abcd.new").write_bytes(b"half")
            raise Killed
        honest(path, write)
        if written == fatal:
            raise Killed

    honest = files.write_whole
    path = tmp_path / "run"
    for module in (files, checkpoint, run_folder):
        monkeypatch.setattr(module, "write_whole", dying)
    with pytest.raises(Killed):
        simulate(CONFIG, out=path, dataset=digits())
    for module in (files, checkpoint, run_folder):
        monkeypatch.setattr(module, "write_whole", honest)
    if (path / "config.toml").is_file():
        result = resume(path, dataset=digits())
    else:
        result = simulate(CONFIG, out=path, dataset=digits())
    assert_same(result, uninterrupted())
    assert not list(path.rglob(".fedra-*"))


@pytest.mark.parametrize("number", range(7))
def test_interrupted_after_any_round_no_finished_round_is_lost(tmp_path: Path, number: int) -> None:
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        simulate(CONFIG, out=path, dataset=digits(), observers=[stop_in(number)])
    rounds: list[int] = []
    result = resume(path, dataset=digits(), observers=[Calling(lambda record: rounds.append(record.round))])
    assert rounds == list(range(number + 2, 8))
    assert_same(result, uninterrupted())


def test_interrupted_at_any_line_of_the_loop_it_resumes_to_the_same_bits(tmp_path: Path) -> None:
    config = dataclasses.replace(CONFIG, rounds=2, checkpoint_every=1)
    expected = simulate(config, dataset=digits())
    outer = {round_loop._run.__code__, round_loop._rounds.__code__}
    traced = outer | {inner for code in outer for inner in code.co_consts if hasattr(inner, "co_code")}
    lines = 0
    fatal = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal lines
        if frame.f_code not in traced:
            return None
        if event == "line":
            lines += 1
            if lines == fatal:
                raise KeyboardInterrupt
        return trace

    while True:
        path = tmp_path / str(fatal)
        lines, fatal = 0, fatal + 1
        previous = sys.gettrace()
        sys.settrace(trace)
        try:
            simulate(config, out=path, dataset=digits())
        except KeyboardInterrupt:
            sys.settrace(previous)
        else:
            break
        finally:
            sys.settrace(previous)
        assert_same(resume(path, dataset=digits()), expected)
    assert fatal > 30


def test_a_folder_that_holds_something_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(ValueError, match=r"exists already; choose another --out, or resume it: fedra run --resume"):
        simulate(CONFIG, out=tmp_path, dataset=digits())
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    assert_same(simulate(CONFIG, out=tmp_path, dataset=digits()), uninterrupted())


def test_what_is_no_run_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"is not a run folder: it has no config\.toml"):
        resume(tmp_path)


def interrupted(path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        simulate(CONFIG, out=path, dataset=digits(), observers=[stop_in(4)])


@pytest.mark.parametrize("damage", ["cut", "noise", "empty", "other"])
def test_a_corrupt_checkpoint_is_an_error_with_the_remedy(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "run"
    interrupted(path)
    checkpoint = path / "checkpoint.safetensors"
    if damage == "cut":
        os.truncate(checkpoint, 100)
    elif damage == "noise":
        checkpoint.write_bytes(b"\xff" * 500)
    elif damage == "empty":
        checkpoint.write_bytes(b"")
    else:
        save_file({"weights": np.zeros(3, dtype=np.float32)}, checkpoint)
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors cannot be read \(.+\); remove it to start this run"):
        resume(path, dataset=digits())
    checkpoint.unlink()
    assert_same(resume(path, dataset=digits()), uninterrupted())


def test_a_second_user_of_a_folder_gets_an_error(tmp_path: Path) -> None:
    path = tmp_path / "run"
    interrupted(path)
    with (
        RunFolder.existing(path)[0].locked(),
        pytest.raises(ValueError, match="is in use by another process; wait for it or choose another"),
    ):
        resume(path, dataset=digits())
    assert_same(resume(path, dataset=digits()), uninterrupted())


def test_a_run_that_an_earlier_version_began_goes_on(tmp_path: Path) -> None:
    """Its parts have another name for wrongly rejected clients than those that are written now."""
    path = tmp_path / "run"
    interrupted(path)
    for part in (path / "parts").glob("rounds-*.parquet"):
        pd.read_parquet(part).rename(columns={"wrongly_rejected": "wronged"}).to_parquet(part)
    with pytest.raises(KeyboardInterrupt):
        resume(path, dataset=digits(), observers=[stop_in(5)])
    names = [set(pd.read_parquet(part).columns) for part in sorted((path / "parts").glob("rounds-*.parquet"))]
    assert ["wronged" in columns for columns in names] == [True, True, False]
    result = resume(path, dataset=digits())
    assert_same(result, uninterrupted())
    assert "wrongly_rejected" in pd.read_parquet(path / "rounds.parquet").columns


def test_a_run_that_an_earlier_version_finished_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run"
    simulate(CONFIG, out=path, dataset=digits())
    file = path / "rounds.parquet"
    pd.read_parquet(file).rename(columns={"wrongly_rejected": "wronged"}).to_parquet(file)
    assert_same(resume(path, dataset=digits()), uninterrupted())


def test_a_mistake_leaves_no_folder_behind(tmp_path: Path) -> None:
    config = SimulationConfig(num_sampled=1000)
    with pytest.raises(ValueError, match="has only 140 clients"):
        simulate(config, out=tmp_path / "run", dataset=digits())
    assert not (tmp_path / "run").exists()


@cache
def straight() -> SimulationResult:
    return simulate(dataclasses.replace(CONFIG, rounds=12), dataset=digits())


def assert_extended(found: SimulationResult) -> None:
    """Like a run that was begun with twelve rounds, but for the accuracy where it was to end before, after seven."""
    pd.testing.assert_frame_equal(found.clients, straight().clients, check_exact=True)
    measured = found.rounds["accuracy"].notna()
    assert (found.rounds["round"][measured] + 1).tolist() == sorted([*range(2, 13, 2), *([7] if measured[6] else [])])
    rest = found.rounds.drop(columns=["accuracy", "class_accuracy"])
    expected = straight().rounds.drop(columns=["accuracy", "class_accuracy"])
    pd.testing.assert_frame_equal(rest, expected, check_exact=True)
    assert found.summary["weights_sha256"] == straight().summary["weights_sha256"]
    assert (found.summary["rounds"], found.summary["config"]["rounds"]) == (12, 12)


@pytest.mark.parametrize("stopped_in", [None, 0, 4])
def test_a_run_is_extended_whether_it_was_complete_or_not(tmp_path: Path, stopped_in: int | None) -> None:
    path = tmp_path / "run"
    if stopped_in is None:
        simulate(CONFIG, out=path, dataset=digits())
    else:
        with pytest.raises(KeyboardInterrupt):
            simulate(CONFIG, out=path, dataset=digits(), observers=[stop_in(stopped_in)])
    comments = [line for line in (path / "config.toml").read_text().splitlines() if line.startswith("#")]
    assert_extended(resume(path, dataset=digits(), rounds=12))
    assert [line for line in (path / "config.toml").read_text().splitlines() if line.startswith("#")] == comments
    assert_extended(resume(path, dataset=digits()))
    assert not (path / "parts").exists()


@pytest.mark.parametrize("fatal", range(1, 8))
def test_killed_while_a_run_is_extended_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fatal: int) -> None:
    """Whatever is written or removed when the process ends, the folder is a run of seven rounds or of twelve."""
    path, steps = tmp_path / "run", 0
    simulate(CONFIG, out=path, dataset=digits())

    def step(real: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps >= fatal:
                raise Killed
            return real(*args, **kwargs)

        return counted

    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "write_whole", step(run_folder.write_whole))
        patch.setattr(run_folder, "write_text", step(run_folder.write_text))
        patch.setattr(Path, "unlink", step(Path.unlink))
        try:
            RunFolder.existing(path)[0].extend(CONFIG, 12)
        except Killed:
            assert steps >= fatal
    settings = RunFolder.existing(path)[1]
    found = resume(path, dataset=digits())
    if settings.rounds == 7:
        assert_same(found, uninterrupted())
    assert_extended(resume(path, dataset=digits(), rounds=12))


def test_a_run_cannot_be_made_shorter(tmp_path: Path) -> None:
    simulate(CONFIG, out=tmp_path / "run", dataset=digits())
    with pytest.raises(ValueError, match=r"rounds=3, and .*run is a run of 7 rounds; give more, or none"):
        resume(tmp_path / "run", dataset=digits(), rounds=3)
    with pytest.raises(ValueError, match="rounds=0"):
        resume(tmp_path / "run", dataset=digits(), rounds=0)
    assert_same(resume(tmp_path / "run", dataset=digits(), rounds=7), uninterrupted())
