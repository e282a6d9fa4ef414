from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import attacks as reference

from fedra.attacks import QUANTITY_ATTACKS, claimed_by_malicious, make_quantity_attack, quantity_attack_name
from fedra.redteam import Judgement

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


def test_every_registered_attack_is_made_by_its_name_and_follows_from_its_setting() -> None:
    settings: dict[str, dict[str, Any]] = {"enlarged": {"alpha_q": 3}, "one-number": {"claimed_quantity": 9}}
    for name, attack in QUANTITY_ATTACKS.items():
        given = settings.get(name, {})
        assert attack.name == name
        assert make_quantity_attack(name, **given) == attack(**given)
        if name != "as-much-as-passes":
            assert quantity_attack_name(**given) == name
            assert make_quantity_attack(**given) == attack(**given)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("enlargd", {}, "quantity_attack='enlargd'; did you mean 'enlarged'"),
        ("enlarged", {}, "quantity_attack='enlarged' needs alpha_q"),
        ("one-number", {"alpha_q": 1}, "quantity_attack='one-number' and alpha_q=1; give one of them"),
        ("honest", {"claimed_quantity": 3}, "quantity_attack='honest' and claimed_quantity=3"),
        ("as-much-as-passes", {"alpha_q": 1}, "quantity_attack='as-much-as-passes' and alpha_q=1"),
    ],
)
def test_settings_must_belong_to_the_attack(name: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_quantity_attack(name, **given)


@pytest.mark.parametrize(("limit", "expected"), [(640.0, 640.0), (0.5, 3.0)])
def test_as_much_as_passes_is_the_largest_that_is_kept_or_the_truth(limit: float, expected: float) -> None:
    class View:
        @staticmethod
        def judge(updates: np.ndarray, claims: np.ndarray) -> Judgement:
            return Judgement(update=None, kept=claims <= limit, weights=None)

    attack = make_quantity_attack("as-much-as-passes")
    planned = attack.claims(np.array([3, 3]))
    claims = attack.claims_in_round(View(), np.zeros((2, 4), dtype=np.float32), planned)
    assert claims == pytest.approx([expected] * 2, rel=0.02)
    assert (claims <= max(limit, expected)).all()
