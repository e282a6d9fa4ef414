"""The example app as Flower Hub takes it: checked by what `flwr app publish` and `flwr build` check."""

from __future__ import annotations

import io
import re
import tomllib
import zipfile
from pathlib import Path

import pytest
from flwr.cli.build import build_fab_from_disk
from flwr.cli.config_utils import load_and_validate
from flwr.cli.utils import collect_files, filter_paths_for_publish, validate_project_name

ROOT = Path(__file__).parents[2]
APP = ROOT / "examples" / "flower-mnist"
PROJECT = tomllib.loads((APP / "pyproject.toml").read_text(encoding="utf-8"))


def test_its_metadata_are_valid_without_a_warning() -> None:
    _, warnings = load_and_validate(APP / "pyproject.toml", check_module=False)
    assert warnings == []
    validate_project_name(APP.name, "directory")
    assert 0 < len(PROJECT["project"]["description"]) <= 200


def test_it_names_the_flower_that_fedra_is_tested_with() -> None:
    app = PROJECT["tool"]["flwr"]["app"]
    (tested,) = re.findall(r"(?m)^flwr==(.+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"))
    assert (app["fab-format-version"], app["flwr-version-target"]) == (1, tested)
    fedra = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (wanted,) = (line for line in fedra["project"]["optional-dependencies"]["flower"] if line.startswith("flwr"))
    assert wanted in PROJECT["project"]["dependencies"]


def test_its_licence_is_fedras() -> None:
    assert (APP / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("name", ["LICENSE", "README.md", "pyproject.toml", "flower_mnist/server_app.py"])
def test_what_is_uploaded_and_bundled(name: str) -> None:
    uploaded = filter_paths_for_publish(collect_files(APP))
    bundle = zipfile.ZipFile(io.BytesIO(build_fab_from_disk(APP)))
    assert name in uploaded
    assert name in bundle.namelist()
