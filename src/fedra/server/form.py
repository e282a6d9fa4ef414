"""The form of the global model, and laying a client's arrays out as one flat vector."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fedra.server.faults import Unusable, short

T = TypeVar("T")

# The type and shape of each array of a model, by name.
Forms = Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One array of the model: its name, form, and place in the flat vector of all trained values.

    `dtypes` are the types a reply may use, the model's own first. Entries that are not floats are not `trained`: they
    are checked, but take no part in distances and averages.
    """

    name: str
    shape: tuple[int, ...]
    dtypes: tuple[np.dtype[Any], ...]
    trained: bool
    start: int
    stop: int

    @property
    def widest(self) -> np.dtype[Any]:
        """The type that holds every value of a reply, whichever of the types it has."""
        return max(self.dtypes, key=lambda dtype: dtype.itemsize)


@dataclass(frozen=True, kw_only=True)
class ModelForm:
    """The names, shapes and types of a model's arrays, in order."""

    entries: tuple[Entry, ...] = ()

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

    def read(self, arrays: Mapping[str, T], view: Callable[[T, Entry], npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """Return the trained entries of a reply as flat arrays that share its memory; `Unusable` where it differs.

        `view` returns one of the platform's arrays as a flat one in C order, checked against its entry.
        """
        return list(self.views(arrays, view))

    def views(
        self, arrays: Mapping[str, T], view: Callable[[T, Entry], npt.NDArray[Any]]
    ) -> Iterator[npt.NDArray[Any]]:
        """Yield what `read` returns one by one, so that arrays which `view` has to load are not all in memory."""
        self.check_names(arrays)
        for entry in self.entries:
            flat = view(arrays[entry.name], entry)
            if entry.trained:
                yield flat
            elif flat.dtype.kind == "f" and not np.isfinite(flat).all():
                # An integer that a strategy made a float: no vector holds it, so no screening would look at it.
                raise Unusable(f"array {short(entry.name)} holds values that are not finite")

    def flatten(
        self, views: Iterable[npt.NDArray[Any]], target: npt.NDArray[Any], minus: npt.NDArray[Any] | None = None
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

    def flat(self, views: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Return the trained values, which `read` has returned, as one vector."""
        vector = np.empty(self.dimension, dtype=self.dtype)
        self.flatten(views, vector)
        return vector

    def split(self, flat: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Return the trained entries of a flat vector by name, in the model's own shapes and types."""
        return {
            entry.name: flat[entry.start : entry.stop].astype(entry.dtypes[0], copy=False).reshape(entry.shape)
            for entry in self.entries
            if entry.trained
        }

    def pinned(self, result: Mapping[str, T], sent: Mapping[str, T]) -> dict[str, T]:
        """Return a result with the entries that are not trained as the server sent them: nobody scores those."""
        fixed = {entry.name for entry in self.entries if not entry.trained}
        return {name: sent[name] if name in fixed else array for name, array in result.items()}


def model_form(forms: Forms, first: ModelForm | None = None) -> ModelForm:
    """Return the form of a model with arrays of these forms; `first` is the form it had in the first round.

    Averages turn integers into floats, and noise can turn float32 into float64, while clients go on sending what their
    framework holds: a reply may therefore have the type of the first round's array or of the current one.

    Raises:
        ValueError: where fedra cannot work with the model.
    """
    known = {} if first is None else {entry.name: entry for entry in first.entries}
    entries = []
    start = 0
    for name, (dtype, shape) in forms.items():
        if dtype.kind not in "fiub" or (dtype.kind == "f" and dtype.itemsize > 8):
            raise ValueError(
                f"the model's array {name!r} has dtype {dtype}; use float16, float32, float64, integers or bool"
            )
        dtype = dtype.newbyteorder("=")
        before = known.get(name)
        dtypes = (dtype,) if before is None or before.dtypes[0] == dtype else (before.dtypes[0], dtype)
        trained = dtypes[0].kind == "f"
        stop = start + (int(np.prod(shape, dtype=np.int64)) if trained else 0)
        entries.append(Entry(name=name, shape=shape, dtypes=dtypes, trained=trained, start=start, stop=stop))
        start = stop
    return ModelForm(entries=tuple(entries))


def view_array(array: Any, entry: Entry) -> npt.NDArray[Any]:
    """Return a client's NumPy array as a flat one in C order, in place where its layout allows it."""
    if not isinstance(array, np.ndarray):
        raise Unusable(f"array {short(entry.name)} is {short(type(array).__name__)}, not a NumPy array")
    check_form(entry, array.dtype, array.shape)
    return np.ascontiguousarray(array).reshape(-1)


def check_form(entry: Entry, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Refuse an array of another type or shape than its entry's."""
    if dtype.hasobject or dtype.kind not in "fiub" or dtype.newbyteorder("=") not in entry.dtypes:
        raise Unusable(f"array {short(entry.name)} has dtype {short(dtype)} instead of {entry.dtypes[0]}")
    if shape != entry.shape:
        raise Unusable(f"array {short(entry.name)} has shape {short(shape)} instead of {entry.shape}")


def _names_fault(arrays: Mapping[str, Any], entries: Sequence[Entry]) -> str:
    expected = {entry.name for entry in entries}
    missing = [name for name in expected if name not in arrays]
    extra = itertools.islice((name for name in arrays if name not in expected), 2)
    parts = [f"lacks array {short(name)}" for name in sorted(missing)[:2]]
    parts += [f"has an unknown array {short(name)}" for name in extra]
    return f"{len(arrays)} arrays instead of {len(entries)}: " + ", ".join(parts)
