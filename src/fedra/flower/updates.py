"""From replies to updates: what was sent out, as a flat vector, and replies less that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.flower.model import ModelForm


def flat_model(form: ModelForm, arrays: Mapping[str, bytes]) -> npt.NDArray[Any]:
    """Return the trained values of the server's own model, given as .npy bytes, as a flat vector."""
    flat = np.empty(form.dimension, dtype=form.dtype)
    form.flatten(form.read(arrays), flat)
    return flat


def less_model(vectors: Sequence[npt.NDArray[Any]], model: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Return each vector less the model; the vectors themselves stay as they are."""
    # What overflows is found by screening.
    with np.errstate(all="ignore"):
        return [vector - model for vector in vectors]
