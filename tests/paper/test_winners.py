"""Who wins: the paper's and ours, of the same rules."""

import csv
import io

import pytest

from fedra.paper import paper_tables
from fedra.paper.winners import agreements, winners, winners_csv, winners_markdown, winners_section
from fedra.report.model import Column, Entry, Row, Table


def table(*rows, number=2):
    columns = (Column(attack="lie", alpha_q=10.0, attack_label="LIE"),)
    made = tuple(
        Row(
            label=label,
            family="",
            rule=label,
            entries=(mean and Entry(mean=mean[0], std=None, runs=(), statuses=(), published=mean[1], rule=label),),
        )
        for label, mean in rows
    )
    return Table(
        key=f"table{number}-x",
        title="X",
        number=number,
        dataset="mnist",
        partition="iid",
        setting="fixed",
        caption="",
        columns=columns,
        rows=made,
    )


def test_the_same_winner():
    (found,) = winners([table(("A", (90.0, 80.0)), ("B", (95.0, 85.0)))])
    assert (found.published, found.ours, found.agrees, found.behind) == (("B",), ("B",), True, 0.0)
    assert (found.attack, found.alpha_q, found.table) == ("LIE", 10.0, "table2-x")


def test_another_winner_and_by_how_much():
    (found,) = winners([table(("A", (96.5, 80.0)), ("B", (95.0, 85.0)))])
    assert (found.published, found.ours, found.agrees) == (("B",), ("A",), False)
    assert found.behind == pytest.approx(1.5)


def test_ties_agree_where_one_of_them_does():
    (found,) = winners([table(("A", (96.001, 85.0)), ("B", (95.999, 80.0)), ("C", (1.0, 85.0)))])
    assert (found.published, found.ours, found.agrees, found.behind) == (("A", "C"), ("A", "B"), True, 0.0)


def test_only_rules_with_both_figures_take_part():
    rows = [("A", (96.0, 80.0)), ("B", (95.0, 85.0)), ("own", (99.0, None)), ("not done", (None, 99.0)), ("no", None)]
    (found,) = winners([table(*rows)])
    assert (found.published, found.ours) == (("B",), ("A",))
    assert winners([table(*rows[1:])]) == ()


def test_only_tables_that_compare_families_count():
    rows = (("A", (96.0, 80.0)), ("B", (95.0, 85.0)))
    assert winners([table(*rows, number=3), table(*rows, number=None)]) == ()


def test_agreement_is_by_table():
    same, other = (("A", (1.0, 1.0)), ("B", (2.0, 2.0))), (("A", (1.0, 2.0)), ("B", (2.0, 1.0)))
    found = winners([table(*same), table(*other, number=4)])
    shares = agreements(found)
    assert [(share.table, share.same, share.columns, share.share) for share in shares] == [
        ("table2-x", 1, 1, 1.0),
        ("table4-x", 0, 1, 0.0),
    ]


def test_winners_as_text(data):
    found = winners(paper_tables(data))
    text = winners_markdown(found)
    assert "| Table 2: MNIST, IID, fixed ratio | 6 |" in text
    lines = list(csv.DictReader(io.StringIO(winners_csv(found))))
    assert len(lines) == len(found) == 18
    assert {line["table"] for line in lines} == {"table2-mnist", "table4-mnist", "table6-mnist"}


def test_winners_as_a_section():
    same, other = (("A", (1.0, 1.0)), ("B", (2.0, 2.0))), (("A", (1.0, 2.0)), ("B", (2.5, 1.0)))
    section = winners_section(winners([table(*same), table(*other, number=4)]))
    assert [(part.heading, part.folded) for part in section.tables] == [
        ("1 of 1 the same in X", True),
        ("0 of 1 the same in X", False),
    ]
    assert list(section.tables[1].lines) == [["LIE", "10", "A", "B", "✗ differs", "1.50"]]
