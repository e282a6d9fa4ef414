"""docs/contest.md stays true: its command runs, its flags and settings are there, its tables are the committed ones."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from fedra.cli import app
from fedra.contest import Contest, read_programme
from fedra.experiments import Results

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "contest"
PAGE = (ROOT / "docs" / "contest.md").read_text(encoding="utf-8")
QUOTED = {
    page: dict(re.findall(r"<!-- ((?:contest|assumption)-[a-z0-9-]+) -->\n(.*?)<!-- /\1 -->", text, re.DOTALL))
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if (text := page.read_text(encoding="utf-8"))
}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        import contest
    return contest


def test_the_first_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[0].replace("--rounds 10", "--rounds 2")
    done = CliRunner().invoke(app, [*shlex.split(first)[1:], "--workers", "1", "--no-report"])
    assert done.exit_code == 0, done.output


def test_flags_and_settings_on_the_page_are_there() -> None:
    known = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["contest", "--help"]).output
    flags = set(re.findall(r"--[a-z][a-z-]+", PAGE))
    assert all(flag in known for flag in flags), flags
    section = PAGE.split("| `--settings` | what |\n|---|---|\n")[1].split("\n\n")[0]
    first_cells = [line.split("|")[1] for line in section.splitlines()]
    assert set(re.findall(r"`([a-z0-9-]+)`", " ".join(first_cells))) == set(read_programme().settings)


def test_the_page_names_the_rules_and_attacks_of_the_programme() -> None:
    rows = {line.split("|")[1].strip(): line for line in PAGE.splitlines() if line.startswith("| ")}
    assert len(rows["rules"].split("|")[2].split(",")) == len(read_programme().rules)
    assert len(rows["attacks"].split("(")[0].split(",")) == len(read_programme().attacks)


def test_every_place_for_a_table_has_the_committed_one(script: ModuleType) -> None:
    assert QUOTED[ROOT / "docs" / "contest.md"].keys() >= {"contest-leaderboard", "contest-broken-leaderboard"}
    texts = script.committed()
    for page, places in QUOTED.items():
        for name, text in places.items():
            assert text.strip() == texts.get(name, ""), f"{page.name}: {name}; run make reproduction"


def test_tables_are_found_by_the_names_that_pages_use(script: ModuleType) -> None:
    from tests.contest.contest_results import contest_results

    names = script.texts(contest_results(Contest(settings=tuple(read_programme().settings)), Contest(broken=True)))
    quoted = {name for places in QUOTED.values() for name in places}
    assert quoted - {f"contest-{script.SEARCH}"} <= names.keys()
    assert {"contest-mnist-iid", "assumption-broken-mnist-iid", "contest-broken-clients"} <= names.keys()


def test_committed_results_say_nothing_of_this_machine() -> None:
    if RESULTS.is_dir():
        assert not Results.read(RESULTS).cells["config"].str.contains("data_dir").any()
