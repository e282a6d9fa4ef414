"""What docs/flower.md says about how few nodes are too few, and who watches a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from flwr.serverapp.strategy import FedAvg
from tests.flower.conftest import _task_identity  # noqa: F401
from tests.flower.federation import federation, model, record

from fedra import make_rule

PAGE = (Path(__file__).parents[2] / "docs" / "flower.md").read_text(encoding="utf-8")


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


def test_the_observer_that_it_shows(capsys):
    (snippet,) = (code for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "Observer" in code)
    names = {"FedAvg": FedAvg}
    exec(snippet, names)
    names["strategy"].start(federation(8), record(model()), num_rounds=1)
    names["strategy"].start(federation(3), record(model()), num_rounds=1)
    printed = capsys.readouterr().out
    assert "run 1 with Concord(" in printed
    assert "0 rounds done before" in printed
    assert "round 1 changed nothing: too few clients" in printed
    assert "done" in printed.splitlines()
