"""What is best in a column, and how a run is: decided once, for all formats."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.report.model import Column, Entry, Row, Table, leaders

values = st.none() | st.floats(0, 100)


@given(st.lists(values, max_size=6))
def test_leaders_are_the_highest_to_two_decimals(given_values):
    found = leaders(given_values)
    known = [round(value, 2) for value in given_values if value is not None]
    assert len(found) == len(given_values)
    if len(known) < 2:
        assert not any(found)
    else:
        leading = {round(value, 2) for value, leads in zip(given_values, found, strict=True) if leads}
        assert leading == {max(known)}
        rest = [v for v, leads in zip(given_values, found, strict=True) if not leads and v is not None]
        assert all(round(value, 2) < max(known) for value in rest)


def entry(*statuses, mean=None, published=None):
    runs = tuple(f"run {number}" for number in range(len(statuses)))
    return Entry(mean=mean, std=None, runs=runs, statuses=statuses, published=published, rule="x")


@pytest.mark.parametrize(
    ("statuses", "status", "num_done", "reason"),
    [
        (("done", "done"), "done", 2, "not measured"),
        (("done", "missing"), "missing", 1, "missing"),
        (("missing", "unfinished", "done"), "unfinished", 1, "unfinished"),
        (("unfinished", "failed", "missing"), "failed", 0, "failed"),
    ],
)
def test_the_status_of_an_entry_is_the_worst_of_its_runs(statuses, status, num_done, reason):
    found = entry(*statuses)
    assert (found.status, found.num_done, found.reason) == (status, num_done, reason)


def test_the_best_of_each_column():
    rows = [
        ("a", entry("done", mean=90.004, published=1.0), None),
        ("b", entry("done", mean=89.996, published=2.0), entry("done", mean=5.0)),
        ("c", entry("failed"), None),
    ]
    table = Table(
        key="t",
        title="T",
        dataset="d",
        partition="p",
        setting="s",
        caption="",
        columns=tuple(Column(attack=name, alpha_q=None, attack_label=name) for name in "xy"),
        rows=tuple(Row(label=name, family="", rule=name, entries=tuple(entries)) for name, *entries in rows),
    )
    assert table.best == ((True, False), (True, False), (False, False))
    assert table.best_published == ((False, False), (True, False), (False, False))
    assert table.compared
