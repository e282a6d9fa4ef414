"""The data set that loaders, own ones included, hand to the simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.data.owners import Owners

_FINITE_CHECK_ROWS = 4096


class DatasetError(ValueError):
    """Data that are missing, corrupt or malformed; the message names the file and the remedy."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """A classification data set in memory, checked when it is made.

    ``train_inputs`` and ``test_inputs`` are float32, (N, C, H, W) for images or (N, features), or int64 token ids
    (N, length); labels are int64 in 0 .. num_classes-1. ``embeddings`` (vocabulary, dimension) float32 belongs to token
    ids only, and ``embeddings_source`` names the file it came from ("random" where there was none). ``owners`` says
    who holds each training sample, by key, where the data say so.
    """

    name: str
    train_inputs: npt.NDArray[Any]
    train_labels: npt.NDArray[np.int64]
    test_inputs: npt.NDArray[Any]
    test_labels: npt.NDArray[np.int64]
    num_classes: int
    class_names: tuple[str, ...]
    embeddings: npt.NDArray[np.float32] | None = None
    embeddings_source: str | None = None
    owners: Mapping[str, Owners] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check everything a model or a partition relies on."""
        if self.num_classes < 2:
            self._fail(f"num_classes is {self.num_classes}; a classifier needs at least 2")
        if len(self.class_names) != self.num_classes:
            self._fail(f"{len(self.class_names)} class_names for num_classes={self.num_classes}; give one per class")
        for part, inputs, labels in (
            ("train", self.train_inputs, self.train_labels),
            ("test", self.test_inputs, self.test_labels),
        ):
            self._check_inputs(f"{part}_inputs", inputs)
            self._check_labels(f"{part}_labels", labels)
            if len(inputs) != len(labels):
                self._fail(f"{len(inputs)} {part}_inputs but {len(labels)} {part}_labels; give one label per input")
        if self.train_inputs.dtype != self.test_inputs.dtype:
            self._fail(
                f"train_inputs are {self.train_inputs.dtype}, test_inputs {self.test_inputs.dtype}; use one dtype"
            )
        if self.train_inputs.shape[1:] != self.test_inputs.shape[1:]:
            self._fail(
                f"one training input has shape {self.train_inputs.shape[1:]}, one test input "
                f"{self.test_inputs.shape[1:]}; make them the same"
            )
        self._check_embeddings()
        for key, owners in self.owners.items():
            if len(owners.clients) != len(self.train_labels):
                self._fail(
                    f"owners by {key} are of {len(owners.clients)} samples, but there are {len(self.train_labels)} "
                    "training samples; give one for each"
                )

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one input: (C, H, W) for images, (length,) for token ids."""
        return tuple(self.train_inputs.shape[1:])

    @property
    def is_text(self) -> bool:
        """Whether the inputs are token ids."""
        return self.train_inputs.dtype == np.int64

    def _fail(self, problem: str) -> None:
        raise DatasetError(f"data set {self.name!r}: {problem}")

    def _check_inputs(self, field: str, inputs: npt.NDArray[Any]) -> None:
        if not isinstance(inputs, np.ndarray) or inputs.dtype not in (np.float32, np.int64):
            found = inputs.dtype if isinstance(inputs, np.ndarray) else type(inputs).__name__
            self._fail(f"{field} is {found}; give a NumPy array of float32 (images, features) or int64 (token ids)")
        if len(inputs) == 0 or inputs.ndim < 2:
            self._fail(f"{field} has shape {inputs.shape}; give at least one sample, samples along the first axis")
        if inputs.dtype == np.int64:
            self._check_tokens(field, inputs)
            return
        # In blocks: the mask of a whole image set would be a quarter of its size.
        for start in range(0, len(inputs), _FINITE_CHECK_ROWS):
            finite = np.isfinite(inputs[start : start + _FINITE_CHECK_ROWS]).reshape(-1, inputs[0].size).all(axis=1)
            if not finite.all():
                self._fail(f"{field}[{start + int(np.argmin(finite))}] holds a NaN or an infinity; remove it")

    def _check_tokens(self, field: str, inputs: npt.NDArray[Any]) -> None:
        if inputs.ndim != 2:
            self._fail(f"{field} are token ids of shape {inputs.shape}; give (samples, length)")
        low, high = int(inputs.min(initial=0)), int(inputs.max(initial=0))
        if low < 0:
            self._fail(f"{field} holds the token id {low}; ids start at 0")
        if self.embeddings is not None and high >= len(self.embeddings):
            self._fail(f"{field} holds the token id {high}, but embeddings has only {len(self.embeddings)} rows")

    def _check_labels(self, field: str, labels: npt.NDArray[Any]) -> None:
        if not isinstance(labels, np.ndarray) or labels.dtype != np.int64 or labels.ndim != 1:
            found = f"{labels.dtype}, shape {labels.shape}" if isinstance(labels, np.ndarray) else type(labels).__name__
            self._fail(f"{field} is {found}; give a one-dimensional NumPy array of int64")
        bad = np.flatnonzero((labels < 0) | (labels >= self.num_classes))
        if bad.size:
            self._fail(f"{field}[{bad[0]}] is {labels[bad[0]]}; labels must lie in 0..{self.num_classes - 1}")

    def _check_embeddings(self) -> None:
        if self.embeddings is None:
            return
        if not self.is_text:
            self._fail("embeddings given, but the inputs are not int64 token ids")
        if self.embeddings.dtype != np.float32 or self.embeddings.ndim != 2:
            self._fail(f"embeddings is {self.embeddings.dtype} {self.embeddings.shape}; give float32 (vocabulary, dim)")
        if not np.isfinite(self.embeddings).all():
            self._fail("embeddings holds a NaN or an infinity; remove it")
