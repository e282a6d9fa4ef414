"""What docs/flower.md says about how few nodes are too few."""

from __future__ import annotations

import pytest

from fedra import make_rule


@pytest.mark.parametrize(
    ("rule", "ratio", "first", "gaps"),
    [
        ("fedra", 0.1, 5, []),
        ("fedra", 0.2, 5, [6]),
        ("multi-krum", 0.2, 5, [6]),
        ("fedra", 0.3, 9, []),
        ("bulyan", 0.1, 7, []),
        ("bulyan", 0.2, 15, [16, 17, 18, 21, 22, 26]),
        ("trimmed-mean", 0.2, 3, []),
        ("trimmed-mean", 0.3, 3, [4]),
    ],
)
def test_how_few_are_too_few(rule, ratio, first, gaps):
    made = make_rule(rule, malicious_ratio=ratio)
    assert all(made.refusal(n) for n in range(1, first))
    assert [n for n in range(first, 100) if made.refusal(n)] == gaps


def test_bulyan_cannot_stand_against_three_tenths():
    assert all(make_rule("bulyan", malicious_ratio=0.3).refusal(n) for n in range(1, 200))


def test_six_of_six_nodes():
    assert make_rule("fedra", malicious_ratio=0.2, num_clients=6).expected_malicious(6) == 1
