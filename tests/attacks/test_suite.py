"""The attacks beyond the paper's, each against its formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.attacks.test_updates import gradients, rng, unavailable, view
from tests.reference import attacks as reference

from fedra.attacks import (
    ATTACKS,
    IPM,
    Adaptive,
    Backdoor,
    Consistent,
    Decoys,
    Gaussian,
    InformedView,
    Mimic,
    MinMax,
    MinSum,
    Sent,
    SignFlip,
    attack_parameters,
    knowledge_of,
    make_attack,
    named_parameters,
)

POOLS = st.builds(gradients, st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(1, 20))


def informed(honest: np.ndarray, **shown: Any) -> InformedView:
    known = vars(view(**shown))
    return InformedView(**known, honest_updates=honest, honest_claims=np.ones(len(honest)))


def close(found: np.ndarray, expected: Any, like: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * float(np.abs(like).max()))


def test_sign_flip_is_the_opposite_of_each_clients_own() -> None:
    own = gradients(3, 5, 12)
    np.testing.assert_array_equal(SignFlip()(view(own=lambda: own), rng()), np.negative(own))


@given(pool=POOLS, eps=st.sampled_from([0.5, 10.0]))
def test_ipm_is_its_formula_of_own_or_of_all_clients(pool: np.ndarray, eps: float) -> None:
    close(IPM(eps=eps)(view(pool=lambda: pool), rng()), reference.ipm(pool, eps), pool)
    seen = informed(pool, pool=unavailable)
    close(IPM(eps=eps, knowledge="all")(seen, rng()), reference.ipm(pool, eps), pool)


@given(pool=POOLS, deviation=st.sampled_from([0.0, 0.3, 20.0]))
def test_gaussian_is_its_formula(pool: np.ndarray, deviation: float) -> None:
    sent = Gaussian(deviation=deviation)(view(pool=lambda: pool, num_malicious=3), rng())
    expected = reference.gaussian(pool, deviation, rng().standard_normal((3, pool.shape[1])))
    np.testing.assert_allclose(sent, expected, rtol=1e-4, atol=1e-5 * max(float(np.abs(pool).max()), deviation))


@given(seed=st.integers(0, 2**32 - 1), clients=st.integers(2, 15), dimension=st.integers(2, 20))
def test_mimic_copies_the_client_furthest_along_the_top_direction(seed: int, clients: int, dimension: int) -> None:
    honest = np.random.default_rng(seed).normal(size=(clients, dimension)).astype(np.float32)
    sent = Mimic()(informed(honest), rng())
    (copied,) = np.flatnonzero((honest == sent).all(axis=1))
    along = reference.mimicked(honest)
    assert along[copied] >= along.max() * (1 - 1e-4)


@pytest.mark.parametrize("kind", ["deviation", "sign", "mean"])
@given(seed=st.integers(0, 2**32 - 1), clients=st.integers(2, 10), dimension=st.integers(1, 15))
def test_min_max_and_min_sum_go_as_far_as_they_may(kind: Any, seed: int, clients: int, dimension: int) -> None:
    draw = np.random.default_rng(seed)
    honest = (draw.normal(size=dimension) + draw.normal(size=(clients, dimension))).astype(np.float32)
    for attack, expected in ((MinMax, reference.min_max), (MinSum, reference.min_sum)):
        sent = attack(direction=kind, knowledge="all")(informed(honest), rng())
        np.testing.assert_allclose(sent, expected(honest, kind), rtol=1e-3, atol=1e-3)
        own = attack(direction=kind)(view(pool=lambda: honest), rng())
        np.testing.assert_array_equal(own, sent)


def test_consistent_keeps_its_signs_and_follows_the_last_step() -> None:
    attack, dimension = Consistent(c=3.0), 40
    draw = np.random.default_rng(0)
    models = [draw.normal(size=dimension).astype(np.float32) for _ in range(2)]
    models = [models[0], models[0], models[1], models[1], models[0] + 1]
    own = gradients(1, 5, dimension)
    state = attack.init(dimension)
    found = []
    for number, weights in enumerate(models):
        sent, state = attack(view(weights=weights, own=lambda: own), np.random.default_rng(number), state)
        found.append(sent)
    signs = state["signs"]
    assert set(signs.tolist()) == {-1, 1}
    expected = reference.consistent(models, signs, 3.0)
    assert [one is None for one in expected] == [True, True, False, False, False]
    for sent, right in zip(found, expected, strict=True):
        if right is None:
            assert sent is own
        else:
            np.testing.assert_allclose(sent, right, rtol=1e-5)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 4, 6), (9,), (2,), (1, 2, 2)])
def test_the_trigger_is_where_it_should_be(shape: tuple[int, ...]) -> None:
    inputs = np.random.default_rng(0).normal(size=(4, *shape)).astype(np.float32)
    before = inputs.copy()
    found = Backdoor(patch=3, value=2.0).trigger(inputs)
    np.testing.assert_allclose(found, reference.triggered(inputs, 3, 2.0, 0), rtol=1e-6)
    np.testing.assert_array_equal(inputs, before)


def test_the_trigger_of_texts_is_a_token_in_front() -> None:
    inputs = np.arange(12).reshape(2, 6)
    found = Backdoor(token=7).trigger(inputs)
    np.testing.assert_array_equal(found, reference.triggered(inputs, 3, 2.0, 7))
    assert found.dtype == np.int64


@pytest.mark.parametrize(("scale", "factor"), [(None, 10.0), (4.0, 4.0), (99.0, 10.0)])
def test_backdoor_trains_on_triggered_samples_and_scales(scale: float | None, factor: float) -> None:
    inputs = np.random.default_rng(1).normal(size=(400, 1, 5, 5)).astype(np.float32)
    labels = np.full(400, 3)
    seen: dict[str, np.ndarray] = {}

    def poisoned(poison: Any) -> np.ndarray:
        seen["inputs"], seen["labels"] = poison(inputs, labels)
        return np.full((5, 5), 0.5, dtype=np.float32)

    attack = Backdoor(target=1, share=0.25, scale=scale)
    np.testing.assert_allclose(attack(view(poisoned=poisoned), rng()), factor * 0.5)
    changed = seen["labels"] == 1
    np.testing.assert_array_equal(changed, rng().random(400) < 0.25)
    np.testing.assert_array_equal(seen["labels"][~changed], 3)
    np.testing.assert_array_equal(seen["inputs"][~changed], inputs[~changed])
    np.testing.assert_allclose(seen["inputs"][changed], reference.triggered(inputs[changed], 3, 2.8, 0), rtol=1e-6)
    assert (labels == 3).all()


def test_decoys_go_with_another_attack_and_claim_what_they_like() -> None:
    pool, own = gradients(4, 20, 10), gradients(5, 5, 10)
    plain = Decoys(attack="sign-flip")(view(pool=lambda: pool, own=lambda: own), rng())
    assert isinstance(plain, np.ndarray)
    expected = reference.decoys(pool, 5, 2, 1.0, rng().uniform(50, 100, 2))
    np.testing.assert_allclose(plain[:2], expected[:2], rtol=1e-5, atol=1e-4 * np.abs(pool).max())
    np.testing.assert_array_equal(plain[2:], -own[2:])
    sent = Decoys(claim=77)(view(pool=lambda: pool), rng())
    assert isinstance(sent, Sent)
    np.testing.assert_array_equal(sent.claims, [77, 77, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(sent.updates, Decoys()(view(pool=lambda: pool), rng()))


def test_decoys_know_what_the_other_attack_knows() -> None:
    assert Decoys().knowledge == "own"
    assert Decoys(attack="ipm", attack_params={"knowledge": "all"}).knowledge == "all"
    assert Decoys(attack="mimic").knowledge == "all"


@pytest.mark.parametrize(
    ("attack", "parameters", "message"),
    [
        (Decoys, {"attack": "consistent"}, "attack='consistent' remembers"),
        (Decoys, {"attack": "own.module:attack"}, "attack='own.module:attack'"),
        (Decoys, {"attack": "lie", "attack_params": {"zz": 1}}, "no parameter 'zz'"),
        (Decoys, {"claim": 0}, "claim=0"),
        (IPM, {"eps": -1}, "eps=-1"),
        (IPM, {"knowledge": "rule"}, "knowledge='rule'"),
        (MinMax, {"direction": "sine"}, "direction='sine'; did you mean 'sign'"),
        (MinSum, {"knowledge": "al"}, "knowledge='al'"),
        (Gaussian, {"deviation": -1}, "deviation=-1"),
        (Consistent, {"c": -1}, "c=-1"),
        (Backdoor, {"share": 1.5}, "share=1.5"),
        (Backdoor, {"scale": 0}, "scale=0"),
        (Backdoor, {"patch": 0}, "patch=0"),
        (Adaptive, {"budget": 0}, "budget=0"),
        (Adaptive, {"every": 0}, "every=0"),
    ],
)
def test_wrong_parameters_are_rejected(attack: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        attack(**parameters)


def test_what_each_attack_must_know() -> None:
    found = {name: knowledge_of(attack()) for name, attack in ATTACKS.items()}
    assert {name for name, known in found.items() if known == "all"} == {"mimic"}
    assert {name for name, known in found.items() if known == "rule"} == {"adaptive"}
    for name in ("ipm", "min-max", "min-sum"):
        assert knowledge_of(make_attack(name, knowledge="all")) == "all"


def test_parameters_that_came_later_leave_names_as_they_were() -> None:
    assert named_parameters("decoys", {}) == {"count": 2, "lam": 1.0}
    assert named_parameters("decoys", {"claim": 5.0}) == {"count": 2, "lam": 1.0, "claim": 5.0}
    assert named_parameters("lie", {"z": 2}) == {"z": 2} != attack_parameters("lie")
