"""A name leads to code that is no rule, attack, data set or model: it is looked at before it is called, and refused."""

from __future__ import annotations

import builtins
import inspect
import os
import runpy
import shutil
import subprocess
import sys
import types
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from typer.testing import CliRunner

from fedra.attacks import make_attack
from fedra.cli import app
from fedra.data import load_dataset
from fedra.models import build_model
from fedra.rules import make_rule

KINDS: dict[str, Callable[[str], object]] = {
    "rule": make_rule,
    "attack": make_attack,
    "dataset": load_dataset,
    "model": lambda name: build_model(name, input_shape=(2,), num_classes=2, seed=0),
}


def harmless(dangerous: Any, called: list[str], name: str) -> Any:
    """Something that is called like a dangerous thing, and only says that it was."""

    def told(*arguments: Any, **options: Any) -> None:
        called.append(name)

    if isinstance(dangerous, type):
        return type(dangerous.__name__, (), {"__init__": told})
    try:
        told.__signature__ = inspect.signature(dangerous)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        told.__signature__ = "none"  # type: ignore[attr-defined]
    return told


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_another_kind_is_called(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    tried = 0
    for module in (os, subprocess, shutil, builtins, webbrowser, runpy):
        stand_in = types.ModuleType("stand_in")
        monkeypatch.setitem(sys.modules, "stand_in", stand_in)
        for name, found in vars(module).items():
            if callable(found) and name.isidentifier():
                setattr(stand_in, name, harmless(found, called, name))
                with pytest.raises((ValueError, TypeError), match=f"stand_in:{name}"):
                    KINDS[kind](f"stand_in:{name}")
                tried += 1
    assert not called
    assert tried > 400


PARAMETERS: dict[str, dict[str, Any]] = {
    "attack": {"attack_params": {"args": ["touch", "started"]}},
    "model": {"model_params": {"args": ["touch", "started"]}},
    "dataset": {"dataset_params": {"shell": True}, "data_dir": "touch started"},
    "rule": {"rule_params": {"args": ["touch", "started"]}},
}


@pytest.mark.parametrize(
    "name", ["subprocess:Popen", "subprocess:call", "subprocess:getoutput", "os:system", "os:popen"]
)
def test_no_process_is_started_even_where_the_file_is_trusted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run").mkdir()
    for setting, parameters in PARAMETERS.items():
        text = tomli_w.dumps({"rounds": 1, "num_sampled": 10, setting: name, **parameters})
        Path("run/config.toml").write_text(text, encoding="utf-8")
        told = CliRunner().invoke(app, ["run", "--resume", "run", "--trust"])
        assert told.exit_code == 2, told.output
        assert name in told.stderr
        assert not Path("started").exists()
