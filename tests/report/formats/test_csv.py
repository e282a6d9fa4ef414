"""CSV of tables: a line for each entry, whole whatever the labels are."""

import csv
import io

import pytest
from hypothesis import given
from tests.report.formats.making import entry, hostile_tables, row, table

from fedra.report.formats.csv import table_csv


def read(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_line_for_each_entry():
    made = table(
        [
            row("FedRA", entry(97.456, 0.123, 99.2, statuses=("done",) * 3, measures={"filtering_recall": 0.5})),
            row("RFA", entry(12.0)),
        ],
        key="table2-mnist",
        number=2,
    )
    first, second = read(table_csv([made]))
    assert [first[name] for name in ("table", "number", "row", "rule", "attack", "alpha_q")] == [
        *("table2-mnist", "2", "FedRA", "fedra", "a0", "10")
    ]
    assert float(first["difference"]) == pytest.approx(97.456 - 99.2, abs=5e-5)
    assert [first[name] for name in ("mean", "std", "seeds", "published", "status", "filtering_recall")] == [
        *("97.4560", "0.1230", "3", "99.20", "done", "0.5000")
    ]
    assert first["runs"].split() == ["run0", "run1", "run2"]
    assert (second["std"], second["published"], second["difference"], second["filtering_recall"]) == ("", "", "", "")


def test_what_is_not_done():
    made = table(
        [
            row(
                "X",
                entry(None, None, 5.0, statuses=("failed", "missing")),
                entry(1.0, statuses=("done", "missing")),
                None,
            )
        ]
    )
    assert [(line["mean"], line["seeds"], line["status"]) for line in read(table_csv([made]))] == [
        ("", "0", "failed"),
        ("1.0000", "1", "missing"),
    ]


@given(hostile_tables)
def test_hostile_labels_come_back(made):
    lines = read(table_csv([made]))
    expected = [(line.label, column.attack) for line in made.rows for column in made.columns]
    assert [(line["row"], line["attack"]) for line in lines] == expected
