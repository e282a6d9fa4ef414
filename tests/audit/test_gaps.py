from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fedra.audit.gaps import Gap, find_gaps


def rounds(*pairs, phase="train"):
    return [{"run": run, "round": number, "phase": phase} for run, number in pairs]


def test_a_run_that_went_on_lacks_what_it_left_out():
    assert find_gaps(rounds(("a", 1), ("a", 2), ("a", 5), ("a", 6), ("a", 8))) == [
        Gap(run="a", first=3, last=4),
        Gap(run="a", first=7, last=7),
    ]


def test_a_server_that_was_started_again_goes_on_where_the_trail_stopped():
    # Flower gives it a new run; its state file lets it go on counting.
    assert find_gaps(rounds(("a", 1), ("a", 2), ("b", 3))) == []
    assert find_gaps(rounds(("a", 1), ("a", 2), ("b", 4))) == [Gap(run="b", first=3, last=3)]
    assert find_gaps(rounds(("a", 1), ("a", 2), ("b", 1), ("b", 2))) == []


def test_runs_that_share_a_file_are_counted_apart():
    assert find_gaps(rounds(("a", 1), ("b", 1), ("a", 2), ("b", 2), ("b", 4))) == [Gap(run="b", first=3, last=3)]


def test_the_beginning_counts_where_all_was_read():
    assert find_gaps(rounds(("a", 0), ("a", 1))) == []
    assert find_gaps(rounds(("a", 3))) == [Gap(run="a", first=1, last=2)]
    assert find_gaps(rounds(("a", 3)), whole=False) == []


def test_evaluation_does_not_count_and_repeated_rounds_are_no_gap():
    assert find_gaps(rounds(("a", 4), phase="evaluate")) == []
    assert find_gaps(rounds(("a", 1), ("a", 1), ("a", 2), ("a", 1), ("a", 2))) == []


def test_in_words():
    assert str(Gap(run="a", first=3, last=3)) == "round 3"
    assert str(Gap(run="a", first=3, last=9)) == "rounds 3 to 9"
    assert Gap(run="a", first=3, last=9).count == 7


@given(st.sets(st.integers(1, 200), min_size=1), st.just("a"))
def test_of_one_run_they_are_what_is_not_there(numbers, run):
    missing = set(range(1, max(numbers) + 1)) - numbers
    gaps = find_gaps(rounds(*((run, number) for number in sorted(numbers))))
    assert {number for gap in gaps for number in range(gap.first, gap.last + 1)} == missing
    assert sum(gap.count for gap in gaps) == len(missing)
