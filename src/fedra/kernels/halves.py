"""Rows of float16 and bfloat16: recognised by NumPy alone, read in place, widened to float32 a tile at a time.

NumPy has no bfloat16 of its own. Arrays of ml_dtypes are known by their type's name; what comes by DLPack, as PyTorch's
tensors do, is an array of `BFLOAT16`, records of one 16-bit number. All arithmetic is in float32, and so are results.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

BFLOAT16 = np.dtype([("bfloat16", np.uint16)])

# What compiled code takes for the sixteen bits of either: two integer types that rows never are otherwise.
_MARKS: dict[str, npt.DTypeLike] = {"float16": np.int16, "bfloat16": np.uint16}
_CPU, _BFLOAT = 1, 4


def half_kind(dtype: np.dtype[Any]) -> str:
    """Return "float16" or "bfloat16" for types that are that, else an empty text."""
    if dtype.kind == "f" and dtype.itemsize == 2:
        return "float16"
    if dtype.kind == "V" and dtype.itemsize == 2 and (dtype == BFLOAT16 or dtype.name == "bfloat16"):
        return "bfloat16"
    return ""


def mark(kind: str) -> npt.NDArray[Any]:
    """Return an empty array of the type that tells compiled code how to read the bits."""
    return np.empty(0, dtype=_MARKS[kind])


def widened(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a float32 copy of a float16 or bfloat16 array; others as they are."""
    kind = half_kind(array.dtype)
    if kind == "bfloat16":
        bits = np.ascontiguousarray(array).view(np.uint16)
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32) if kind else array


class _Tensor(ctypes.Structure):
    """DLPack's DLTensor, and what follows it in a managed one is not needed."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Memory:
    """Memory that a DLPack capsule keeps alive, as NumPy's array interface."""

    def __init__(self, capsule: Any) -> None:
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
        if (tensor.device_type, tensor.code, tensor.bits, tensor.lanes) != (_CPU, _BFLOAT, 16, 1):
            raise TypeError("not a bfloat16 tensor in the memory of the CPU; move it there first")
        shape = tuple(tensor.shape[: tensor.ndim])
        strides = tuple(2 * stride for stride in tensor.strides[: tensor.ndim]) if tensor.strides else None
        self.capsule = capsule
        self.__array_interface__ = {
            "version": 3,
            "typestr": "<u2",
            "shape": shape,
            "strides": strides,
            "data": ((tensor.data or 0) + tensor.byte_offset, False),
        }


def bfloat16_array(value: Any) -> npt.NDArray[Any]:
    """Return a bfloat16 tensor that offers DLPack as an array of `BFLOAT16`, without a copy where it has numbers."""
    array = np.asarray(_Memory(value.__dlpack__()))
    return array.view(BFLOAT16) if array.flags.c_contiguous else np.ascontiguousarray(array).view(BFLOAT16)
