"""Markdown, CSV and LaTeX of tables: the figures in their places, and whole whatever the labels are."""

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.paper_results import paper_results

from fedra.experiments import Results
from fedra.report.model import Column, Entry, Row, Table
from fedra.report.runs import Runs
from fedra.report.statistics import statistics_lines
from fedra.report.tables import paper_tables
from fedra.report.text import (
    measure_markdown,
    signed,
    statistics_markdown,
    table_csv,
    table_latex,
    table_markdown,
    winners_csv,
    winners_markdown,
)
from fedra.report.winners import agreements, winners

MINUS = "\N{MINUS SIGN}"


@pytest.fixture(scope="module")
def runs(results):
    return Runs(results=results)


@pytest.fixture(scope="module")
def tables(results):
    return {table.key: table for table in paper_tables(results)}


def entry(mean=None, std=None, published=None, rule="fedra", runs=("a",)):
    return Entry(mean=mean, std=std, runs=runs, published=published, rule=rule)


def table(rows, columns=None, **others):
    width = len(rows[0].entries)
    columns = columns or [Column(attack=f"a{n}", alpha_q=10.0, attack_label=f"A{n}") for n in range(width)]
    values = {"key": "t", "title": "T", "number": None, "dataset": "mnist", "partition": "iid", "setting": "fixed"}
    return Table(**{**values, "caption": "C.", **others}, columns=tuple(columns), rows=tuple(rows))


def row(label, *entries, family="quantity-robust"):
    return Row(label=label, family=family, entries=entries)


@pytest.fixture
def states(results):
    """Three runs: a is done, b has failed, c was never started."""
    frame = results.cells.head(3).assign(run=["a", "b", "c"], status=["done", "failed", "missing"])
    return Runs(results=Results(cells=frame, curves=results.curves, scores=results.scores))


def test_markdown_has_ours_published_and_difference(states):
    made = table(
        [
            row("FedRA", entry(97.456, 0.123, 99.2), entry(50.0)),
            row("RFA", entry(12.0, None, 8.92, "rfa"), None),
            row("X", entry(None, None, 5.0, "X", ("b",)), entry(49.0, None, None, "X", ("a", "b"))),
        ]
    )
    lines = table_markdown(made, states).splitlines()
    assert lines[0] == "**T.** C."
    assert "Ours (published, difference)" in lines[2]
    assert lines[-5:] == [
        r"| rule | A0, alpha\_q 10 | A1, alpha\_q 10 |",
        "| --- | ---: | ---: |",
        rf"| FedRA | **97.46** ± 0.12 (99.20, {MINUS}1.74) | **50.00** |",
        "| RFA | 12.00 (8.92, +3.08) | \N{EN DASH} |",
        "| X | failed (5.00) | 49.00 [1 of 2 seeds] |",
    ]


def test_the_best_of_several_is_named(tables, runs):
    first = next(line for line in table_markdown(tables["table2-mnist"], runs).splitlines() if "Best QI" in line)
    for place, found in zip(first.split("|")[2:-1], tables["table2-mnist"].rows[0].entries, strict=True):
        names = {"multi-krum": "mKrum", "trimmed-mean": "Trimean"}
        assert place.strip().endswith(f") {names.get(found.rule, found.rule.title())}")


def test_csv_has_a_line_for_each_entry(tables, runs):
    made = tables["table2-mnist"]
    lines = list(csv.DictReader(io.StringIO(table_csv([made], runs))))
    assert len(lines) == len(made.rows) * len(made.columns)
    first = next(line for line in lines if (line["rule"], line["attack"], line["alpha_q"]) == ("fedra", "lie", "10"))
    found = made.rows[-1].entries[3]
    assert float(first["mean"]) == pytest.approx(found.mean, abs=5e-5)
    assert float(first["std"]) == pytest.approx(found.std, abs=5e-5)
    assert float(first["difference"]) == pytest.approx(found.mean - 99.20, abs=5e-5)
    assert (first["seeds"], first["published"], first["status"]) == ("3", "99.20", "done")
    assert tuple(first["runs"].split()) == found.runs
    assert (first["table"], first["number"], first["row"]) == ("table2-mnist", "2", "FedRA")


def test_csv_tells_what_is_not_done(states):
    made = table([row("X", entry(None, None, 5.0, "X", ("b", "c")), entry(1.0, None, None, "X", ("a", "c")), None)])
    lines = list(csv.DictReader(io.StringIO(table_csv([made], states))))
    assert [(line["mean"], line["seeds"], line["status"]) for line in lines] == [
        ("", "0", "failed"),
        ("1.0000", "1", "missing"),
    ]


def test_latex_is_a_booktabs_table(states):
    columns = [
        Column(attack="lie", alpha_q=0.0, attack_label="LIE"),
        Column(attack="lie", alpha_q=10.0, attack_label="LIE"),
        Column(attack="none", alpha_q=None, attack_label="No attack"),
    ]
    rows = [
        row("FedRA", entry(97.456, 0.123, 99.2), entry(None, None, 1.0, "fedra", ("b",)), None),
        row("RFA", entry(12.0, None, 8.92, "rfa"), entry(5.0), entry(3.0, runs=("a", "b"))),
    ]
    text = table_latex(table(rows, columns), states)
    lines = text.splitlines()
    assert r"\begin{tabular}{lrrr}" in lines
    assert r" & \multicolumn{2}{c}{LIE} & \multicolumn{1}{c}{No attack} \\" in lines
    assert r"\cmidrule(lr){2-3}\cmidrule(lr){4-4}" in lines
    assert r" & $\alpha_q=0$ & $\alpha_q=10$ &  \\" in lines
    fedra = next(line for line in lines if line.startswith("FedRA"))
    assert fedra.split(" & ") == [
        "FedRA",
        r"\textbf{97.46}{\scriptsize\,$\pm$\,0.12} {\scriptsize(99.20)}",
        r"\textit{failed} {\scriptsize(1.00)}",
        r"-- \\",
    ]
    assert lines.index(r"\midrule") == lines.index(fedra) - 1
    check_latex(text, width=4)


labels = st.text(st.sampled_from(list("\\{}$&#%_^~<>|\"'`[]\n ab")), min_size=1, max_size=20)


@given(rows=st.lists(labels, min_size=1, max_size=3), attacks=st.lists(labels, min_size=1, max_size=3), title=labels)
def test_hostile_labels_leave_the_tables_whole(results, rows, attacks, title):
    runs = Runs(results=results)
    columns = [Column(attack=name, alpha_q=None, attack_label=name) for name in attacks]
    made = table(
        [row(name, *[entry(1.0, rule=name)] * len(columns)) for name in rows], columns, title=title, caption=title
    )
    check_latex(table_latex(made, runs), width=1 + len(columns))
    body = [line for line in table_markdown(made, runs).splitlines() if line.startswith("| ")]
    assert len(body) == 2 + len(rows)
    assert {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in body} == {len(columns) + 2}
    lines = list(csv.DictReader(io.StringIO(table_csv([made], runs))))
    assert [(line["row"], line["attack"]) for line in lines] == [(name, attack) for name in rows for attack in attacks]


def check_latex(text, *, width):
    """Every group is closed, every environment ends, and every line of the table has as many cells as the others."""
    bare = re.sub(r"\\[\\{}$&#%_]", "", text.replace("\\\\\n", "\n"))
    depth = 0
    for letter in bare:
        depth += (letter == "{") - (letter == "}")
        assert depth >= 0
    assert depth == 0
    assert bare.count("$") % 2 == 0
    opened = re.findall(r"\\begin\{(\w+)\}", text)
    assert opened == re.findall(r"\\end\{(\w+)\}", text)[::-1]
    rows = [line for line in text.splitlines() if line.endswith(r" \\")]
    spans = [re.sub(r"\\multicolumn\{(\d+)\}", lambda found: "&" * (int(found[1]) - 1), line) for line in rows]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in spans} == {width - 1}


def test_another_measure_has_its_own_table(results, tables):
    assert measure_markdown(tables["table2-mnist"], Runs(results=results), "filtering_recall", "Recall") == ""
    frame = results.cells.assign(filtering_recall=results.cells["seed"].astype("float64") / 4)
    runs = Runs(results=Results(cells=frame, curves=results.curves, scores=results.scores))
    text = measure_markdown(tables["table2-mnist"], runs, "filtering_recall", "Recall")
    assert text.startswith("Recall:\n\n| rule |")
    assert "| FedRA | 0.25 | 0.25 |" in text


def test_table_1_has_our_clients_beside_the_papers(results):
    lines = statistics_markdown(statistics_lines(results)).splitlines()
    assert lines[2] == "| MNIST | 10 | 60,000 | 10,000 | 3,025 | 3,060 | 19.77 | 179.28 | 6,820 |"
    dash = "\N{EN DASH}"
    assert lines[3] == f"| HuffPost | {' | '.join([dash] * 4)} | 3,060 | {' | '.join([dash] * 3)} |"


def test_winners_as_text(results, tables):
    found = winners(tables.values())
    text = winners_markdown(found, agreements(found))
    assert "| Table 2: MNIST, IID, fixed ratio | 6 |" in text
    lines = list(csv.DictReader(io.StringIO(winners_csv(found))))
    assert len(lines) == len(found) == 18
    assert {line["table"] for line in lines} == {"table2-mnist", "table4-mnist", "table6-mnist"}


def test_signs():
    assert (signed(1.234), signed(-1.234), signed(0.0)) == ("+1.23", f"{MINUS}1.23", "+0.00")


def test_nothing_done_is_still_a_table(cells):
    chosen = [cell for cell in cells if (cell.dataset, cell.setting, cell.partition) == ("mnist", "fixed", "iid")]
    nothing = paper_results(chosen, statuses={cell.run: "unfinished" for cell in chosen})
    for made in paper_tables(nothing):
        assert "unfinished" in table_markdown(made, Runs(results=nothing))
        check_latex(table_latex(made, Runs(results=nothing)), width=1 + len(made.columns))
