from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from fedra.attacks import VIEWS, AttackerView, InformedView, WhiteBoxView

OWN, POOL = np.ones((2, 3), dtype=np.float32), np.full((5, 3), 2.0, dtype=np.float32)


class Clients:
    """Computes gradients, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def own(self) -> np.ndarray:
        self.asked.append("own")
        return OWN

    def pool(self) -> np.ndarray:
        self.asked.append("pool")
        return POOL

    def relabelled(self, relabel: Any) -> np.ndarray:
        self.asked.append("relabelled")
        return OWN * relabel(np.array([4]))[0]

    def poisoned(self, poison: Any) -> np.ndarray:
        self.asked.append("poisoned")
        return OWN * poison(np.array([2]), np.array([4]))[1][0]


def seen_by_attacker(clients: Clients) -> AttackerView:
    return AttackerView(
        round=3,
        weights=np.zeros(3, dtype=np.float32),
        num_sampled=50,
        num_malicious=2,
        num_classes=10,
        own=clients.own,
        pool=clients.pool,
        relabelled=clients.relabelled,
        poisoned=clients.poisoned,
    )


def test_nothing_is_computed_before_it_is_looked_at_and_then_once() -> None:
    clients = Clients()
    view = seen_by_attacker(clients)
    assert clients.asked == []
    assert view.pool_gradients is view.pool_gradients is POOL
    assert view.own_gradients is view.own_gradients is OWN
    assert clients.asked == ["pool", "own"]


def test_other_labels_are_computed_each_time() -> None:
    clients = Clients()
    view = seen_by_attacker(clients)
    for factor in (2, 3):
        np.testing.assert_array_equal(
            view.relabelled_gradients(lambda labels, factor=factor: factor * labels), 4 * factor * OWN
        )
    assert clients.asked == ["relabelled"] * 2


def test_an_attacker_sees_no_rule_and_no_benign_client() -> None:
    known = {field.name for field in dataclasses.fields(AttackerView)}
    computed = {"own", "pool", "relabelled", "poisoned"}
    assert known == {"round", "weights", "num_sampled", "num_malicious", "num_classes"} | computed
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen_by_attacker(Clients()).round = 4  # type: ignore[misc]


def test_each_knowledge_adds_to_the_one_before() -> None:
    assert list(VIEWS.items()) == [("own", AttackerView), ("all", InformedView), ("rule", WhiteBoxView)]
    known = [{field.name for field in dataclasses.fields(view)} for view in VIEWS.values()]
    assert known[1] - known[0] == {"honest_updates", "honest_claims"}
    assert known[2] - known[1] == {"rule", "rule_state", "judge"}
    assert known[0] < known[1] < known[2]


def test_a_view_without_a_way_to_poison_says_so():
    without = AttackerView(
        round=0,
        weights=np.zeros(2, dtype=np.float32),
        num_sampled=5,
        num_malicious=1,
        num_classes=2,
        own=lambda: np.zeros((1, 2), dtype=np.float32),
        pool=lambda: np.zeros((1, 2), dtype=np.float32),
        relabelled=lambda relabel: np.zeros((1, 2), dtype=np.float32),
    )
    with pytest.raises(ValueError, match="give the view `poisoned`"):
        without.poisoned_gradients(lambda inputs, labels: (inputs, labels))
