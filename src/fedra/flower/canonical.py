"""What strategies are given and what becomes the model: arrays in one form, whatever form a client chose.

Of what a client sent only the values of trained entries are used. Headers, types, memory order, the order of the
arrays and the fields that describe them are the server's own, and so are entries that are not trained: nobody scores
those, so nobody's may count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from flwr.app import Array

from fedra.flower.model import Entry, ModelForm

T = TypeVar("T")


def canonical_npy(entry: Entry, values: npt.NDArray[Any]) -> bytes:
    """Return flat values as .npy bytes of version 1.0 in C order, of the entry's widest type."""
    return b"".join((entry.header, np.ascontiguousarray(values, dtype=entry.widest).data))


def canonical_array(entry: Entry, data: bytes) -> Array:
    """Return canonical bytes as Flower's Array, described as they are."""
    return Array(str(entry.widest), entry.shape, "numpy.ndarray", data)


def arrange(form: ModelForm, trained: Callable[[Entry], T], sent: Mapping[str, T]) -> Iterator[tuple[str, T]]:
    """Yield a reply's arrays in the server's order: trained ones as given, all others as the server `sent` them."""
    for entry in form.entries:
        yield entry.name, trained(entry) if entry.trained else sent[entry.name]


def canonical_tensors(form: ModelForm, reply: Mapping[str, bytes], sent: Mapping[str, bytes]) -> list[bytes]:
    """Return a reply that `form` can read as a list of .npy bytes; those that are canonical already are not copied."""
    views = iter(form.read(reply))

    def tensor(entry: Entry) -> bytes:
        data, values = reply[entry.name], next(views)
        same = data.startswith(entry.header) and len(data) == len(entry.header) + values.nbytes
        return data if same and values.dtype == entry.widest else canonical_npy(entry, values)

    return [data for _, data in arrange(form, tensor, sent)]


def pinned(form: ModelForm, result: Mapping[str, T], sent: Mapping[str, T]) -> dict[str, T]:
    """Return a strategy's result with the entries that are not trained as the server sent them."""
    fixed = {entry.name for entry in form.entries if not entry.trained}
    return {name: sent[name] if name in fixed else array for name, array in result.items()}
