"""The .npy format, as narrow as it can be: nothing that NumPy would not load alike.

NumPy evaluates a header as a Python literal. Here it is matched against the few forms that writers of arrays of numbers
use, so that what a client sends is never parsed as Python, and what passes means the same to NumPy.
"""

from __future__ import annotations

import functools
import io
import math
import re
import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from fedra.server.faults import Unusable, short

# As in NumPy, which refuses longer ones, and more dimensions.
_LONGEST_HEADER = 10_000
_MOST_DIMENSIONS = 64
# How many bytes say the header's length, by version.
_LENGTH_BYTES = {(1, 0): 2, (2, 0): 4, (3, 0): 4}

_ITEM = re.compile(
    r"""(['"])(?P<key>descr|fortran_order|shape)\1\ *:\ *
    ((['"])(?P<text>[^'"\\]*)\4|(?P<truth>True|False)|\((?P<lengths>[-0-9,\ ]*)\))\ *(?P<comma>,?)\ *""",
    re.VERBOSE,
)
_LENGTH = re.compile(r"0|[1-9][0-9]{0,18}")
_DESCRIPTION = re.compile(r"[<>|=]?[A-Za-z?][0-9]{0,4}(\[[A-Za-z0-9]{1,8}\])?")


class Header(NamedTuple):
    """What a header says, and where the values begin."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    offset: int


def read_header(data: bytes | memoryview) -> Header:
    """Read the header of an array of plain values; `Unusable` for all else."""
    if data[:6] != npy.MAGIC_PREFIX:
        raise Unusable("cannot be read: it does not begin as .npy data does")
    version = tuple(data[6:8])
    if version not in _LENGTH_BYTES:
        raise Unusable(f"cannot be read: .npy version {short(version)} instead of 1.0, 2.0 or 3.0")
    start = 8 + _LENGTH_BYTES[version]
    length = int.from_bytes(data[8:start], "little")
    stop = start + length
    if length > _LONGEST_HEADER or len(data) < stop:
        raise Unusable(f"cannot be read: a header of {length} bytes in {len(data)} bytes")
    items = _items(bytes(data[start:stop]))
    shape, dtype = _shape(items["shape"]), _dtype(items["descr"])
    # NumPy refuses what it could not address, also where another length is zero.
    if len(shape) > _MOST_DIMENSIONS or dtype.itemsize * math.prod(max(1, length) for length in shape) > sys.maxsize:
        raise Unusable(f"has the impossible shape {short(shape)}")
    return Header(shape, items["fortran_order"] == "True", dtype, stop)


@functools.lru_cache(maxsize=4096)
def make_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of version 1.0 for an array of that type in C order."""
    stream = io.BytesIO()
    npy.write_array_header_1_0(stream, {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape})
    return stream.getvalue()


def _items(header: bytes) -> dict[str, str]:
    """Return the dictionary that a header is, each value as its text."""
    try:
        text = header.decode("ascii")
    except UnicodeDecodeError as error:
        raise Unusable(f"cannot be read: {short(error)}") from error
    # Not by a pattern: one that allows for spaces in several places takes minutes to refuse a header full of them.
    body = text.removesuffix("\n").rstrip(" ")
    if not (body.startswith("{") and body.endswith("}")):
        raise Unusable(f"cannot be read: its header is {short(text)}")
    inside, place, more = body[1:-1].strip(" "), 0, True
    found: dict[str, str] = {}
    while place < len(inside):
        item = _ITEM.match(inside, place)
        kind = None if item is None else _KINDS[item["key"]]
        if item is None or not more or item["key"] in found or item[str(kind)] is None:
            raise Unusable(f"cannot be read: its header describes no plain numbers: {short(text)}")
        found[item["key"]] = item[str(kind)]
        more = bool(item["comma"])
        place = item.end()
    if len(found) != len(_KINDS):
        raise Unusable(f"cannot be read: its header lacks {sorted(set(_KINDS) - set(found))[0]}")
    return found


# Which kind of value each key must have.
_KINDS = {"descr": "text", "fortran_order": "truth", "shape": "lengths"}


def _shape(text: str) -> tuple[int, ...]:
    parts = [part.strip(" ") for part in text.split(",")]
    if parts == [""]:
        return ()
    if parts[-1] == "":
        parts.pop()
    elif len(parts) == 1:
        raise Unusable(f"cannot be read: its shape is ({short(parts[0])}), which is no tuple")
    if any(_LENGTH.fullmatch(part) is None for part in parts):
        raise Unusable(f"has the impossible shape {short(text)}")
    return tuple(map(int, parts))


def _dtype(text: str) -> np.dtype[Any]:
    if _DESCRIPTION.fullmatch(text) is None:
        raise Unusable(f"has dtype {short(text)}, which is no plain number")
    try:
        dtype = np.dtype(text)
    except Exception as error:
        raise Unusable(f"has dtype {text}, which NumPy does not know") from error
    if dtype.hasobject or dtype.kind not in "fiubc":
        raise Unusable(f"has dtype {text}, which is no plain number")
    return dtype
