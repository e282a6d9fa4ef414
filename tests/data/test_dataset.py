"""The checks of a Dataset."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from fedra.data import Dataset, DatasetError


def fields(**changes: Any) -> dict[str, Any]:
    """Arguments of a valid image data set, with changes."""
    return {
        "name": "own",
        "train_inputs": np.zeros((6, 1, 4, 4), np.float32),
        "train_labels": np.array([0, 1, 2, 0, 1, 2]),
        "test_inputs": np.zeros((2, 1, 4, 4), np.float32),
        "test_labels": np.array([0, 2]),
        "num_classes": 3,
        "class_names": ("a", "b", "c"),
    } | changes


def text_fields(**changes: Any) -> dict[str, Any]:
    """Arguments of a valid text data set, with changes."""
    return (
        fields(
            train_inputs=np.full((6, 5), 3),
            test_inputs=np.full((2, 5), 9),
            embeddings=np.zeros((10, 4), np.float32),
        )
        | changes
    )


def test_valid_sets_are_accepted() -> None:
    images, text = Dataset(**fields()), Dataset(**text_fields())
    assert images.input_shape == (1, 4, 4)
    assert not images.is_text
    assert text.input_shape == (5,)
    assert text.is_text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_classes": 1}, "num_classes is 1"),
        ({"class_names": ("a", "b")}, "2 class_names for num_classes=3"),
        ({"train_labels": np.array([0, 1, 2])}, "6 train_inputs but 3 train_labels"),
        ({"test_labels": np.array([0, 3])}, "test_labels[1] is 3; labels must lie in 0..2"),
        ({"test_labels": np.array([-1, 1])}, "test_labels[0] is -1"),
        ({"test_labels": np.array([0, 1], np.int32)}, "test_labels is int32"),
        ({"test_labels": [0, 1]}, "test_labels is list"),
        ({"train_inputs": np.zeros((6, 1, 4, 4))}, "train_inputs is float64"),
        ({"train_inputs": [[0.0]]}, "train_inputs is list"),
        ({"test_inputs": np.zeros((0, 1, 4, 4), np.float32)}, "at least one sample"),
        ({"test_inputs": np.zeros((2, 1, 5, 4), np.float32)}, "make them the same"),
        ({"test_inputs": np.zeros((2, 16), np.int64)}, "use one dtype"),
        ({"embeddings": np.zeros((10, 4), np.float32)}, "not int64 token ids"),
    ],
)
def test_bad_image_sets_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=re.escape(message)):
        Dataset(**fields(**changes))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_first_sample_that_is_not_finite_is_named(value: float) -> None:
    inputs = np.zeros((5000, 2), np.float32)
    inputs[4500, 1] = inputs[4700, 0] = value
    changes = {"train_inputs": inputs, "train_labels": np.zeros(5000, np.int64), "test_inputs": inputs[:2]}
    with pytest.raises(DatasetError, match=r"train_inputs\[4500\] holds a NaN or an infinity"):
        Dataset(**fields(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_inputs": np.full((2, 5), 10)}, "token id 10, but embeddings has only 10 rows"),
        ({"test_inputs": np.full((2, 5), -1)}, "token id -1"),
        ({"test_inputs": np.full((2, 5, 1), 1)}, "give (samples, length)"),
        ({"embeddings": np.zeros((10, 4))}, "give float32 (vocabulary, dim)"),
        ({"embeddings": np.full((10, 4), np.nan, np.float32)}, "embeddings holds a NaN"),
    ],
)
def test_bad_text_sets_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=re.escape(message)):
        Dataset(**text_fields(**changes))
