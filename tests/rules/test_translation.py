"""Rules that state `needs_updates = False`: whole models give the same result as updates, moved by the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedra import RULES, make_rule

# Multiples of 2**-6 below 2**7: sums of a model and an update are exact, so that no tie is broken by rounding.
_GRID = st.integers(-(2**13), 2**13).map(lambda number: number / 64)
_CLAIMS = st.sampled_from([1.0, 3.0, 20.0, 20.0, 500.0, 1e9])


@st.composite
def rounds(draw):
    count, dimension = draw(st.integers(3, 14)), draw(st.integers(1, 6))
    updates = draw(hnp.arrays(np.float64, (count, dimension), elements=_GRID))
    weights = draw(hnp.arrays(np.float64, (dimension,), elements=_GRID))
    return updates, weights, draw(st.lists(_CLAIMS, min_size=count, max_size=count))


@pytest.mark.parametrize("name", [name for name, kind in RULES.items() if not kind.needs_updates])
@settings(max_examples=60, deadline=None)
@given(given_round=rounds())
def test_a_model_added_to_all_updates_is_added_to_the_result(name, given_round):
    updates, weights, claims = given_round
    rule = make_rule(name)
    rule = replace(rule, clamp=True) if hasattr(rule, "clamp") else rule
    if rule.refusal(len(updates)):
        return
    plain, whole = rule(updates, claims), rule(weights + updates, claims)
    assert plain.kept.tolist() == whole.kept.tolist()
    if plain.weights is not None:
        np.testing.assert_allclose(plain.weights, whole.weights, rtol=1e-6, atol=1e-9)
    scale = np.abs(updates).max() + np.abs(weights).max() + 1
    np.testing.assert_allclose(whole.update - weights, plain.update, atol=1e-6 * scale)


@pytest.mark.parametrize("name", [name for name, kind in RULES.items() if kind.needs_updates])
def test_rules_that_need_updates_do_need_them(name):
    rng = np.random.default_rng(0)
    # Two groups that pull in opposite directions: a rule that looks at directions must know where zero is.
    groups = np.outer(np.where(np.arange(20) < 12, 1.0, -0.8), np.ones(5))
    updates, weights = groups + 0.3 * rng.standard_normal((20, 5)), 100 * rng.standard_normal(5)
    rule = make_rule(name)
    whole = rule(weights + updates, np.full(20, 20.0)).update - weights
    assert not np.allclose(whole, rule(updates, np.full(20, 20.0)).update, atol=1e-3)


def test_only_rules_that_clip_or_look_at_directions_need_updates():
    assert [name for name, kind in RULES.items() if kind.needs_updates] == [
        "norm-bound",
        "centered-clipping",
        "concord",
    ]
