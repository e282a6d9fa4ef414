"""Markdown of tables and of whole reports: the figures in their places, and whole whatever the labels are."""

import html
import re

from hypothesis import given
from hypothesis import strategies as st
from tests.report import synthetic
from tests.report.formats.making import entry, hostile_tables, nasty, row, table

from fedra.report.formats.markdown import (
    escaped,
    estimate_markdown,
    measure_markdown,
    signed,
    summary_markdown,
    table_markdown,
)
from fedra.untrusted import one_line

MINUS = "\N{MINUS SIGN}"


@given(nasty | st.text(max_size=40))
def test_a_text_reads_as_it_was(text):
    made = escaped(text)
    assert html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", made)) == one_line(text)
    assert not re.search(r"(?<!\\)(?:\\\\)*[|`*_\[\]~$]", made)
    assert not re.search(r"[<>\n\r]", made)


@given(nasty)
def test_a_line_is_one_line(text):
    line = one_line(text)
    assert line.splitlines() == ([line] if line else [])
    line.encode("utf-8")
    assert one_line(line) == line


def test_an_example():
    assert escaped("a|b <img> *c*") == r"a\|b &lt;img&gt; \*c\*"


def test_ours_published_and_difference():
    made = table(
        [
            row("FedRA", entry(97.456, 0.123, 99.2), entry(50.0)),
            row("RFA", entry(12.0, None, 8.92), None),
            row("X", entry(None, None, 5.0, statuses=("failed",)), entry(49.0, statuses=("done", "failed"))),
            row("Best", entry(1.0, by="Krum"), None),
        ]
    )
    lines = table_markdown(made).splitlines()
    assert lines[0] == "**T.** C."
    assert "Ours (published, difference)" in lines[2]
    assert lines[-6:] == [
        r"| rule | A0, alpha\_q 10 | A1, alpha\_q 10 |",
        "| --- | ---: | ---: |",
        rf"| FedRA | **97.46** ± 0.12 (99.20, {MINUS}1.74) | **50.00** |",
        "| RFA | 12.00 (8.92, +3.08) | \N{EN DASH} |",
        "| X | failed (5.00) | 49.00 [1 of 2 seeds] |",
        "| Best | 1.00 Krum | \N{EN DASH} |",
    ]


def test_nothing_is_said_of_published_figures_where_there_are_none():
    assert "published" not in table_markdown(table([row("FedRA", entry(97.4)), row("RFA", entry(12.0))]))


@given(hostile_tables)
def test_hostile_labels_leave_the_table_whole(made):
    body = [line for line in table_markdown(made).splitlines() if line.startswith("| ")]
    assert len(body) == 2 + len(made.rows)
    assert {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in body} == {len(made.columns) + 2}


def test_another_measure_has_its_own_table():
    made = table(
        [row("FedRA", entry(1.0, measures={"filtering_recall": 0.25}), entry(2.0)), row("RFA", entry(1.0), None)]
    )
    assert measure_markdown(made, "filtering_recall", "Recall").splitlines() == [
        *("Recall:", "", r"| rule | A0, alpha\_q 10 | A1, alpha\_q 10 |", "| --- | ---: | ---: |"),
        "| FedRA | 0.25 | \N{EN DASH} |",
    ]
    assert estimate_markdown(made) == ""


def test_the_whole_report():
    data, extension, tables = synthetic.report(synthetic.results())
    text = summary_markdown(data, extension, tables, title="A *report*", source="Somebody, 2020", missing=["figure9"])
    assert text.startswith("# A \\*report\\*\n\n")
    headings = re.findall("^## (.*)$", text, re.MULTILINE)
    assert headings == ["The paper's tables", "Who wins", "Other comparisons"]
    assert "Runs with an error:" in text
    assert "Published figures: Somebody, 2020." in text
    assert text.endswith("No results for figure9.\n")
    assert "<img" not in text


def test_signs():
    assert (signed(1.234), signed(-1.234), signed(0.0)) == ("+1.23", f"{MINUS}1.23", "+0.00")
