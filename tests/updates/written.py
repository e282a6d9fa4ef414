"""Updates written to files in every form that clients send them in."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

Arrays = Mapping[str, np.ndarray]


def split(vector: np.ndarray, sizes: Sequence[int]) -> dict[str, np.ndarray]:
    """Return a vector as tensors of these sizes, whose names ascend."""
    assert sum(sizes) == vector.size
    parts = np.split(vector, np.cumsum(sizes)[:-1])
    return {f"t{place:03}": np.ascontiguousarray(part) for place, part in enumerate(parts)}


def write_safetensors(path: Path, arrays: Arrays) -> Path:
    save_file(dict(arrays), path.with_suffix(".safetensors"))
    return path.with_suffix(".safetensors")


def write_npz(path: Path, arrays: Arrays) -> Path:
    np.savez(path.with_suffix(".npz"), **arrays)
    return path.with_suffix(".npz")


def write_npy(path: Path, array: np.ndarray) -> Path:
    np.save(path.with_suffix(".npy"), array)
    return path.with_suffix(".npy")


def write_shards(path: Path, arrays: Arrays, shard_of: Sequence[int]) -> Path:
    """Write a folder of shards with their index; `shard_of` tells for each tensor in which shard it is."""
    path.mkdir()
    weight_map = {}
    for shard in sorted(set(shard_of)):
        name = f"model-{shard:05}.safetensors"
        held = {key: array for (key, array), of in zip(arrays.items(), shard_of, strict=True) if of == shard}
        save_file(held, path / name)
        weight_map |= dict.fromkeys(held, name)
    index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    return path


def raw_safetensors(header: Any, data: bytes = b"", *, length: int | None = None) -> bytes:
    """Return a safetensors file with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def bfloat16(values: np.ndarray) -> np.ndarray:
    """Return float32 values cut to what bfloat16 holds, still as float32."""
    return (values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def write_bfloat16(path: Path, arrays: Arrays) -> Path:
    """Write float32 arrays, whose values bfloat16 holds, as such."""
    header, data = {}, b""
    for name, array in arrays.items():
        part = (array.view(np.uint32) >> 16).astype("<u2").tobytes()
        about = {"dtype": "BF16", "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(part)]}
        header[name] = about
        data += part
    path = path.with_suffix(".safetensors")
    path.write_bytes(raw_safetensors(header, data))
    return path


def clients(folder: Path, matrix: np.ndarray, sizes: Sequence[int] | None = None) -> list[Path]:
    """Write each row of a matrix as a safetensors file of tensors of these sizes."""
    sizes = [matrix.shape[1]] if sizes is None else sizes
    return [write_safetensors(folder / f"client{i}", split(row, sizes)) for i, row in enumerate(matrix)]


def same_time(path: Path, like: os.stat_result) -> None:
    """Give a file the time of change that it had."""
    os.utime(path, ns=(like.st_atime_ns, like.st_mtime_ns))
