"""`fedra data`: what is there, and getting what is not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_type_hints

import pytest
from tests.cli.test_listing import line_of, printed
from tests.data.conftest import write_idx  # noqa: F401
from tests.security.test_hostile_mirrors import CONTENT, mirror, whole
from typer.testing import CliRunner

from fedra.cli import app, data
from fedra.data import DATASETS, RemoteFile, Source


def test_data_sets_are_listed_with_what_to_do(tmp_path: Path) -> None:
    text = printed("data", "--data-dir", str(tmp_path))
    for name in DATASETS:
        line_of(name, text)
    assert "ready" in line_of("digits", text)
    assert f"fedra data get mnist --data-dir {tmp_path}" in line_of("mnist", text)


def test_data_without_a_place_to_put_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEDRA_DATA", raising=False)
    result = CliRunner().invoke(app, ["data", "get", "mnist"])
    assert result.exit_code == 2
    assert "no data directory; give --data-dir DIR, or set FEDRA_DATA" in result.stderr


def test_data_that_cannot_be_downloaded(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["data", "get", "minst", "--data-dir", str(tmp_path)])
    assert result.exit_code == 2
    assert "mnist" in result.stderr


def test_what_is_there_is_listed_with_its_place(tmp_path: Path, write_idx: Callable) -> None:  # noqa: F811
    raw = tmp_path / "MNIST" / "raw"
    write_idx(raw)
    line = line_of("mnist", printed("data", "--data-dir", str(tmp_path)))
    assert "ready" in line
    assert str(raw) in line
    next(raw.iterdir()).unlink()
    assert "partial" in line_of("mnist", printed("data", "--data-dir", str(tmp_path)))


def test_a_download_prints_where_the_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mirror(whole()) as (url, _):
        file = RemoteFile(name="file", md5=hashlib.md5(CONTENT).hexdigest(), size=len(CONTENT))
        spec = replace(DATASETS["mnist"], source=Source(folder="raw", mirrors=(url,), files=(file,)))
        monkeypatch.setitem(DATASETS, "mnist", spec)
        assert printed("data", "get", "mnist", "--data-dir", str(tmp_path)) == f"{tmp_path}/raw/file\n"
    assert (tmp_path / "raw" / "file").read_bytes() == CONTENT


def test_the_help_names_what_can_be_downloaded() -> None:
    text = get_type_hints(data.get, include_extras=True)["name"].__metadata__[0].help
    assert all((name in text) == (spec.source is not None) for name, spec in DATASETS.items() if name != "digits")
