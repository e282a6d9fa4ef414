from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import attacks as reference

from fedra.attacks import claimed_by_malicious

TRUE = st.lists(st.integers(1, 10_000), min_size=1, max_size=60)


@given(true=TRUE, alpha_q=st.sampled_from([0, 1, 2, 5, 10, 0.37]))
def test_the_enlarged_quantity_is_its_formula(true: list[int], alpha_q: float) -> None:
    claims = claimed_by_malicious(np.array(true), alpha_q=alpha_q)
    assert claims.shape == (len(true),)
    assert len(set(claims.tolist())) == 1
    # The last bit of the standard deviation may decide about the integer below.
    assert abs(claims[0] - reference.claimed_quantity(true, alpha_q)) <= (1 if alpha_q else 0)


def test_exact_values_of_the_enlarged_quantity() -> None:
    true = np.array([1, 1, 1, 97])
    assert claimed_by_malicious(true, alpha_q=1).tolist() == [73] * 4
    assert claimed_by_malicious(true, alpha_q=10).tolist() == [505] * 4


def test_alpha_q_of_zero_replaces_the_true_quantity_by_the_mean() -> None:
    assert claimed_by_malicious(np.array([1, 1, 1, 98]), alpha_q=0).tolist() == [25.0] * 4


def test_a_single_client_has_no_spread() -> None:
    assert claimed_by_malicious(np.array([7]), alpha_q=10).tolist() == [7.0]


def test_honest_and_fixed_claims() -> None:
    true = np.array([3, 9, 1])
    assert claimed_by_malicious(true).tolist() == [3.0, 9.0, 1.0]
    assert claimed_by_malicious(true, claimed_quantity=500).tolist() == [500.0] * 3
    assert claimed_by_malicious(np.array([], dtype=np.int64), alpha_q=10).tolist() == []


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"alpha_q": -1}, ValueError, "alpha_q=-1; give a finite number of at least 0"),
        ({"alpha_q": float("nan")}, ValueError, "alpha_q=nan"),
        ({"alpha_q": "10"}, TypeError, "alpha_q='10'; give a finite number of at least 0"),
        ({"claimed_quantity": 0}, ValueError, "claimed_quantity=0; give a finite number of at least 1"),
        ({"claimed_quantity": True}, TypeError, "claimed_quantity=True; give a finite number of at least 1"),
        ({"alpha_q": 1, "claimed_quantity": 5}, ValueError, "alpha_q=1 and claimed_quantity=5; give one of them"),
    ],
)
def test_wrong_values_are_rejected(given: dict[str, Any], kind: type[Exception], message: str) -> None:
    for true in (np.array([1, 2]), np.array([], dtype=np.int64)):
        with pytest.raises(kind, match=message):
            claimed_by_malicious(true, **given)
