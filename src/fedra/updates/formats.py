"""Which files make up an update, and which tensors lie where in them: safetensors, whole or sharded, .npz and .npy."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedra.server.faults import Unusable, short
from fedra.server.npy import read_header
from fedra.untrusted import is_file_name, parsed_json
from fedra.updates import safetensors_header
from fedra.updates.sources import SourceFile
from fedra.updates.tensors import KINDS, Kind, Tensor

INDEX = ".safetensors.index.json"
# A header of NumPy's has at most 10,000 bytes after the 12 that tell of it.
_NPY_PREFIX = 10_012
# Of an index of shards, and of the directory at the end of an .npz; such files have some 100 bytes for each tensor.
_LONGEST_LIST = 16 << 20
_LOCAL_HEADER = b"PK\x03\x04"
_BY_RAW = {kind.raw: kind for name, kind in KINDS.items() if name != "BF16"}


@dataclass(frozen=True, eq=False, kw_only=True)
class Contents:
    """The files of an update, and its tensors by name; `path` is what was asked for."""

    path: Path
    files: tuple[SourceFile, ...]
    tensors: dict[str, Tensor]

    def close(self) -> None:
        """Close the files."""
        for file in self.files:
            file.close()


def read_contents(path: Path) -> Contents:
    """Open the files of an update and read their headers; `Unusable` where they cannot be one."""
    files: list[SourceFile] = []
    try:
        tensors = _read(path, files)
    except BaseException as error:
        for file in files:
            file.close()
        if isinstance(error, OSError):
            raise Unusable(f"{short(path.name)} cannot be read: {short(error.strerror)}") from error
        raise
    return Contents(path=path, files=tuple(files), tensors=tensors)


def _read(path: Path, files: list[SourceFile]) -> dict[str, Tensor]:
    if path.is_dir():
        path = _in_folder(path)
    if path.name.endswith(INDEX):
        return _read_shards(path, files)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise Unusable(f"{short(path.name)} is none of {', '.join(READERS)}, a folder of shards, or its model{INDEX}")
    return _read_one(path, reader, files)


def _read_one(path: Path, reader: Reader, files: list[SourceFile]) -> dict[str, Tensor]:
    file = SourceFile(path)
    files.append(file)
    try:
        return reader(file, len(files) - 1)
    except Unusable as error:
        raise Unusable(f"{short(path.name)} {error}") from error


def _in_folder(folder: Path) -> Path:
    """Return the index of the shards in a folder, or the one safetensors file in it."""
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith((".safetensors", INDEX)))
    found = [name for name in names if name.endswith(INDEX)] or names
    if len(found) != 1:
        raise Unusable(f"folder {short(folder.name)} holds {len(found)} files that could be it; name the one to read")
    return folder / found[0]


def _read_shards(path: Path, files: list[SourceFile]) -> dict[str, Tensor]:
    index = SourceFile(path)
    files.append(index)
    if index.size > _LONGEST_LIST:
        raise Unusable(f"{short(path.name)} has {index.size} bytes, more than {_LONGEST_LIST}")
    content = index.head(index.size)
    index.header_digest = hashlib.sha256(content).hexdigest()
    try:
        found = parsed_json(content)
    except ValueError as error:
        raise Unusable(f"{short(path.name)} is no JSON: {short(error)}") from error
    places = found.get("weight_map") if isinstance(found, dict) else None
    if not isinstance(places, dict) or not places or not all(map(_is_shard, places.values())):
        raise Unusable(f"{short(path.name)} has no weight_map of tensors to the files beside it that they are in")
    tensors: dict[str, Tensor] = {}
    for shard in sorted(set(places.values())):
        for name, tensor in _read_one(path.with_name(shard), read_safetensors, files).items():
            if places.get(name) != shard:
                raise Unusable(f"{short(shard)} holds tensor {short(name)}, which its index does not say")
            tensors[name] = tensor
    if missing := [name for name in places if name not in tensors]:
        raise Unusable(f"{short(places[missing[0]])} lacks tensor {short(missing[0])}, which its index says is there")
    return tensors


def _is_shard(name: Any) -> bool:
    return is_file_name(name) and name.endswith(".safetensors")


def read_safetensors(file: SourceFile, place: int) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file."""
    prefix = file.head(safetensors_header.LENGTH_BYTES)
    length = safetensors_header.header_length(prefix, file.size)
    header = file.head(length, safetensors_header.LENGTH_BYTES)
    file.header_digest = hashlib.sha256(prefix + header).hexdigest()
    return safetensors_header.read_tensors(header, file.size, place)


def read_npy(file: SourceFile, place: int) -> dict[str, Tensor]:
    """Return the array of an .npy file, under the name "array"."""
    head = file.head(_NPY_PREFIX)
    file.header_digest = hashlib.sha256(head).hexdigest()
    return {"array": _array(head, place, 0, file.size)}


def read_npz(file: SourceFile, place: int) -> dict[str, Tensor]:
    """Return the arrays of an .npz file, which must not be compressed: parts of it are read where they lie."""
    tensors: dict[str, Tensor] = {}
    digest = hashlib.sha256()
    for member in _members(file):
        name = member.filename.removesuffix(".npy")
        if name == member.filename or name in tensors:
            raise Unusable(f"holds {short(member.filename)}, which is no array of NumPy's or stands there twice")
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
            raise Unusable("is compressed; write it with numpy.savez, not savez_compressed")
        start = _data_offset(file, member)
        if member.file_size != member.compress_size or start + member.file_size > file.size:
            raise Unusable(f"is cut short in array {short(name)}")
        head = file.head(min(_NPY_PREFIX, member.file_size), start)
        digest.update(head)
        try:
            tensors[name] = _array(head, place, start, member.file_size)
        except Unusable as error:
            raise Unusable(f"array {short(name)} {error}") from error
    file.header_digest = digest.hexdigest()
    return tensors


def _array(head: bytes, place: int, start: int, length: int) -> Tensor:
    """Return the tensor of .npy bytes that begin at `start` of a file."""
    header = read_header(head)
    kind: Kind | None = _BY_RAW.get(header.dtype)
    if kind is None:
        raise Unusable(
            f"has dtype {short(header.dtype.str)}, none of {', '.join(kind.name for kind in _BY_RAW.values())}"
        )
    if header.fortran and len(header.shape) > 1:
        raise Unusable("is in Fortran order; save it in C order, by numpy.ascontiguousarray")
    tensor = Tensor(kind=kind, shape=header.shape, file=place, offset=start + header.offset)
    if header.offset + tensor.size * kind.itemsize != length:
        raise Unusable(f"has {length} bytes instead of {header.offset + tensor.size * kind.itemsize}")
    return tensor


def _members(file: SourceFile) -> list[zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(_Window(file)) as archive:
            return archive.infolist()
    except Unusable:
        raise
    except Exception as error:  # a damaged archive raises whatever its first wrong byte leads to
        raise Unusable(f"is no .npz: {short(error)}") from error


def _data_offset(file: SourceFile, member: zipfile.ZipInfo) -> int:
    local = file.head(30, member.header_offset) if member.header_offset >= 0 else b""
    if len(local) != 30 or local[:4] != _LOCAL_HEADER:
        raise Unusable(f"is damaged at {short(member.filename)}")
    return member.header_offset + 30 + int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")


class _Window(io.RawIOBase):
    """A file as `zipfile` wants one, of which no more than a directory's worth is ever read at once."""

    def __init__(self, file: SourceFile) -> None:
        self._file, self._place = file, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = 0) -> int:
        place = offset + (0, self._place, self._file.size)[whence]
        if place < 0:
            raise OSError("before the beginning of the file")
        self._place = place
        return place

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._file.size - self._place)
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted > _LONGEST_LIST:
            raise Unusable(f"has a directory of {wanted} bytes, more than {_LONGEST_LIST}")
        content = self._file.head(wanted, self._place)
        self._place += len(content)
        return content


Reader = Callable[[SourceFile, int], dict[str, Tensor]]
READERS: dict[str, Reader] = {".safetensors": read_safetensors, ".npz": read_npz, ".npy": read_npy}


def own_contents(path: Path, what: str) -> Contents:
    """Return the contents of a file that is the caller's own; ValueError where it cannot be read."""
    try:
        return read_contents(path)
    except Unusable as error:
        raise ValueError(f"{what} {path}: {error}") from error
