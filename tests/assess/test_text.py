"""The text in terminals of any width."""

from __future__ import annotations

import pytest
from tests.assess.samples import assessment

from fedra.assess import assessment_text
from fedra.assess.wording import amount, cosine, distance, percent, times


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    text = assessment_text(assessment(), width)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    for said in (
        "Use fedra.",
        "What one liar gets",
        "How many colluders a round may hold",
        "How many attackers each rule stands",
        "What each rule costs without attack",
        "Assumptions",
        "bulyan needs n >= 4m+3",
        "fedavg: turned by 1 attacker",
    ):
        assert said in words, said


def test_where_there_is_room_tables_have_columns() -> None:
    lines = assessment_text(assessment(), 120).splitlines()
    head = next(line for line in lines if line.startswith("rule") and "most" in line)
    (fedra,) = [line for line in lines[lines.index(head) :] if line.startswith("fedra ")][:1]
    assert fedra.split() == ["fedra", "1.0%", "5.0%", "10.0%", "0%", "12.0%", "3,500"]


def test_the_recommendation_comes_first() -> None:
    text = assessment_text(assessment(), 80)
    assert text.index("Recommendation") < text.index("What one liar gets")


def test_labels_cannot_move_the_cursor() -> None:
    text = assessment_text(assessment("fedra \x1b[2J\nwrong"), 80)
    assert "\x1b" not in text
    assert "\nwrong" not in text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "-"), (0, "0%"), (1e-9, "<0.001%"), (0.0005, "0.05%"), (0.0123, "1.2%"), (0.5, "50.0%"),
        (0.9999, ">99.9%"), (1, "100%"),
    ],
)  # fmt: skip
def test_shares(share: float | None, text: str) -> None:
    assert percent(share) == text


def test_other_figures() -> None:
    assert (cosine(-1e-9), cosine(-0.5), times(None), times(1.234)) == ("0.00", "-0.50", "-", "1.23")
    assert (amount(1e9), amount(None), amount(3500.4)) == ("a billion", "-", "3,500")
    assert (distance(0.001), distance(5e13)) == ("0.00", "5e+13")
