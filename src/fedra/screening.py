"""What is not a usable update, and why: everything a client sends is hostile until it has passed here."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.cohort import Cohort, Flags, Floats
from fedra.kernels import largest_magnitudes
from fedra.kernels.halves import half_kind
from fedra.kernels.rows import FLOATS, Rows, as_array, rows_from_vectors
from fedra.untrusted import clipped

# Beyond this, squared distances and scores of float64 updates would leave the range of float64.
LARGEST_VALUE = 1e140
# The largest count that a float64 holds exactly; sums over clients stay exact and finite far beyond it.
LARGEST_CLAIM = 2**53
# How much of a client's own words a reason repeats.
_LONGEST_QUOTE = 80


@dataclass(frozen=True, eq=False, kw_only=True)
class Screened:
    """A round after screening: the usable clients as a cohort, and for all n clients whether and why not."""

    cohort: Cohort
    usable: Flags
    reasons: tuple[str, ...]
    client_ids: tuple[Any, ...]
    quantities: Floats

    def __len__(self) -> int:
        return len(self.usable)


def screen(
    updates: Any,
    quantities: Any,
    client_ids: Sequence[Any] | None = None,
    *,
    dimension: int | None = None,
    threads: int | None = None,
) -> Screened:
    """Separate usable clients from the rest; a client's fault is recorded, only the caller's own mistakes raise.

    Usable: a 1-D finite float32 or float64 update of the cohort's length, and a claimed quantity that is a finite
    number from 1 to 2**53. The length is `dimension`, or the one most clients sent; the float type is the one most
    clients sent. Float16 and bfloat16 updates count as float32, and are read in place where all candidates are alike.
    `Rows` are of one form already, and stay where they are.
    """
    vectors = updates if isinstance(updates, Rows) else _as_list(updates)
    claims = _as_claims(quantities)
    if len(vectors) != len(claims):
        raise ValueError(f"{len(vectors)} updates but {len(claims)} quantities; give one quantity for each update")
    ids = _as_ids(client_ids, len(vectors))

    given, reasons = (vectors, [""] * len(vectors)) if isinstance(vectors, Rows) else _formed(vectors, dimension)
    numbers_claimed = np.full(len(claims), np.nan)
    for i, claim in enumerate(claims):
        numbers_claimed[i], fault = read_claim(claim)
        reasons[i] = reasons[i] or fault

    candidates = [i for i, reason in enumerate(reasons) if not reason]
    rows = given.take(np.array(candidates, dtype=np.intp)) if isinstance(given, Rows) else given(candidates)
    for i, magnitude in zip(candidates, largest_magnitudes(rows, threads), strict=True):
        reasons[i] = magnitude_fault(float(magnitude))
    usable = np.array([not reason for reason in reasons], dtype=bool)
    passed = np.flatnonzero([usable[i] for i in candidates])
    cohort = Cohort(
        rows=rows.take(passed),
        quantities=numbers_claimed[usable],
        client_ids=tuple(name for name, passes in zip(ids, usable, strict=True) if passes),
        threads=threads,
    )
    return Screened(cohort=cohort, usable=usable, reasons=tuple(reasons), client_ids=ids, quantities=numbers_claimed)


def _formed(vectors: list[Any], dimension: int | None) -> tuple[Callable[[Iterable[int]], Rows], list[str]]:
    """Return what makes rows of those at some positions, and why others cannot be rows."""
    arrays, reasons = _read_updates(vectors)
    length, dtype = _common_form(arrays, dimension)
    for i, array in enumerate(arrays):
        if array is not None and array.size != length:
            reasons[i] = f"update has {array.size} values instead of {length}"

    def rows(positions: Iterable[int]) -> Rows:
        chosen = [arrays[i] for i in positions]
        return rows_from_vectors([_narrowed(array, dtype) for array in chosen if array is not None], length, dtype)

    return rows, reasons


def _as_list(updates: Any) -> list[Any]:
    """Return the updates one by one; the container itself is the caller's, so a wrong one raises."""
    if isinstance(updates, (list, tuple)):
        return list(updates)
    matrix = _as_container("updates", updates)
    if matrix.ndim == 2 or (matrix.ndim == 1 and matrix.dtype == object):
        return list(matrix)
    raise ValueError(
        f"updates are {matrix.dtype} of shape {matrix.shape}; give an (n, d) matrix or a sequence of n vectors"
    )


def _as_claims(quantities: Any) -> list[Any]:
    if isinstance(quantities, (list, tuple)):
        return list(quantities)
    array = _as_container("quantities", quantities)
    if array.ndim != 1:
        raise ValueError(f"quantities have shape {array.shape}; give n numbers")
    return list(array)


def _as_ids(client_ids: Iterable[Any] | None, count: int) -> tuple[Any, ...]:
    if client_ids is None:
        return tuple(range(count))
    if isinstance(client_ids, (str, bytes)) or not isinstance(client_ids, Iterable):
        raise TypeError(f"client_ids={client_ids!r}; give a sequence of {count} identifiers, or None")
    ids = tuple(client_ids)
    if len(ids) != count:
        raise ValueError(f"{count} updates but {len(ids)} client_ids; give one identifier for each update")
    return ids


def _as_container(name: str, value: Any) -> npt.NDArray[Any]:
    try:
        return as_array(value)
    except Exception as error:
        raise TypeError(f"{name} of type {type(value).__name__} cannot be read as an array: {error}") from error


def _read_updates(vectors: list[Any]) -> tuple[list[npt.NDArray[Any] | None], list[str]]:
    arrays: list[npt.NDArray[Any] | None] = []
    reasons: list[str] = []
    for vector in vectors:
        array: npt.NDArray[Any] | None = None
        try:
            array = as_array(vector)
        except Exception as error:  # a client's object may do anything when it is read
            reason = f"update of type {type(vector).__name__} cannot be read: {clipped(error, _LONGEST_QUOTE)}"
        else:
            reason = _form_fault(array)
        arrays.append(None if reason else array)
        reasons.append(reason)
    return arrays, reasons


def _form_fault(array: npt.NDArray[Any]) -> str:
    # By kind first: NumPy's new-style types, such as StringDType, have no byte order to ask for.
    whole = array.dtype.kind == "f" and array.dtype.newbyteorder("=") in FLOATS
    if not (whole or half_kind(array.dtype)):
        return f"update has dtype {clipped(array.dtype, _LONGEST_QUOTE)} instead of float32 or float64"
    if array.ndim != 1:
        return f"update has shape {array.shape} instead of one dimension"
    return ""


def _common_form(arrays: list[npt.NDArray[Any] | None], dimension: int | None) -> tuple[int, np.dtype[Any]]:
    """Return the length and type that most readable updates have; ties go to the one seen first."""
    readable = [array for array in arrays if array is not None]
    if dimension is None:
        lengths = Counter(array.size for array in readable)
        dimension = lengths.most_common(1)[0][0] if lengths else 0
    dtypes = Counter(
        FLOATS[0] if half_kind(array.dtype) else array.dtype.newbyteorder("=")
        for array in readable
        if array.size == dimension
    )
    return dimension, dtypes.most_common(1)[0][0] if dtypes else FLOATS[0]


def _narrowed(array: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if array.dtype == dtype or half_kind(array.dtype):
        return array
    with np.errstate(over="ignore"):  # what overflows becomes inf, and is found below as not finite
        return array.astype(dtype)


def read_claim(claim: Any, name: str = "quantity") -> tuple[float, str]:
    """Return a claimed quantity as a float in [1, 2**53], or NaN and what is wrong with it; never raises.

    This is the one place where claims are checked, for simulations and for every platform. `name` is what the platform
    calls the quantity.
    """
    try:
        if isinstance(claim, (bool, np.bool_)) or not isinstance(claim, numbers.Real):
            content = f" {clipped(repr(claim[:40]), _LONGEST_QUOTE)}" if isinstance(claim, (str, bytes)) else ""
            return math.nan, f"{name}{content} is of type {type(claim).__name__}, not a number"
        value = float(claim)
    except OverflowError:
        value = math.inf
    except Exception as error:  # as above: reading a client's number may do anything
        return math.nan, f"{name} of type {type(claim).__name__} cannot be read: {clipped(error, _LONGEST_QUOTE)}"
    if not math.isfinite(value):
        return math.nan, f"{name} is {value}, not a finite number"
    if not 1 <= value <= LARGEST_CLAIM:
        return math.nan, f"{name} is {value:g}, not a number from 1 to 2**53"
    return value, ""


def magnitude_fault(magnitude: float) -> str:
    """Return what is wrong with an update whose largest magnitude this is; empty where nothing is."""
    if not math.isfinite(magnitude):
        return "update holds values that are not finite"
    if magnitude > LARGEST_VALUE:
        return f"update holds a value of {magnitude:.3g}, beyond {LARGEST_VALUE:g} where distances overflow"
    return ""
