"""NVFlare's parameters, read and written: dictionaries, nested or not, of NumPy arrays, torch tensors or references.

Of what a client sent only the values of trained entries are used, each looked up by the server's own names: what a
client nests, or how deeply, is never walked through.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.server.faults import Unusable, short
from fedra.server.form import Entry, ModelForm, model_form, view_array
from fedra.server.spill import Spill, mapped_vector, written
from fedra.server.state import Arrays

Params = dict[Any, Any]


class SentModel:
    """The model that a round's clients were sent: its form, its trained values as a vector, and how to write others.

    Args:
        params: NVFlare's parameters; they are the controller's own, and never changed.
        first: the form that the model had in the first round.

    Raises:
        ValueError: where fedra cannot work with the model.
    """

    def __init__(self, params: Any, first: ModelForm | None) -> None:
        if not isinstance(params, dict) or not params:
            raise ValueError(f"the model is {short(type(params).__name__)} without arrays; give a dictionary of arrays")
        self.params: Params = params
        self.arrays = arrays_of(params)
        self.form = model_form({name: (array.dtype, array.shape) for name, array in self.arrays.items()}, first)
        self.vector = self.form.flat(self.form.read(self.arrays, view_array))
        self._bfloat16 = {name for name, value in _named(params) if _is_bfloat16(value)}

    def read(self, params: Any, *, difference: bool, as_update: bool, spill: Spill | None = None) -> npt.NDArray[Any]:
        """Return a reply's trained values as a vector, an update or a model; `Unusable` where it is not of this form.

        `difference`: the client sent an update, not a model. References are loaded one at a time. With `spill` the
        vector is on disk, as it is where NVFlare left the reply on disk.
        """
        found = dict(zip(self.arrays, _values(self.params, params), strict=True))
        row = _empty_row(self.form, spill, on_disk=any(map(_is_reference, found.values())))
        minus = self.vector if as_update and not difference else None
        self.form.flatten(self.form.views(found, self._view), row, minus)
        if difference and not as_update:
            # What overflows is found by screening.
            with np.errstate(all="ignore"):
                row += self.vector
        written(row)
        return row

    def written(self, trained: Arrays) -> Params:
        """Return parameters like those that were sent, with these arrays; entries that are not trained stay."""
        return _written(self.params, trained, "")

    def is_like(self, arrays: Arrays) -> bool:
        """Tell whether arrays of this form have this model's types as well."""
        return all(array.dtype == arrays[name].dtype for name, array in self.arrays.items())

    def equals(self, arrays: Arrays) -> bool:
        """Tell whether this model has the values of arrays of its form."""
        return all(np.array_equal(array, arrays[name]) for name, array in self.arrays.items())

    def _view(self, value: Any, entry: Entry) -> npt.NDArray[Any]:
        if _is_reference(value):
            value = value.materialize()
        if _is_tensor(value):
            # Before anything else: what is only described as large must not be made so.
            if tuple(value.shape) != entry.shape:
                raise Unusable(f"array {short(entry.name)} has shape {short(tuple(value.shape))}, not {entry.shape}")
            if _is_bfloat16(value) and entry.name not in self._bfloat16:
                raise Unusable(f"array {short(entry.name)} has dtype bfloat16 instead of {entry.dtypes[0]}")
            if not _is_dense(value):
                raise Unusable(
                    f"array {short(entry.name)} is a tensor of layout {short(value.layout)}, not a dense one"
                )
        return view_array(_as_array(value), entry)


def arrays_of(params: Params) -> dict[str, npt.NDArray[Any]]:
    """Return the server's own parameters as arrays by name; bfloat16, which NumPy does not have, becomes float32."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, value in _named(params):
        if name in arrays:
            raise ValueError(f"the model has two arrays named {name!r}; give them keys that differ as texts")
        array = _as_array(value) if not _is_tensor(value) or _is_dense(value) else None
        if not isinstance(array, np.ndarray):
            raise ValueError(
                f"the model's array {name!r} is of type {type(value).__name__}; give NumPy arrays or dense tensors"
            )
        arrays[name] = array
    return arrays


def _named(params: Params, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the server's own arrays by their keys, nested ones joined by dots."""
    for key, value in params.items():
        if isinstance(value, dict):
            yield from _named(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _values(own: Params, sent: Any) -> Iterator[Any]:
    """Yield a client's arrays in the order of the server's own; `Unusable` where its dictionaries have other keys."""
    if not isinstance(sent, dict):
        raise Unusable(f"its parameters, or a part of them, are {short(type(sent).__name__)}, not a dictionary")
    missing = [key for key in own if key not in sent]
    if missing or len(sent) != len(own):
        fault = f"lacks array {short(missing[0])}" if missing else ""
        extra = next((key for key in sent if key not in own), None)
        more = f"has an unknown array {short(extra)}" if extra is not None else ""
        raise Unusable(f"{len(sent)} arrays instead of {len(own)}: " + ", ".join(filter(None, (fault, more))))
    for key, value in own.items():
        if isinstance(value, dict):
            yield from _values(value, sent[key])
        else:
            yield sent[key]


def _written(own: Params, trained: Mapping[str, npt.NDArray[Any]], prefix: str) -> Params:
    made: Params = {}
    for key, value in own.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            made[key] = _written(value, trained, f"{name}.")
        else:
            made[key] = _like(value, trained[name]) if name in trained else value
    return made


def _like(value: Any, array: npt.NDArray[Any]) -> Any:
    """Return an array as the kind of object that the model has in its place."""
    if isinstance(value, np.generic):
        return array[()]
    if isinstance(value, bool | int | float):
        return array.item()
    if not _is_tensor(value):
        return array
    torch = sys.modules["torch"]
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    if _is_bfloat16(value):
        # The largest float32 numbers would become infinite.
        limits = torch.finfo(value.dtype)
        tensor = tensor.clamp(limits.min, limits.max)
    return tensor.to(dtype=value.dtype, device=value.device)


def _empty_row(form: ModelForm, spill: Spill | None, *, on_disk: bool) -> npt.NDArray[Any]:
    """Return room for a reply's values: where replies are spilled, and for one that NVFlare left on disk, in a file."""
    if spill is not None:
        return spill.vector(form.dimension, form.dtype)
    return (mapped_vector if on_disk else np.empty)(form.dimension, dtype=form.dtype)


def _is_reference(value: Any) -> bool:
    """Tell whether a value is NVFlare's reference to a tensor on disk; clients cannot send such objects."""
    return callable(getattr(value, "materialize", None))


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")  # where nobody has imported it, nothing is a tensor
    return torch is not None and isinstance(value, torch.Tensor)


def _is_bfloat16(value: Any) -> bool:
    return _is_tensor(value) and value.dtype == sys.modules["torch"].bfloat16


def _is_dense(tensor: Any) -> bool:
    return bool(tensor.layout == sys.modules["torch"].strided)


def _as_array(value: Any) -> Any:
    """Return tensors and single numbers as arrays, all else as it is."""
    if _is_tensor(value):
        value = value.detach().cpu()
        return (value.float() if _is_bfloat16(value) else value).numpy()
    return np.asarray(value) if isinstance(value, np.generic | bool | int | float) else value
