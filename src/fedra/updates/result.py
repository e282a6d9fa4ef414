"""The result of an aggregation as a safetensors file, written in parts and moved to its place in one step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from fedra.files import move_whole, open_plain, sync_folder
from fedra.optimizers import SGD
from fedra.updates.formats import Contents
from fedra.updates.readers import TensorReader
from fedra.updates.safetensors_header import make_header
from fedra.updates.sources import as_bytes
from fedra.updates.store import FolderStore
from fedra.updates.tensors import Form, Slot, narrowed

_PART = 1 << 20
# What loaders of models look for.
_METADATA = {"format": "pt"}


def result_slots(form: Form, *, whole: bool) -> list[Slot]:
    """Return the tensors of a result as they follow one another in its file: wide types first, so that all lie aligned.

    `whole`: it is a model, and has those that are not of floats as well.
    """
    slots = form.slots if whole else form.trained
    return sorted(slots, key=lambda slot: -slot.kind.itemsize)


def result_header(form: Form, *, whole: bool) -> bytes:
    """Return the first bytes of a result's file."""
    return make_header(((slot.name, slot.kind, slot.shape) for slot in result_slots(form, whole=whole)), _METADATA)


def is_final(form: Form, *, whole: bool) -> bool:
    """Tell whether a vector, behind the header, is the file already."""
    return not whole and all(slot.kind.raw == form.dtype and slot.kind.name != "BF16" for slot in form.trained)


def write_result(
    path: Path,
    update: npt.NDArray[Any],
    form: Form,
    *,
    base: Contents | None,
    rate: float,
    store: FolderStore,
) -> None:
    """Write an update, or the model that it makes of a base, ``base + rate * update``, in the types of the form.

    Raises:
        ValueError: where a value would not be finite in its type; nothing is written then.
    """
    vector = store.path_of(update)
    if base is None and vector is not None and is_final(form, whole=False):
        move_whole(vector, path)
    else:
        fresh = store.folder / "result"
        fresh.unlink(missing_ok=True)
        with open_plain(fresh, "xb") as file:
            _write(file, update, form, base, rate, store)
        move_whole(fresh, path)
    sync_folder(path.parent)


def _write(
    file: IO[bytes], update: npt.NDArray[Any], form: Form, base: Contents | None, rate: float, store: FolderStore
) -> None:
    file.write(result_header(form, whole=base is not None))
    sent = None if base is None else TensorReader(base, form, None)
    for slot in result_slots(form, whole=base is not None):
        if slot.kind.trained:
            for values in _values(update, slot, sent, SGD(lr=rate), store):
                file.write(_checked(values, slot).data)
        elif base is not None:
            _copy(file, base, slot)


def _values(
    update: npt.NDArray[Any], slot: Slot, sent: TensorReader | None, optimizer: SGD, store: FolderStore
) -> Iterator[npt.NDArray[Any]]:
    for first in range(slot.start, slot.stop, _PART):
        last = min(first + _PART, slot.stop)
        part = store.read(update, first, last)
        if sent is not None:
            model = np.empty_like(part)
            sent.read(first, last, model)
            with np.errstate(all="ignore"):
                # Optimizers descend along a gradient; an update points where the clients went.
                part = np.asarray(optimizer.step(model, -part, optimizer.init(part.size))[0])
        yield part


def _checked(values: npt.NDArray[Any], slot: Slot) -> npt.NDArray[Any]:
    """Return values in the type of their tensor, all of them finite in it."""
    held: npt.NDArray[Any] = narrowed(values, slot.kind)
    finite = np.isfinite(values) & ((held & 0x7F80) != 0x7F80 if slot.kind.name == "BF16" else np.isfinite(held))
    if not finite.all():
        raise ValueError(
            f"tensor {slot.name!r} of the result would be beyond the range of {slot.kind.name}; nothing is written"
        )
    return held


def _copy(file: IO[bytes], base: Contents, slot: Slot) -> None:
    tensor = base.tensors[slot.name]
    left, offset = tensor.size * tensor.kind.itemsize, tensor.offset
    while left:
        part = np.empty(min(left, _PART), dtype=np.uint8)
        base.files[tensor.file].read_into(as_bytes(part), offset)
        file.write(part.data)
        left, offset = left - part.size, offset + part.size
