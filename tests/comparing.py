"""Comparing with the references: how near is near enough, and where a choice is too close to call."""

from __future__ import annotations

from typing import Any

import numpy as np

TOLERANCE = {np.dtype(np.float32): 5e-7, np.dtype(np.float64): 1e-12}


def assert_near(found: Any, expected: Any, among: np.ndarray, factor: float = 1.0) -> None:
    """Check an aggregate against its reference, relative to the largest value it was made of."""
    assert found.dtype == among.dtype
    assert found.shape == expected.shape
    tolerance = factor * TOLERANCE[among.dtype] * float(np.max(np.abs(among), initial=0.0))
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=0, atol=tolerance)


def clear_cut(scores: Any, count: int, margin: float = 1e-5) -> bool:
    """Whether the `count` least scores are clearly those: the next one ties exactly, or is more than rounding away."""
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    if count >= len(ordered):
        return True
    below, above = ordered[count - 1], ordered[count]
    return bool(below == above or above - below > margin * above)


def clear_best(values: Any, margin: float = 1e-2) -> bool:
    """Whether the largest of the values is clearly the largest."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    return len(ordered) < 2 or bool(ordered[-1] - ordered[-2] > margin)


def assert_same_verdict(found: Any, expected: Any) -> None:
    """Check two verdicts bit for bit."""
    np.testing.assert_array_equal(_bits(found.update), _bits(expected.update))
    for field in ("kept", "weights", "scores", "implied_quantities"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field), err_msg=field)
    assert found.num_malicious == expected.num_malicious
    assert found.cut == expected.cut
    assert found.reasons == expected.reasons
    assert (found.state is None) == (expected.state is None)
    if expected.state is not None:
        assert_same_state(found.state, expected.state)


def assert_same_state(found: Any, expected: Any) -> None:
    """Check what a rule remembers bit for bit."""
    assert found.keys() == expected.keys()
    for name, array in found.items():
        assert (array.dtype, array.shape) == (expected[name].dtype, expected[name].shape)
        np.testing.assert_array_equal(_bits(array), _bits(expected[name]), err_msg=name)


def _bits(values: Any) -> Any:
    return None if values is None else np.ascontiguousarray(values).view(np.uint8)
