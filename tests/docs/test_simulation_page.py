"""docs/simulation.md, done from top to bottom in an empty directory."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from fedra.cli import app
from fedra.simulation import SimulationConfig

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "simulation.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}


def in_this_process(commands: str) -> None:
    """Run lines of `fedra ...` as the shell would, without starting an interpreter for each."""
    for line in commands.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "fedra", line
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, f"{line}\n{done.output}"


def in_a_shell(commands: str) -> None:
    done = subprocess.run(["bash", "-ec", commands], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"


@pytest.fixture
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield
    for name in {"my_rules", "my_memory", "my_attacks", "my_data", "my_models"} - before:
        sys.modules.pop(name, None)


def is_install(language: str, text: str) -> bool:
    return language == "sh" and text.startswith("pip install")


def needs_download(text: str) -> bool:
    return "--dataset mnist" in text


@pytest.mark.usefixtures("_elsewhere")
def test_every_snippet_runs_in_order() -> None:
    names: dict[str, Any] = {}
    run_next = in_a_shell
    for language, text in SNIPPETS:
        if is_install(language, text) or needs_download(text):
            continue
        file = re.match(r"# ([\w.]+)\n", text)
        if file:
            Path(file[1]).write_text(text, encoding="utf-8")
        elif language == "sh":
            run_next(text)
            run_next = in_this_process
        else:
            assert language == "python", language
            exec(text, names)
    for run in (
        "first",
        "captured",
        "from-file",
        "hospitals",
        "zipf",
        "no-twins",
        "regulars",
        "blurred",
        "wine",
        "small",
    ):
        assert (Path("runs") / run / "result.json").is_file(), run
    check_table(names["table"])


def check_table(found: pd.DataFrame) -> None:
    """The page's table is what its snippet prints, but for what another machine may round otherwise."""
    lines = re.search(r"<!-- table -->\n(.*?)<!-- /table -->", PAGE, re.DOTALL)[1].strip().splitlines()  # type: ignore[index]
    cells = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in [lines[0], *lines[2:]]]
    stated = pd.DataFrame([row[1:] for row in cells[1:]], index=[row[0] for row in cells[1:]], columns=cells[0][1:])
    pd.testing.assert_frame_equal(stated.astype(float), found, atol=4.0, check_names=False)
    assert found.loc["fedra"].min() > 90
    assert found.loc["my_rules:NoTwins", "lie"] > 90
    assert found.loc["fedavg", ["lie", "optimize", "my_attacks:blurred_reverse"]].max() < 80
    assert found.loc["my_rules:NoTwins", "my_attacks:blurred_reverse"] < 20


def test_what_is_installed_is_there_to_install() -> None:
    (line,) = (text for language, text in SNIPPETS if is_install(language, text))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert re.fullmatch(r'pip install "fedra\[(\w+)\]"\n', line)[1] in extras  # type: ignore[index]


@pytest.mark.slow
@pytest.mark.skipif("FEDRA_DATA" not in os.environ, reason="needs the real files")
@pytest.mark.usefixtures("_elsewhere")
def test_the_run_on_real_data() -> None:
    (command,) = (text for _, text in SNIPPETS if needs_download(text))
    in_a_shell(command.replace("--rounds 250", "--rounds 10"))
    assert (Path("runs") / "mnist" / "result.json").is_file()


def test_settings_on_the_page_are_settings() -> None:
    section = PAGE.split("## What can be set")[1].split("\n## ")[0]
    first_cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = set(re.findall(r"`(\w+)`", " ".join(first_cells)))
    valid = {field.name for field in fields(SimulationConfig)}
    assert named <= valid
    assert valid - named == {"dataset_params", "optimizer_params"}
