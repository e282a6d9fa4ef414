"""What is measured of a model on the test set: accuracy, accuracy of each class, and AUC where there are two."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_NONE = "-"
_CLASS = re.compile(r"-|(?:[0-9]{1,2}|100)(?:\.[0-9]{1,6})?")
_MOST_CLASSES = 10_000


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Measures on the test set.

    Attributes:
        accuracy: the share of samples that are classified right, in percent.
        class_accuracy: the same within each class, in percent; None for a class without samples.
        auc: the area under the ROC curve, from 0 to 1; None where there are more classes than two, only one of them has
            samples, or the model's scores are not finite.
    """

    accuracy: float
    class_accuracy: tuple[float | None, ...]
    auc: float | None


def measured(
    labels: npt.NDArray[np.int64], answers: npt.NDArray[np.int64], num_classes: int, margins: npt.NDArray[Any] | None
) -> Measured:
    """Return the measures of answers to the samples with these labels.

    Args:
        labels: the right answers.
        answers: the model's.
        num_classes: how many there are.
        margins: by how much the second class is preferred to the first, where there are two.
    """
    right = labels == answers
    totals = np.bincount(labels, minlength=num_classes)
    found = np.bincount(labels[right], minlength=num_classes)
    return Measured(
        accuracy=100.0 * int(right.sum()) / len(labels),
        class_accuracy=tuple(
            100.0 * int(part) / int(total) if total else None for part, total in zip(found, totals, strict=True)
        ),
        auc=None if margins is None else auc(margins, labels == 1),
    )


def auc(scores: npt.NDArray[Any], positive: npt.NDArray[np.bool_]) -> float | None:
    r"""Return the probability that a positive sample has a higher score than a negative one, ties counting half.

    .. math:: \Bigl(\sum_{i \in +} r_i - n_+ (n_+ + 1) / 2\Bigr) / (n_+ n_-)

    with the mean rank r of equal scores (Mann and Whitney 1947). None where one kind is missing or a score is not
    finite.
    """
    ones = int(positive.sum())
    zeros = len(positive) - ones
    if not ones or not zeros or not np.isfinite(scores).all():
        return None
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    # Twice the mean rank is whole, and so is everything until the last division.
    last = np.cumsum(counts)
    doubled = 2 * last - counts + 1
    ranks = int(doubled[places.reshape(-1)[positive]].sum())
    return (ranks - ones * (ones + 1)) / (2 * ones * zeros)


def class_text(values: tuple[float | None, ...] | None) -> str:
    """Return accuracies of classes as a record holds them: percentages with commas between, - where there are none."""
    if values is None:
        return ""
    return ",".join(_NONE if value is None else f"{value:.2f}" for value in values)


def class_values(text: str) -> list[float | None]:
    """Return the accuracies of classes that a record holds; what `class_text` cannot have written is an error."""
    parts = text.split(",") if text else []
    if len(parts) > _MOST_CLASSES or not all(_CLASS.fullmatch(part) for part in parts):
        raise ValueError(f"{text[:60]!r} are no accuracies of classes")
    values = [None if part == _NONE else float(part) for part in parts]
    if any(value is not None and value > 100 for value in values):
        raise ValueError(f"{text[:60]!r} are no accuracies of classes")
    return values


def is_class_text(value: Any) -> bool:
    """Whether a value is a text of accuracies of classes."""
    if not isinstance(value, str) or not value:
        return False
    try:
        class_values(value)
    except ValueError:
        return False
    return True


def worst_class(text: str) -> float | None:
    """Return the least accuracy of a class in such a text; None where there is none."""
    return min((value for value in class_values(text) if value is not None), default=None)
