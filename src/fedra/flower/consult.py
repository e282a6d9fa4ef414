"""Asking the inner strategy: whatever it makes of the replies, the server goes on, with a model that is finite."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fedra.flower.snapshot import not_finite, put_back, snapshot
from fedra.server.faults import short

LOGGER = logging.getLogger("flwr")

T = TypeVar("T")


def consult(
    inner: Any, call: Callable[[], T], arrays_of: Callable[[Any], Iterable[npt.NDArray[Any]]]
) -> tuple[T | None, str]:
    """Return what `call` to the inner strategy returns, or None and why it cannot be used.

    Where it raises, or leaves numbers that are not finite in its result (`arrays_of`) or in what it remembers, it is
    given back what it remembered: values that clients chose are in there, and must not outlive the round. What a
    strategy held before that is not finite, such as the best loss so far, is its own affair.
    """
    before = snapshot(inner)
    odd = not_finite(inner)
    result: T | None = None
    try:
        result = call()
        if not all(map(_finite, arrays_of(result))):
            fault = "the inner strategy returned values that are not finite"
        elif not_finite(inner) - odd:
            fault = "the inner strategy would remember values that are not finite"
        else:
            return result, ""
    except Exception as error:  # a strategy that fedra did not write, on values that clients chose
        place = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"the inner strategy raised {type(error).__name__}: {short(error, 120)}"
        LOGGER.warning("fedra: %s (%s, line %s)", fault, place.filename, place.lineno)
    put_back(before)
    return None, fault


def call_metrics(function: Callable[..., T], *args: Any) -> tuple[T | None, str]:
    """Return what the user's function for metrics makes of them, or None and why not: the model does without."""
    try:
        return function(*args), ""
    except Exception as error:  # the user's code on values that clients chose
        fault = f"the function for metrics raised {type(error).__name__}: {short(error, 120)}"
        LOGGER.warning("fedra: %s; the round has no metrics", fault)
        return None, fault


def _finite(array: npt.NDArray[Any]) -> bool:
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())
