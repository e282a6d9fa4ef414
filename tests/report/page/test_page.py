import base64
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import pandas as pd
import pytest
from tests.report import synthetic

from fedra.experiments import Results
from fedra.report import Extension, ReportData
from fedra.report.model.outcomes import wrongly_rejected
from fedra.report.page import write_page
from fedra.report.page.views import difference_text

VOID = {"meta", "img", "input", "br"}


class Parsed(HTMLParser):
    """All elements in order, with attributes and the text that is directly or indirectly inside."""

    def __init__(self, text):
        super().__init__()
        self.elements, self._open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "text": "", "inside": [outer["tag"] for outer in self._open], **dict(attrs)}
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag):
        assert self._open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self._open:
            element["text"] += data

    def all(self, tag, **attributes):
        wanted = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
        return [e for e in self.elements if e["tag"] == tag and all(e.get(k) == v for k, v in wanted.items())]


def written(path, found, published=(), tables=(), **others):
    extension = others.pop("extension", Extension(heading="The paper's tables", tables=tuple(published)))
    write_page(path, ReportData.of(found), extension, tables, title="A report", source="Somebody", **others)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    _, extension, tables = synthetic.report(synthetic.results())
    path = tmp_path_factory.mktemp("page") / "report.html"
    return written(path, synthetic.results(), extension=extension, tables=tables)


@pytest.fixture(scope="module")
def parsed(page):
    return Parsed(page)


@pytest.fixture(scope="module")
def data(parsed):
    return json.loads(parsed.all("script", id="data")[0]["text"])


def entry_buttons(parsed):
    return {tuple(map(int, e["data-at"].split(","))): e for e in parsed.all("button", class_="cell")}


def test_every_entry_shows_its_figures(parsed):
    buttons = entry_buttons(parsed)
    entries = 0
    for number, table in enumerate(synthetic.tables(synthetic.results())):
        for at, row in enumerate(table.rows):
            for place, entry in enumerate(row.entries):
                if entry is None:
                    assert (number, at, place) not in buttons
                    continue
                entries += 1
                text = buttons[number, at, place]["text"]
                assert f"{entry.published:.2f}" in text
                if entry.mean is not None:
                    assert f"{entry.mean:.2f}" in text
                    assert difference_text(entry.difference) in text
                if entry.std is not None:
                    assert f"± {entry.std:.2f}" in text
    assert entries > 140


def test_the_best_of_a_column_is_marked(parsed):
    table = synthetic.tables(synthetic.results())[0]
    for place in range(len(table.columns)):
        means = [row.entries[place].mean for row in table.rows]
        best = means.index(max(means))
        cells = [e for e in parsed.all("td") if "best" in e.get("class", "").split()]
        assert any(f"{means[best]:.2f}" in cell["text"] for cell in cells)
        for at, mean in enumerate(means):
            if round(mean, 2) != round(means[best], 2):
                assert not any(cell["text"] == entry_buttons(parsed)[0, at, place]["text"] for cell in cells)


def test_colours_follow_the_size_and_sign_of_the_difference(tmp_path):
    found = synthetic.results()
    table = synthetic.tables(found)[0]
    entry = dataclasses.replace(table.rows[0].entries[0], mean=50.0)
    steps = {50.4: "even", 49.2: "up1", 51.3: "down1", 47.1: "up2", 44.2: "up3", 70.1: "down4", 30.1: "up4"}
    for published, colour in steps.items():
        row = dataclasses.replace(table.rows[0], entries=(dataclasses.replace(entry, published=published),))
        one = dataclasses.replace(table, columns=table.columns[:1], rows=(row,))
        cells = Parsed(written(tmp_path / "page.html", found, [one])).all("td")
        assert [cell["class"] for cell in cells if str(published) in cell["text"]] == [colour]


def test_failed_missing_and_absent_cells_are_shown_as_such(tmp_path, parsed):
    found = synthetic.results(seeds=1)
    one_seed = Parsed(written(tmp_path / "page.html", found, synthetic.tables(found)))
    states = [e["text"] for e in one_seed.all("span") if "state" in e.get("class", "")]
    assert sorted(states) == ["failed", "missing", "not run", "not run"]
    assert [e["text"].strip() for e in parsed.all("small", class_="part")] == ["1/2"] * 3
    assert "2 runs failed" in [e["text"] for e in parsed.all("div")]
    assert any(synthetic.ERROR in e["text"] for e in parsed.all("details"))


def test_hostile_labels_stay_text(page, parsed):
    assert len(parsed.all("script")) == 2
    assert not parsed.all("img")
    assert not [key for e in parsed.elements for key in e if key.startswith("on")]
    assert [e["text"] for e in parsed.all("h3") if "study" in e["text"]] == [f"study-variance {synthetic.HOSTILE}"]
    assert page.count("</script") == 2
    assert page.count("<title>") == 1


def test_links_lead_to_the_tables_and_have_their_titles(tmp_path):
    found = synthetic.results()
    odd = dataclasses.replace(synthetic.tables(found)[0], key="a b", title="Table 2: <b>, IID", dataset="<b>")
    page = written(tmp_path / "page.html", found, [odd])
    assert 'href="#a%20b" title="Table 2: &lt;b&gt;, IID">&lt;b&gt;' in page


def test_it_refers_to_nothing_outside_itself(page, parsed):
    addresses = [e[key] for e in parsed.elements for key in ("src", "href", "srcset", "action", "data") if key in e]
    # What a hostile label calls src is text; every true address is a place in the page.
    assert addresses
    assert all(address.startswith("#") for address in addresses)
    assert set(re.findall(r"https?://[^\s\"'`]+", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|import\(", page)


def test_the_policy_allows_exactly_the_script_and_style_of_the_page(page, parsed):
    policy = parsed.all("meta", http_equiv="Content-Security-Policy")[0]["content"]
    assert policy.startswith("default-src 'none'")
    for tag, name in (('script type="module"', "script-src"), ("style", "style-src")):
        text = re.search(f"<{tag}>(.*?)</{tag.split()[0]}>", page, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    assert not [e for e in parsed.elements if "style" in e]


def test_links_lead_to_tables_and_cells_have_links_of_their_own(parsed):
    ids = {e["id"] for e in parsed.elements if "id" in e}
    assert {e["href"][1:] for e in parsed.all("a")} <= ids
    links = [e["data-cell"] for e in parsed.all("button", class_="cell")]
    assert len(set(links)) == len(links)
    assert "table2-mnist~FedRA~LIE~10" in links


def test_added_sections_are_there(parsed):
    section = parsed.all("section", id="winners")[0]["text"]
    assert (section.count("✓ same"), section.count("✗ differs")) == (1, 1)
    assert f"1 of 2 the same {synthetic.HOSTILE}" in section


def test_curves_and_scores_come_with_their_runs(data):
    found = synthetic.results()
    runs = {run["name"]: run for run in data["runs"]}
    shown = (*synthetic.tables(found), *synthetic.studies(found))
    assert set(runs) == {run for table in shown for row in table.rows for e in row.entries if e for run in e.runs}
    name = "mnist-iid-fixed-fedra-lie-q10-seed1"
    lines = found.curves[found.curves["run"] == name]
    run = runs[name]
    assert data["pool"][run["rounds"]] == lines["round"].tolist()
    assert run["accuracy"] == pytest.approx(lines["accuracy"].tolist(), abs=0.0051)
    precision = lines["caught"] / (lines["caught"] + wrongly_rejected(lines))
    assert run["precision"] == pytest.approx(precision.tolist(), abs=0.00051)
    recall = lines["caught"] / (lines["caught"] + lines["missed"])
    assert run["recall"] == pytest.approx(recall.tolist(), abs=0.00051)
    assert run["estimate"] == pytest.approx(lines["estimate_error"].tolist(), abs=0.0051)
    scores = found.scores[found.scores["run"] == name]
    assert [sum(counts) for counts in run["scores"]] == scores.groupby("malicious")["count"].sum().tolist()
    for line in scores.itertuples():
        at = data["bins"].index([round(line.low, 4), round(line.high, 4)])
        assert run["scores"][line.malicious][at] == line.count
    plain = runs["mnist-iid-fixed-fedavg-lie-q0-seed0"]
    assert "scores" not in plain
    assert set(plain["precision"]) == set(plain["estimate"]) == {None}
    assert set(plain["recall"]) == {0.0}


def test_the_same_results_give_the_same_bytes(tmp_path):
    found = synthetic.results()
    first, second = (written(tmp_path / f"{n}.html", found, synthetic.tables(found)) for n in "ab")
    assert first == second


def test_it_stays_small(tmp_path):
    found = synthetic.results(seeds=4)
    assert len(found.cells) > 600
    page = written(tmp_path / "page.html", found, synthetic.tables(found), tables=synthetic.studies(found))
    assert len(page.encode()) < 2_000_000


def test_an_own_rule_is_marked(tmp_path):
    found = synthetic.results()
    (study,) = synthetic.studies(found)
    own = dataclasses.replace(study, rows=(study.rows[0], dataclasses.replace(study.rows[1], own=True)))
    page = Parsed(written(tmp_path / "page.html", found, tables=[own]))
    assert [row["text"].startswith(synthetic.HOSTILE) for row in page.all("tr", class_="own")] == [True]
    rows = json.loads(page.all("script", id="data")[0]["text"])["tables"][0]["rows"]
    assert [(row.get("own"), row.get("faint")) for row in rows] == [(None, True), (True, None)]


def test_without_published_figures_nothing_is_said_of_them(tmp_path):
    found = synthetic.results()
    page = written(tmp_path / "page.html", found, tables=synthetic.studies(found))
    body = page.partition("</style>")[2].partition('<script type="module">')[0]
    assert not re.search("published|paper|Somebody", body)
    compared = Parsed(written(tmp_path / "page.html", found, synthetic.tables(found)))
    assert "Published: Somebody." in compared.all("details", class_="reading")[0]["text"]


def test_a_report_of_nothing_is_a_page(tmp_path):
    found = synthetic.results()
    empty = Results(cells=found.cells[:0], curves=found.curves[:0], scores=found.scores[:0])
    page = Parsed(written(tmp_path / "page.html", empty, []))
    assert "0 cells" in [e["text"] for e in page.all("div")]
    assert not page.all("button", class_="cell")


def test_the_switch_is_there_only_where_there_is_something_to_compare(tmp_path, parsed):
    found = synthetic.results()
    assert len(parsed.all("input", type="radio")) == 3
    page = Parsed(written(tmp_path / "page.html", found, [], tables=synthetic.studies(found)))
    assert page.all("button", class_="cell")
    assert not page.all("input")
    assert not page.all("section", id="tables")


def test_a_run_that_the_results_do_not_have_is_missing(tmp_path):
    found = synthetic.results()
    page = written(
        tmp_path / "page.html",
        Results(cells=found.cells[:0], curves=found.curves[:0], scores=found.scores[:0]),
        synthetic.tables(found)[:1],
    )
    data = json.loads(Parsed(page).all("script", id="data")[0]["text"])
    assert {run["status"] for run in data["runs"]} == {"missing"}


def test_where_data_lie_is_not_told(tmp_path):
    found = synthetic.results()
    configs = [json.dumps({**json.loads(text), "data_dir": "/home/lena/data"}) for text in found.cells["config"]]
    changed = Results(
        cells=found.cells.assign(config=pd.array(configs, dtype="string")), curves=found.curves, scores=found.scores
    )
    assert "lena" not in written(tmp_path / "page.html", changed, synthetic.tables(found))


def test_half_a_surrogate_pair_does_not_stop_the_report(tmp_path):
    found = synthetic.results()
    table = synthetic.tables(found)[0]
    broken = dataclasses.replace(table, title="broken \ud83d title")
    assert "broken" in written(tmp_path / "page.html", found, [broken])


def test_pictures_are_embedded(tmp_path):
    found = synthetic.results()
    picture = "<svg xmlns='http://www.w3.org/2000/svg'/>"
    page = Parsed(written(tmp_path / "page.html", found, [], pictures={"Figure 1 <b>": picture}))
    image = page.all("img")[0]
    assert image["alt"] == "Figure 1 <b>"
    assert base64.b64decode(image["src"].removeprefix("data:image/svg+xml;base64,")).decode() == picture


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_texts_are_readable_on_every_ground_in_light_and_dark():
    style = files("fedra.pages").joinpath("assets").joinpath("base.css").read_text(encoding="utf-8")
    colours = {name: pair for name, *pair in re.findall(r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)", style)}
    grounds = ["ground", "raised", "even", *(f"{way}{step}" for way in ("up", "down") for step in range(1, 5))]
    pairs = [("text", ground) for ground in grounds]
    pairs += [(text, ground) for text in ("soft", "accent", "bad") for ground in ("ground", "raised")]
    for text, ground in pairs:
        for theme in (0, 1):
            assert contrast(colours[text][theme], colours[ground][theme]) >= 4.5, (text, ground, theme)
