"""Flower's arrays, which are .npy bytes, as flat vectors and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.server.faults import Unusable, short
from fedra.server.form import Entry, ModelForm, check_form, model_form
from fedra.server.npy import make_header, read_header


def npy_model_form(arrays: Mapping[str, bytes], first: ModelForm | None = None) -> ModelForm:
    """Return the form of the server's own model, given as .npy bytes; ValueError where fedra cannot work with it."""
    return model_form({name: _own_form(name, data) for name, data in arrays.items()}, first)


def _own_form(name: str, data: bytes) -> tuple[np.dtype[Any], tuple[int, ...]]:
    try:
        header = read_header(data)
    except Unusable as error:
        raise ValueError(f"the model's array {name!r} {error}; give arrays that NumPy saved") from error
    return header.dtype, header.shape


def view_npy(data: Any, entry: Entry) -> npt.NDArray[Any]:
    """Return a client's .npy bytes as a flat array in C order, in place where their layout allows it."""
    # A view of bytes is what the server itself put into a file.
    if not isinstance(data, bytes | memoryview):
        raise Unusable(f"array {short(entry.name)} is {type(data).__name__}, not bytes")
    for dtype in entry.dtypes:
        header = make_header(dtype, entry.shape)
        if data[: len(header)] == header and len(data) - len(header) == _num_bytes(dtype, entry.shape):
            return np.frombuffer(data, dtype=dtype, offset=len(header))
    try:
        shape, fortran, dtype, offset = read_header(data)
    except Unusable as error:
        raise Unusable(f"array {short(entry.name)} {error}") from error
    check_form(entry, dtype, shape)
    if len(data) - offset != _num_bytes(dtype, shape):
        raise Unusable(
            f"array {short(entry.name)} holds {len(data) - offset} bytes instead of {_num_bytes(dtype, shape)}"
        )
    flat = np.frombuffer(data, dtype=dtype, offset=offset)
    return flat.reshape(shape, order="F").ravel() if fortran else flat


def flat_model(form: ModelForm, arrays: Mapping[str, bytes]) -> npt.NDArray[Any]:
    """Return the trained values of the server's own model, given as .npy bytes, as a flat vector."""
    return form.flat(form.read(arrays, view_npy))


def canonical_npy(entry: Entry, values: npt.NDArray[Any]) -> bytes:
    """Return flat values as .npy bytes of version 1.0 in C order, of the entry's widest type."""
    return b"".join((make_header(entry.widest, entry.shape), np.ascontiguousarray(values, dtype=entry.widest).data))


def is_canonical(entry: Entry, data: bytes, values: npt.NDArray[Any]) -> bool:
    """Tell whether .npy bytes, which hold these values, are already as `canonical_npy` would make them."""
    header = make_header(entry.widest, entry.shape)
    return values.dtype == entry.widest and data.startswith(header) and len(data) == len(header) + values.nbytes


def _num_bytes(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    return dtype.itemsize * math.prod(shape)
