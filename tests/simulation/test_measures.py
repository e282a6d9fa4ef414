"""Measures on the test set, against slow references and scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import recall_score, roc_auc_score

from fedra.simulation.measures import auc, class_text, class_values, is_class_text, measured, worst_class


def by_pairs(scores: np.ndarray, positive: np.ndarray) -> float:
    """Every positive against every negative sample."""
    wins = [(high > low) + 0.5 * (high == low) for high in scores[positive] for low in scores[~positive]]
    return float(np.mean(wins))


@given(
    st.lists(
        st.tuples(st.integers(-3, 3) | st.floats(-(2.0**90), 2.0**90, width=32), st.booleans()), min_size=2, max_size=40
    )
)
def test_auc_is_the_share_of_pairs_in_order(samples: list[tuple[float, bool]]) -> None:
    scores = np.array([score for score, _ in samples], dtype=np.float32)
    positive = np.array([kind for _, kind in samples])
    found = auc(scores, positive)
    if positive.all() or not positive.any():
        assert found is None
        return
    assert found == pytest.approx(by_pairs(scores, positive), abs=1e-12)
    assert found == pytest.approx(roc_auc_score(positive, scores), abs=1e-12)
    assert auc(-scores, positive) == pytest.approx(1 - found, abs=1e-12)


def test_auc_of_many_samples_does_not_overflow() -> None:
    rng = np.random.default_rng(0)
    positive = rng.random(200_000) < 0.3
    scores = (rng.normal(size=200_000) + positive).astype(np.float32).round(2)
    assert auc(scores, positive) == pytest.approx(roc_auc_score(positive, scores), abs=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_have_no_auc(bad: float) -> None:
    assert auc(np.array([0.0, bad, 1.0]), np.array([True, False, True])) is None


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=50))
def test_accuracy_of_each_class(samples: list[tuple[int, int]]) -> None:
    labels, answers = np.array(samples, dtype=np.int64).T
    found = measured(labels, answers, 4, None)
    assert found.accuracy == pytest.approx(100 * np.mean(labels == answers))
    assert found.auc is None
    recalls = recall_score(labels, answers, labels=range(4), average=None, zero_division=np.nan)
    for value, recall in zip(found.class_accuracy, recalls, strict=True):
        assert (value is None) == bool(np.isnan(recall))
        assert value is None or value == pytest.approx(100 * recall)


def test_two_classes_have_an_auc() -> None:
    labels = np.array([0, 1, 1, 0])
    found = measured(labels, np.array([0, 1, 0, 0]), 2, np.array([-1.0, 2.0, -0.5, -3.0]))
    assert (found.accuracy, found.auc, found.class_accuracy) == (75.0, 1.0, (100.0, 50.0))


@given(st.lists(st.none() | st.floats(0, 100), min_size=1, max_size=30))
def test_a_record_holds_accuracies_of_classes(values: list[float | None]) -> None:
    text = class_text(tuple(values))
    assert is_class_text(text)
    assert class_values(text) == [None if value is None else float(f"{value:.2f}") for value in values]
    known = [value for value in class_values(text) if value is not None]
    assert worst_class(text) == (min(known) if known else None)


@pytest.mark.parametrize("odd", ["a", "1,,2", "101", "100.5", "-1", "nan", "1e2", "1 2", ",", "9" * 400, None, 3, ""])
def test_other_texts_are_none(odd: Any) -> None:
    assert not is_class_text(odd)


def test_what_was_not_measured_is_an_empty_text() -> None:
    assert class_text(None) == ""
    assert class_values("") == []
    assert worst_class("") is None
    with pytest.raises(ValueError, match="no accuracies of classes"):
        class_values("x" * 500)
