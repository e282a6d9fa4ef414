"""The header of a safetensors file, read as strictly as the format's own library reads it, or more so.

The library maps files into memory, where one that shrinks ends the process; here bytes are read, and only the header
is looked at. What passes means the same to the library.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from fedra.server.faults import Unusable, short
from fedra.updates.tensors import KINDS, Kind, Tensor

LENGTH_BYTES = 8
# The library takes 100 MB, which as Python objects would be gigabytes; so many bytes are some 150,000 tensors.
LONGEST_HEADER = 16 << 20
_MOST_DIMENSIONS = 64
_LARGEST = 2**63 - 1
_METADATA = "__metadata__"
_FIELDS = {"dtype", "shape", "data_offsets"}


def header_length(prefix: bytes, file_size: int) -> int:
    """Return how many bytes the header has, of which a file's first eight bytes tell."""
    if len(prefix) < LENGTH_BYTES:
        raise Unusable(f"holds {file_size} bytes, too few for a safetensors file")
    length = int.from_bytes(prefix, "little")
    if length > LONGEST_HEADER or LENGTH_BYTES + length > file_size:
        raise Unusable(f"has a header of {length} bytes in a file of {file_size}: it is cut short, or no safetensors")
    return length


def read_tensors(header: bytes, file_size: int, file: int) -> dict[str, Tensor]:
    """Return the tensors that a header describes; together they are all that follows it, without gap or overlap."""
    begin = LENGTH_BYTES + len(header)
    described = _parsed(header)
    _check_metadata(described.pop(_METADATA, {}))
    tensors: dict[str, Tensor] = {}
    ranges = []
    for name, about in described.items():
        kind, shape, start, stop = _described(name, about)
        tensors[name] = Tensor(kind=kind, shape=shape, file=file, offset=begin + start)
        ranges.append((start, stop))
    end = 0
    for start, stop in sorted(ranges):
        if start != end:
            raise Unusable(f"has a header in which tensors overlap or leave a gap at byte {end}")
        end = stop
    if begin + end != file_size:
        raise Unusable(f"has {file_size} bytes instead of the {begin + end} that its header tells of")
    return tensors


def make_header(slots: Iterable[tuple[str, Kind, tuple[int, ...]]], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return the first bytes of a safetensors file whose tensors follow one another in this order."""
    described: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    start = 0
    for name, kind, shape in slots:
        stop = start + math.prod(shape) * kind.itemsize
        described[name] = {"dtype": kind.name, "shape": list(shape), "data_offsets": [start, stop]}
        start = stop
    text = json.dumps(described, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % LENGTH_BYTES)
    return len(text).to_bytes(LENGTH_BYTES, "little") + text


def _parsed(header: bytes) -> dict[str, Any]:
    if not header.startswith(b"{"):
        raise Unusable(f"has a header that begins with {short(header[:8])} instead of a brace")
    try:
        found = json.loads(
            header.decode(), object_pairs_hook=_unique, parse_constant=_refused, parse_float=_refused, parse_int=_whole
        )
    except Unusable:
        raise
    except (ValueError, RecursionError) as error:
        raise Unusable(f"has a header that is no JSON: {short(error)}") from error
    if not isinstance(found, dict):
        raise Unusable("has a header that is no table")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Unusable("has a header with a name that stands there twice")
    return found


def _refused(text: str) -> Any:
    raise Unusable(f"has a header with the number {short(text)}, where whole numbers belong")


def _whole(text: str) -> int:
    # Before it is a number: Python takes long to read many digits, and -0 for 0.
    if text.startswith("-") or len(text) > 19 or int(text) > _LARGEST:
        _refused(text)
    return int(text)


def _check_metadata(metadata: Any) -> None:
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise Unusable("has metadata that are no table of texts")
    _check_text("its metadata", "".join((*metadata, *metadata.values())))


def _check_text(what: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Unusable(f"has half a character in {what}") from error


def _described(name: str, about: Any) -> tuple[Kind, tuple[int, ...], int, int]:
    _check_text("a tensor's name", name)
    what = f"tensor {short(name)}"
    if not isinstance(about, dict) or about.keys() != _FIELDS:
        raise Unusable(f"{what} is not described by dtype, shape and data_offsets")
    dtype, shape, offsets = about["dtype"], about["shape"], about["data_offsets"]
    if not isinstance(dtype, str) or dtype not in KINDS:
        raise Unusable(f"{what} has dtype {short(dtype)}; fedra reads {', '.join(KINDS)}")
    if not _are_whole(shape) or len(shape) > _MOST_DIMENSIONS:
        raise Unusable(f"{what} has the impossible shape {short(shape)}")
    if not _are_whole(offsets) or len(offsets) != 2:
        raise Unusable(f"{what} has the impossible place {short(offsets)}")
    kind = KINDS[dtype]
    # What no array could have is refused also where another length is zero, as NumPy and the library do.
    if kind.itemsize * math.prod(max(1, length) for length in shape) > _LARGEST:
        raise Unusable(f"{what} has the impossible shape {short(shape)}")
    size = kind.itemsize * math.prod(shape)
    if offsets[1] - offsets[0] != size:
        raise Unusable(f"{what} holds {offsets[1] - offsets[0]} bytes instead of {size}")
    return kind, tuple(shape), offsets[0], offsets[1]


def _are_whole(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, int) and not isinstance(value, bool) for value in values)
