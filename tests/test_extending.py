"""docs/extending.md, done step by step."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)).splitlines()


def block(text: str) -> str:
    """Return the page's first piece of Python with this in it."""
    return next(found for found in BLOCKS if text in found)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of fedra with the page's file and line added."""
    source = tmp_path_factory.mktemp("extended") / "src"
    # With its caches: compiled kernels need not be compiled again.
    shutil.copytree(ROOT / "src" / "fedra", source / "fedra")
    line, imported = block('"capped-mean": CappedMean'), block("from fedra.rules.capped")
    (source / "fedra" / "rules" / "capped.py").write_text(block("class CappedMean"), encoding="utf-8")
    registry = source / "fedra" / "rules" / "__init__.py"
    text = registry.read_text(encoding="utf-8")
    text = text.replace('    "fedra": FedRA,\n', f'    "fedra": FedRA,\n{line}')
    text = text.replace("from fedra.rules.base", f"{imported}from fedra.rules.base", 1)
    registry.write_text(text, encoding="utf-8")
    return source


def run(package: Path, *arguments: str, cwd: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(package), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_file_and_one_line_make_a_rule(package: Path, tmp_path: Path) -> None:
    code = f"""
import fedra, numpy as np
assert "/src/fedra/" in fedra.__file__ and fedra.__file__.startswith({str(package)!r})
updates = np.array([[0.0], [0.0], [1.0]])
verdict = fedra.make_rule("capped-mean", cap=50)(updates, [50, 50, 1e9])
assert verdict.rule == "capped-mean" and "capped-mean" in fedra.RULES
print(verdict.update[0])
"""
    assert float(run(package, "-c", code, cwd=tmp_path)) == pytest.approx(1 / 3)


def test_the_new_rule_appears_in_the_command_line(package: Path, tmp_path: Path) -> None:
    assert "capped-mean" in run(package, "-m", "fedra", "rules", cwd=tmp_path)
    arguments = ["run", "--rule", "capped-mean", "--rule-param", "cap=50", "--rounds", "2", "--out", "x", "--quiet"]
    run(package, "-m", "fedra", *arguments, cwd=tmp_path)
    assert (tmp_path / "x" / "result.json").is_file()


def test_a_rule_and_an_attack_outside_fedra(tmp_path: Path) -> None:
    (tmp_path / "my_rules.py").write_text(block("class CappedMean"), encoding="utf-8")
    (tmp_path / "my_attacks.py").write_text(block("def sign_flip"), encoding="utf-8")
    arguments = ["run", "--rule", "my_rules:CappedMean", "--attack", "my_attacks:sign_flip"]
    arguments += ["--attack-param", "factor=5", "--alpha-q", "10", "--rounds", "2", "--out", "x", "--quiet"]
    run(ROOT / "src", "-m", "fedra", *arguments, cwd=tmp_path)
    assert (tmp_path / "x" / "result.json").is_file()


def test_a_rule_that_remembers(tmp_path: Path) -> None:
    (tmp_path / "my_memory.py").write_text(block("class SmoothedMedian"), encoding="utf-8")
    printed = run(ROOT / "src", "-c", block("state = verdict.state"), cwd=tmp_path).strip()
    assert f"That prints `{printed}`" in PAGE
    arguments = ["run", "--rule", "my_memory:SmoothedMedian", "--rounds", "2", "--out", "x", "--quiet"]
    run(ROOT / "src", "-m", "fedra", *arguments, cwd=tmp_path)
    assert (tmp_path / "x" / "result.json").is_file()


def test_a_preaggregator(tmp_path: Path) -> None:
    result = run(ROOT / "src", "-c", block("class HalfMean"), cwd=tmp_path).strip()
    assert f"That prints `{result}`" in PAGE


def test_one_file_and_one_line_make_a_data_set(tmp_path: Path) -> None:
    code = (
        block("DATASETS[")
        + """
from fedra.cli import app
app(["run", "--dataset", "stripes", "--rounds", "30", "--out", "x", "--json"])
"""
    )
    result = json.loads(run(ROOT / "src", "-c", code, cwd=tmp_path))
    assert result["final_accuracy"] > 90
    assert result["config"]["dataset"] == "stripes"
    listed = run(ROOT / "src", "-c", block("DATASETS[") + "from fedra.cli import app; app(['data'])", cwd=tmp_path)
    assert "stripes" in listed


def test_a_figure_and_a_table_of_ones_own(tmp_path: Path) -> None:
    grid = 'rules = ["fedavg", "median"]\nattacks = ["none", "lie"]\n[fixed]\nrounds = 2\nnum_sampled = 10\n'
    (tmp_path / "mine.toml").write_text(grid, encoding="utf-8")
    run(ROOT / "src", "-m", "fedra", "grid", "mine.toml", "--quiet", cwd=tmp_path)
    run(ROOT / "src", "-c", block('FIGURES["best"]'), cwd=tmp_path)
    report = tmp_path / "runs" / "mine" / "report"
    page = (report / "report.html").read_text(encoding="utf-8")
    assert (report / "figures" / "best.png").is_file()
    assert "Best accuracy of each rule" in page
    assert "nobody attacks" in page
    (table,) = (report / "tables").glob("*-clean.csv")
    assert {line.split(",")[0] for line in table.read_text(encoding="utf-8").splitlines()[1:]}


def test_a_platform_on_the_server_core(tmp_path: Path) -> None:
    code = (
        block("class SmallServer")
        + """
import numpy as np
from fedra.audit import AuditLog, read_trail

def answers(model, number):
    rng = np.random.default_rng(number)
    steps = model["steps"]
    found = {f"site-{i}": ({"w": model["w"] + 1 + 0.1 * rng.standard_normal(4), "steps": steps}, 20) for i in range(8)}
    found["site-3"] = ({"w": model["w"] - 50, "steps": model["steps"]}, 1e9)
    found["site-5"] = ({"w": model["w"][:2], "steps": model["steps"]}, 20)
    return found

def play(first, last, **options):
    server = SmallServer({"w": np.zeros(4), "steps": np.array(7)}, rule="fedra", **options)
    assert server.server.done == first
    for number in range(first + 1, last + 1):
        record = server.round(number, answers(server.model, number))
        reasons = {client["client"]: client["reason"] for client in record.clients if not client["kept"]}
        assert set(reasons) == {"site-3", "site-5"} and "shape" in reasons["site-5"], reasons
    return server.model

through = play(0, 4, observers=[AuditLog("audit.jsonl")])
play(0, 2, state="state.npz")
resumed = play(2, 4, state="state.npz")
assert through["w"].tobytes() == resumed["w"].tobytes()
assert abs(through["w"] - 4).max() < 0.5 and through["steps"] == 7
assert len(read_trail("audit.jsonl").rounds) == 4
"""
    )
    run(ROOT / "src", "-c", code, cwd=tmp_path)


def test_a_rule_outside_fedra_gets_its_row_in_the_papers_tables(tmp_path: Path) -> None:
    (tmp_path / "my_rules.py").write_text(block("class CappedMean"), encoding="utf-8")
    first, second = COMMANDS[:2]
    assert "my_rules:CappedMean" in run(ROOT / "src", "-m", *shlex.split(first), "--no-report", cwd=tmp_path)
    output = json.loads(run(ROOT / "src", "-m", *shlex.split(second), "--json", cwd=tmp_path))
    rows = [line["row"] for line in output["entries"] if (line["attack"], line["alpha_q"]) == ("lie", 10)]
    assert sorted(rows) == ["Capped at 5", "FedAdam", "FedRA", "my_rules:CappedMean"]
    assert all(line["mean"] is not None for line in output["entries"])
    assert output["missing"] == 6
    assert "Capped at 5" in (tmp_path / "runs" / "paper" / "report" / "report.html").read_text(encoding="utf-8")


def test_an_attack_outside_fedra_gets_its_columns_in_the_papers_tables(tmp_path: Path) -> None:
    (tmp_path / "my_attacks.py").write_text(block("def sign_flip"), encoding="utf-8")
    first, second = COMMANDS[2:]
    assert "my_attacks:sign_flip" in run(ROOT / "src", "-m", *shlex.split(first), "--no-report", cwd=tmp_path)
    output = json.loads(run(ROOT / "src", "-m", *shlex.split(second), "--json", cwd=tmp_path))
    columns = {line["attack"] for line in output["entries"]}
    assert columns == {"label-flip", "lie", "optimize", "my_attacks:sign_flip", "Sign flip, 5", "ipm"}
    assert all(line["mean"] is not None for line in output["entries"])
    assert output["missing"] == 2 * 2 * 2
    assert "Sign flip, 5" in (tmp_path / "runs" / "paper" / "report" / "report.html").read_text(encoding="utf-8")
