"""The page of one run, and all that is written with it."""

import json

import pytest
from tests.report.page.test_page import Parsed

from fedra.report import Reference, build_report
from fedra.simulation import SimulationConfig, simulate

HOSTILE = """</script><img src=x onerror="document.title='owned'">"""
SETTINGS = {"rule": "fedra", "attack": "lie", "alpha_q": 10.0, "rounds": 6, "eval_every": 2, "num_sampled": 16}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "one"
    simulate(SimulationConfig(**SETTINGS), out=path)
    return path


@pytest.fixture(scope="module")
def report(folder):
    return build_report(folder)


def parsed(report):
    return Parsed(report.page.read_text(encoding="utf-8"))


def test_what_is_written(folder, report):
    assert report.page == folder / "report" / "report.html"
    assert [file.name for file in report.tables] == ["result.csv", "rounds.csv", "clients.csv"]
    assert {file.name for file in report.figures} == {
        f"{name}.{kind}" for name in ("accuracy", "rejections") for kind in ("png", "svg", "pdf")
    }
    assert report.counts == {"done": 1}
    assert report.page.stat().st_size < 200_000


def test_the_page_has_accuracy_rejections_rounds_and_configuration(report):
    page = parsed(report)
    headings = [element["text"] for element in page.all("h2")]
    assert headings[:3] == ["Accuracy over rounds", "Whom the rule rejected", "Round by round"]
    assert headings[-1] == "Configuration"
    assert page.all("h1")[0]["text"] == "Run one"
    assert (
        "It is known who is malicious because the federation is simulated"
        in page.all("section", id="overview")[0]["text"]
    )
    command = page.all("code")[0]["text"]
    assert command.startswith("fedra run --num-sampled 16 --attack lie --alpha-q 10")
    rounds = [row for row in page.all("tr") if "section" in row["inside"] and row["text"][:1].isdigit()]
    assert len(rounds) >= 6
    data = json.loads(page.all("script", id="data")[0]["text"])["run"]
    assert data["accuracy"]["rounds"] == [2, 4, 6]
    assert data["published"] is None
    assert data["series"][0]["name"] == "malicious clients in the round"
    assert "published" not in page.all("main")[0]["text"].lower()


def test_a_published_figure_is_beside_it_where_there_is_one(folder, tmp_path):
    made = build_report(folder, tmp_path, reference=Reference(source="Somebody", published=lambda _outcome: 97.5))
    page = parsed(made)
    assert json.loads(page.all("script", id="data")[0]["text"])["run"]["published"] == 97.5
    assert "Published: Somebody." in page.all("section", id="accuracy")[0]["text"]


def test_the_summary(report):
    text = report.summary.read_text(encoding="utf-8")
    assert text.startswith("# Run one\n")
    assert "| rounds | 6 of 6 |" in text
    assert "## Configuration" in text
    assert "![Whom the rule rejected.](figures/rejections.png)" in text


def test_hostile_settings_stay_text(folder, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in folder.glob("*.*"):
        (copy / file.name).write_bytes(file.read_bytes())
    config = (copy / "config.toml").read_text(encoding="utf-8").replace('"lie"', json.dumps(f"x:{HOSTILE}"))
    (copy / "config.toml").write_text(config, encoding="utf-8")
    made = build_report(copy, title=HOSTILE, figures=False)
    page = parsed(made)
    assert len(page.all("script")) == 2
    assert not page.all("img")
    assert not [key for element in page.elements for key in element if key.startswith("on")]
    assert page.all("h1")[0]["text"] == HOSTILE
    assert HOSTILE in page.all("code")[0]["text"].replace("'\"'\"'", "'")


def test_compact_results_are_those_of_a_grid(folder, tmp_path):
    with pytest.raises(ValueError, match="is one run; leave --compact out"):
        build_report(folder, tmp_path / "out", compact=tmp_path / "small")
    assert not list(tmp_path.iterdir())


def test_the_same_run_gives_the_same_bytes(folder, report, tmp_path):
    again = build_report(folder, tmp_path)
    for first, second in zip(
        [report.page, report.summary, *report.tables, *report.figures],
        [again.page, again.summary, *again.tables, *again.figures],
        strict=True,
    ):
        assert first.read_bytes() == second.read_bytes(), first.name
