from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import attacks as reference

from fedra.attacks import ATTACKS, LIE, AttackerView, Decoys, LabelFlip, NoAttack, Optimize
from fedra.attacks.updates import largest_unnoticed

CLASSES = 7


def unavailable(*arguments: Any) -> np.ndarray:
    raise AssertionError("this attack has no need of it")


def view(**shown: Any) -> AttackerView:
    known: dict[str, Any] = {
        "round": 3,
        "weights": np.zeros(5, dtype=np.float32),
        "num_sampled": 50,
        "num_malicious": 5,
        "num_classes": CLASSES,
        "own": unavailable,
        "pool": unavailable,
        "relabelled": unavailable,
        "poisoned": unavailable,
    }
    return AttackerView(**{**known, **shown})


def rng() -> np.random.Generator:
    return np.random.default_rng(8)


def gradients(seed: int, clients: int, dimension: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    scale = 10.0 ** draw.uniform(-6, 3, dimension)
    rows = ((draw.normal(size=dimension) + draw.normal(size=(clients, dimension))) * scale).astype(np.float32)
    rows[:, draw.random(dimension) < 0.2] = 0.0
    return rows


POOLS = st.builds(gradients, st.integers(0, 2**32 - 1), st.integers(1, 50), st.integers(1, 30))


@given(pool=POOLS, z=st.sampled_from([0.0, 0.3, 1.5, -2.0]))
def test_lie_is_its_formula(pool: np.ndarray, z: float) -> None:
    sent = LIE(z=z)(view(pool=lambda: pool), rng())
    assert sent.dtype == np.float32
    np.testing.assert_allclose(sent, reference.lie(pool, z), rtol=1e-6, atol=1e-6 * np.abs(pool).max())


@given(pool=POOLS, lam=st.sampled_from([0.0, 1.0, 3.0]))
def test_optimize_is_its_formula(pool: np.ndarray, lam: float) -> None:
    sent = Optimize(lam=lam)(view(pool=lambda: pool), rng())
    assert sent.dtype == np.float32
    np.testing.assert_allclose(sent, reference.optimize(pool, lam), rtol=1e-6, atol=1e-6 * np.abs(pool).max())


@given(pool=POOLS, num_malicious=st.integers(1, 6), count=st.integers(0, 8), lam=st.sampled_from([1.0, 3.0]))
def test_decoys_are_their_formula(pool: np.ndarray, num_malicious: int, count: int, lam: float) -> None:
    sent = Decoys(count=count, lam=lam)(view(pool=lambda: pool, num_malicious=num_malicious), rng())
    factors = rng().uniform(50, 100, min(count, num_malicious))
    expected = reference.decoys(pool, num_malicious, count, lam, factors)
    assert sent.dtype == np.float32
    np.testing.assert_allclose(sent, expected, rtol=1e-6, atol=1e-4 * np.abs(pool).max())


@pytest.mark.parametrize("attack", [LIE(), LIE(z="max"), Optimize()])
def test_a_single_malicious_client_has_no_spread_and_sends_its_own(attack: Any) -> None:
    alone = gradients(1, 1, 12)
    np.testing.assert_array_equal(attack(view(pool=lambda: alone, num_malicious=1), rng()), alone[0])


@given(num_sampled=st.integers(3, 200), data=st.data())
def test_the_largest_z_of_the_textbook(num_sampled: int, data: st.DataObject) -> None:
    num_malicious = data.draw(st.integers(1, (num_sampled - 1) // 2))
    expected = reference.largest_z(num_sampled, num_malicious)
    assert largest_unnoticed(num_sampled, num_malicious) == pytest.approx(expected, abs=1e-9)


def test_the_largest_z_is_finite_where_attackers_are_the_majority() -> None:
    for num_malicious in range(51):
        assert 0 <= largest_unnoticed(50, num_malicious) < 10


def test_lie_at_its_largest_z_uses_the_round_at_hand() -> None:
    pool = gradients(2, 30, 20)
    sent = LIE(z="max")(view(pool=lambda: pool, num_sampled=50, num_malicious=12), rng())
    z = reference.largest_z(50, 12)
    assert z > 0.3
    np.testing.assert_allclose(sent, reference.lie(pool, z), rtol=1e-6, atol=1e-6 * np.abs(pool).max())


@pytest.mark.parametrize("mapping", ["reverse", "next", "random"])
def test_label_flip_trains_on_the_mapped_labels(mapping: Any) -> None:
    seen = {}
    labels = np.random.default_rng(4).integers(0, CLASSES, 500)

    def relabelled(relabel: Any) -> np.ndarray:
        seen["labels"] = relabel(labels.copy())
        return np.full((5, 5), 2.0, dtype=np.float32)

    sent = LabelFlip(mapping=mapping)(view(relabelled=relabelled), rng())
    np.testing.assert_array_equal(sent, np.full((5, 5), 2.0))
    np.testing.assert_array_equal(seen["labels"], reference.flipped(labels, mapping, CLASSES, rng()))
    if mapping != "reverse":
        assert (seen["labels"] != labels).all()
    if mapping == "random":
        assert {(int(old), int(new)) for old, new in zip(labels, seen["labels"], strict=True)} == {
            (old, new) for old in range(CLASSES) for new in range(CLASSES) if new != old
        }


def test_no_attack_sends_the_honest_gradients() -> None:
    own = gradients(5, 5, 5)
    assert NoAttack()(view(own=lambda: own), rng()) is own


@pytest.mark.parametrize(
    ("attack", "parameters", "kind", "message"),
    [
        (LIE, {"z": "mx"}, TypeError, "z='mx'; give a number, or 'max'"),
        (LIE, {"z": float("nan")}, ValueError, "z=nan; give a number, or 'max'"),
        (LIE, {"z": True}, TypeError, "z=True; give a number"),
        (LIE, {"z": 10**400}, ValueError, "z=a whole number of 1329 bits; give a number"),
        (Optimize, {"lam": float("inf")}, ValueError, "lam=inf; give a finite number"),
        (Decoys, {"lam": "1"}, TypeError, "lam='1'; give a finite number"),
        (Decoys, {"count": -1}, ValueError, "count=-1; give a whole number of at least 0"),
        (Decoys, {"count": 1.5}, TypeError, r"count=1\.5; give a whole number of at least 0"),
        (
            LabelFlip,
            {"mapping": "nxt"},
            ValueError,
            r"mapping='nxt'; did you mean .next.\? valid: reverse, ",
        ),
        (LabelFlip, {"mapping": 1}, TypeError, "mapping=1; valid: reverse, next, random"),
    ],
)
def test_wrong_parameters_are_rejected(
    attack: Any, parameters: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        attack(**parameters)


@pytest.mark.parametrize("attack", ATTACKS.values())
def test_attacks_are_frozen_and_keyword_only(attack: Any) -> None:
    with pytest.raises(TypeError):
        attack(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        attack().name = "other"
