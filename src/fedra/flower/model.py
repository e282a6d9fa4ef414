"""The form of the global model, and reading a client's arrays against it, in place."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.flower.faults import Unusable, short
from fedra.flower.npy import make_header, read_header


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One array of the model: its name, form, and place in the flat vector of all trained values.

    `dtypes` are the types a reply may use, the model's own first. Entries that are not floats are not `trained`: they
    are checked, but take no part in distances and averages.
    """

    name: str
    shape: tuple[int, ...]
    dtypes: tuple[np.dtype[Any], ...]
    headers: tuple[bytes, ...]
    trained: bool
    start: int
    stop: int

    @property
    def widest(self) -> np.dtype[Any]:
        """The type that holds every value of a reply, whichever of the types it has."""
        return max(self.dtypes, key=lambda dtype: dtype.itemsize)

    @property
    def header(self) -> bytes:
        """The header of an array of the widest type, as NumPy writes it."""
        return self.headers[self.dtypes.index(self.widest)]


@dataclass(frozen=True, kw_only=True)
class ModelForm:
    """The names, shapes and types of a model's arrays, in order."""

    entries: tuple[Entry, ...]

    @property
    def dimension(self) -> int:
        """The length of the flat vector."""
        return max((entry.stop for entry in self.entries), default=0)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the flat vector: float32, or float64 where the model has float64."""
        wide = any(entry.trained and entry.dtypes[0].itemsize > 4 for entry in self.entries)
        return np.dtype(np.float64 if wide else np.float32)

    def check_names(self, arrays: Mapping[str, Any]) -> None:
        """Refuse a reply with other arrays than the model's, before anything in it is read."""
        if len(arrays) != len(self.entries) or any(entry.name not in arrays for entry in self.entries):
            raise Unusable(_names_fault(arrays, self.entries))

    def read(self, arrays: Mapping[str, bytes]) -> list[npt.NDArray[Any]]:
        """Return the trained entries of a reply as flat arrays that share its memory; `Unusable` where it differs."""
        self.check_names(arrays)
        views = []
        for entry in self.entries:
            view = view_npy(arrays[entry.name], entry)
            if entry.trained:
                views.append(view)
            elif view.dtype.kind == "f" and not np.isfinite(view).all():
                # An integer that a strategy made a float: no vector holds it, so no screening would look at it.
                raise Unusable(f"array {short(entry.name)} holds values that are not finite")
        return views

    def flatten(
        self, views: Sequence[npt.NDArray[Any]], target: npt.NDArray[Any], minus: npt.NDArray[Any] | None = None
    ) -> None:
        """Write the trained values, less `minus`, to the flat vector `target`."""
        trained = [entry for entry in self.entries if entry.trained]
        # What overflows or is not finite stays so, and is found by screening.
        with np.errstate(all="ignore"):
            for entry, view in zip(trained, views, strict=True):
                part = target[entry.start : entry.stop]
                if minus is None:
                    part[:] = view
                else:
                    np.subtract(view, minus[entry.start : entry.stop], out=part, casting="unsafe")

    def split(self, flat: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Return the trained entries of a flat vector by name, in the model's own shapes and types."""
        return {
            entry.name: flat[entry.start : entry.stop].astype(entry.dtypes[0], copy=False).reshape(entry.shape)
            for entry in self.entries
            if entry.trained
        }


def model_form(arrays: Mapping[str, bytes], first: ModelForm | None = None) -> ModelForm:
    """Return the form of a model given as .npy bytes; `first` is the form it had in the first round.

    Flower's averages turn integers into floats, and noise can turn float32 into float64, while clients go on sending
    what their framework holds: a reply may therefore have the type of the first round's array or of the current one.
    """
    known = {} if first is None else {entry.name: entry for entry in first.entries}
    entries = []
    start = 0
    for name, data in arrays.items():
        dtype, shape = npy_form(data, name)
        before = known.get(name)
        dtypes = (dtype,) if before is None or before.dtypes[0] == dtype else (before.dtypes[0], dtype)
        trained = dtypes[0].kind == "f"
        stop = start + (int(np.prod(shape, dtype=np.int64)) if trained else 0)
        entries.append(
            Entry(
                name=name,
                shape=shape,
                dtypes=dtypes,
                headers=tuple(make_header(kind, shape) for kind in dtypes),
                trained=trained,
                start=start,
                stop=stop,
            )
        )
        start = stop
    return ModelForm(entries=tuple(entries))


def npy_form(data: bytes, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return the type and shape of one of the server's own arrays; ValueError where fedra cannot work with it."""
    try:
        shape, _, dtype, _ = read_header(data)
    except Unusable as error:
        raise ValueError(f"the model's array {name!r} {error}; give arrays that NumPy saved") from error
    if dtype.kind not in "fiub" or (dtype.kind == "f" and dtype.itemsize > 8):
        raise ValueError(
            f"the model's array {name!r} has dtype {dtype}; use float16, float32, float64, integers or bool"
        )
    return dtype.newbyteorder("="), shape


def view_npy(data: Any, entry: Entry) -> npt.NDArray[Any]:
    """Return a client's .npy bytes as a flat array in C order, in place where their layout allows it."""
    if not isinstance(data, bytes):
        raise Unusable(f"array {short(entry.name)} is {type(data).__name__}, not bytes")
    for dtype, header in zip(entry.dtypes, entry.headers, strict=True):
        if data.startswith(header) and len(data) - len(header) == _num_bytes(dtype, entry.shape):
            return np.frombuffer(data, dtype=dtype, offset=len(header))
    try:
        shape, fortran, dtype, offset = read_header(data)
    except Unusable as error:
        raise Unusable(f"array {short(entry.name)} {error}") from error
    if dtype.newbyteorder("=") not in entry.dtypes:
        raise Unusable(f"array {short(entry.name)} has dtype {short(dtype)} instead of {entry.dtypes[0]}")
    if shape != entry.shape:
        raise Unusable(f"array {short(entry.name)} has shape {short(shape)} instead of {entry.shape}")
    if len(data) - offset != _num_bytes(dtype, shape):
        raise Unusable(
            f"array {short(entry.name)} holds {len(data) - offset} bytes instead of {_num_bytes(dtype, shape)}"
        )
    flat = np.frombuffer(data, dtype=dtype, offset=offset)
    return flat.reshape(shape, order="F").ravel() if fortran else flat


def _num_bytes(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    count = dtype.itemsize
    for length in shape:
        count *= length
    return count


def _names_fault(arrays: Mapping[str, Any], entries: Sequence[Entry]) -> str:
    expected = {entry.name for entry in entries}
    missing = [name for name in expected if name not in arrays]
    extra = itertools.islice((name for name in arrays if name not in expected), 2)
    parts = [f"lacks array {short(name)}" for name in sorted(missing)[:2]]
    parts += [f"has an unknown array {short(name)}" for name in extra]
    return f"{len(arrays)} arrays instead of {len(entries)}: " + ", ".join(parts)
