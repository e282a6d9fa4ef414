"""What is around the code: workflows, citation and templates say what is true."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import fedra

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def loaded(path: Path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_tests_run_on_every_python_that_is_promised() -> None:
    matrix = loaded(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["test"]["strategy"]["matrix"]
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert matrix["python"] == promised
    assert {name.partition("-")[0] for name in matrix["system"]} == {"ubuntu", "macos"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_only_read_but_to_publish(path: Path) -> None:
    workflow = loaded(path)
    assert workflow["permissions"] == {"contents": "read"}
    more = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    assert more == ({"publish": {"id-token": "write"}} if path.stem == "build" else {})
    assert "secrets." not in path.read_text(encoding="utf-8")


def test_what_workflows_make_is_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    wanted = {
        name for path in WORKFLOWS for name in re.findall(r"run: make ([a-z-]+)", path.read_text(encoding="utf-8"))
    }
    assert wanted <= targets
    assert wanted >= {"test", "check", "docs", "build", "install"}


def test_the_version_is_stated_once() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert (ROOT / PROJECT["tool"]["hatch"]["version"]["path"]).samefile(fedra.__file__)
    assert "version" not in loaded(ROOT / "CITATION.cff")


def test_the_citation_names_software_and_paper() -> None:
    citation = loaded(ROOT / "CITATION.cff")
    assert (citation["cff-version"], citation["type"], citation["title"]) == ("1.2.0", "software", "fedra")
    assert citation["license"] == PROJECT["project"]["license"]
    (paper,) = citation["references"]
    assert paper["year"] == 2023
    assert [author["family-names"] for author in paper["authors"]] == ["Yi", "Wu", "Zhang", "Zhu", "Sun", "Xie"]


def test_issue_forms_have_what_a_form_needs() -> None:
    for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")):
        form = loaded(path)
        if path.stem != "config":
            assert {"name", "description", "body"} <= form.keys()
            assert all(part["type"] == "markdown" or part["id"] for part in form["body"])
