from __future__ import annotations

import importlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from safetensors.numpy import load_file
from tests.strategies import make_round
from tests.updates import written
from typer.testing import CliRunner, Result

import fedra
from fedra.audit import read_trail
from fedra.cli import app
from fedra.cli import console as shared

# The package has the command of the same name in its place.
command = importlib.import_module("fedra.cli.aggregate")
NUMBER = 9
ROUND = make_round(1, NUMBER, 1000, np.float32, base=1.0)
CLAIMS = [100 + place for place in range(NUMBER)]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written.clients(Path(), ROUND.updates, [600, 400])
    lines = [f"client{place},{claim}\n" for place, claim in enumerate(CLAIMS)]
    Path("q.csv").write_text("".join(lines))


def call(*arguments: str, clients: int = NUMBER) -> Result:
    paths = [f"client{place}.safetensors" for place in range(clients)]
    return CliRunner().invoke(app, ["aggregate", *paths, *arguments])


def done(*arguments: str) -> str:
    result = call("--quantities", "q.csv", "--out", "new.safetensors", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def mistake(*arguments: str) -> str:
    """Return the one line that a mistake gets; nothing was written."""
    before = sorted(Path().rglob("*"))
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert sorted(Path().rglob("*")) == before
    return result.stderr


def result_of(path: str = "new.safetensors") -> bytes:
    arrays = load_file(path)
    return b"".join(arrays[name].tobytes() for name in sorted(arrays))


def test_a_round_from_files_to_a_file() -> None:
    printed = done()
    expected = fedra.Concord()(ROUND.updates, CLAIMS)
    assert expected.update is not None
    assert result_of() == expected.update.tobytes()
    assert f"concord: {int(expected.kept.sum())} of 9 clients kept" in printed
    assert printed.splitlines()[-1] == "wrote new.safetensors"
    assert sorted(path.name for path in Path().iterdir() if "client" not in path.name) == ["new.safetensors", "q.csv"]


def test_explain_prints_the_verdict_and_appends_to_the_audit() -> None:
    printed = done("--explain")
    assert "behaves like" in printed
    assert "client4 " in printed
    done("--explain")
    trail = read_trail("new.safetensors.audit.jsonl")
    assert trail.unreadable == 0
    assert len(trail.rounds) == 2
    assert [client["client"] for client in trail.clients[:NUMBER]] == [f"client{i}" for i in range(NUMBER)]
    line = json.loads(Path("new.safetensors.audit.jsonl").read_text().splitlines()[0])
    assert len(line["files"][0]["sha256"]) == 64


def test_an_audit_trail_of_ones_own() -> None:
    printed = done("--audit", "trail.jsonl")
    assert "audit: trail.jsonl" in printed
    assert len(read_trail("trail.jsonl").clients) == NUMBER


def test_json() -> None:
    found: dict[str, Any] = json.loads(done("--json"))
    assert found["out"] == "new.safetensors"
    assert found["kept"] + found["rejected"] == NUMBER
    assert found["clients"][0]["files"][0]["path"] == "client0.safetensors"
    assert found["resumed_blocks"] == 0
    assert json.loads(done("--json", "--no-checksum"))["clients"][0]["files"][0]["sha256"] is None


def test_a_dry_run_looks_and_writes_nothing() -> None:
    Path("client2.safetensors").write_bytes(b"nothing")
    before = sorted(Path().rglob("*"))
    printed = done("--dry-run")
    assert "client2 claims 102: 'client2.safetensors' holds 7 bytes" in printed
    assert "8 of 9 clients can be read: 2 tensors, 1,000 values; concord would write new.safetensors" in printed
    plan = json.loads(done("--dry-run", "--json"))
    assert plan["values"] == 1000
    assert plan["clients"][2]["problem"]
    assert sorted(Path().rglob("*")) == before


def test_rules_their_parameters_and_what_stands_before_them() -> None:
    done("--rule", "trimmed-mean", "--rule-param", "num_malicious=2", "--before", "nnm", "--quiet")
    rule = fedra.make_rule("trimmed-mean", before="nnm", num_malicious=2)
    assert result_of() == rule(ROUND.updates, CLAIMS).update.tobytes()  # type: ignore[union-attr]


def test_rules_that_ignore_quantities_need_none() -> None:
    result = call("--rule", "median", "--out", "new.safetensors")
    assert result.exit_code == 0, result.output
    assert result_of() == fedra.Median()(ROUND.updates, CLAIMS).update.tobytes()  # type: ignore[union-attr]


def test_models_in_a_model_out() -> None:
    base = {"t000": np.ones(600, np.float32), "t001": np.ones(400, np.float32)}
    written.write_safetensors(Path("base"), base)
    done("--base", "base.safetensors", "--rule", "median")
    update = fedra.Median()(ROUND.updates - np.float32(1), CLAIMS).update
    assert update is not None
    assert result_of() == (np.ones(1000, np.float32) + update).tobytes()


def test_left_out_clients_are_told_of() -> None:
    updates = ROUND.updates.copy()
    updates[3, 5] = np.nan
    written.clients(Path(), updates, [600, 400])
    assert "left out: client3, which claims 103: update holds values that are not finite" in done()


def test_no_result_is_exit_code_one() -> None:
    written.clients(Path(), np.full((NUMBER, 1000), np.nan, np.float32), [600, 400])
    result = call("--quantities", "q.csv", "--out", "new.safetensors")
    assert result.exit_code == 1
    assert "no result was written" in result.stdout
    assert not Path("new.safetensors").exists()


def test_mistakes_get_one_line() -> None:
    out = ("--out", "new.safetensors")
    assert "rule 'concord' looks at what clients claim; give --quantities FILE" in mistake(*out)
    assert "ends in .safetensors" in mistake("--quantities", "q.csv", "--out", "new.bin")
    assert "unknown rule 'fedar'" in mistake(*out, "--rule", "fedar")
    assert "--server-lr 2 is for models" in mistake(*out, "--quantities", "q.csv", "--server-lr", "2")
    assert "base missing.npz: there is no file 'missing.npz'" in mistake(
        *out, "--quantities", "q.csv", "--base", "missing.npz", "--dry-run"
    )
    Path("short.csv").write_text("client0,5\n")
    assert "nothing for client1.safetensors" in mistake(*out, "--quantities", "short.csv")


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_line_of_progress_fits_a_narrow_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(command, "errors", Console(file=screen, width=width, force_terminal=True, legacy_windows=False))
    monkeypatch.setattr(command, "is_terminal", lambda: True)
    with command._progress(quiet=False) as step:
        for done_ in range(11):
            step("pass 12", done_ * 1_600_000_000, 16_000_000_000)
    plain = Console(width=width).render_str(screen.getvalue().replace("\x1b", ""), markup=False).plain
    assert "pass 12" in plain
    assert "\N{HORIZONTAL ELLIPSIS}" not in plain
    assert "16.0 GB" in plain
    assert "GB/s" in plain or "?" in plain


def test_without_a_terminal_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(shared, "errors", Console(file=screen, width=80))
    monkeypatch.setattr(shared, "SECONDS_BETWEEN_LINES", -1.0)
    with command._progress(quiet=False) as step:
        step("pass 1", 800_000_000, 1_600_000_000)
    assert screen.getvalue() == "pass 1: 0.8 of 1.6 GB\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ray-address", "10.0.0.1:6379"], "--ray-address 10.0.0.1:6379 is for --engine ray; this is --engine local"),
        (["--workers", "3"], "--workers 3 is for --engine ray; this is --engine local"),
        (["--engine", "ray", "--threads", "2"], "--threads 2 is for --engine local; this is --engine ray"),
        (["--engine", "ray", "--ray-address", "127.0.0.1:1"], "there is no Ray cluster at 127.0.0.1:1"),
        (["--engine", "ray", "--rule", "nothing"], "nothing"),
    ],
)
def test_engines_are_checked_before_any_work(options: list[str], message: str) -> None:
    assert message in mistake("--quantities", "q.csv", "--out", "new.safetensors", *options)
