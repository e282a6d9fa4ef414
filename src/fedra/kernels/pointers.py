"""Reading a row in place from its address, inside compiled code."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import carray, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_LINE = 64
_PIECE = 2048


@intrinsic
def _pointer_like(typing_context: Any, address: Any, like: Any) -> Any:
    pointer = types.CPointer(like.dtype)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(types.uintp, like), codegen


@njit(nogil=True, cache=True)
def row_part(address: Any, start: int, stop: int, like: Any) -> Any:
    """Return columns start..stop of the row at this address, its elements of the type of the array `like`.

    The part counts from 0: loops over it have indices known to be non-negative, which is what lets them vectorise.
    """
    return carray(_pointer_like(address + start * like.itemsize, like), (stop - start,))


@intrinsic
def _fetch_ahead(typing_context: Any, address: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = ir.IntType(32)
        text = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [text, number, number, number])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        # For reading, into the second-level cache: the first is full of the tile that is being worked on.
        builder.call(fetch, [builder.inttoptr(arguments[0], text), number(0), number(2), number(1)])
        return context.get_dummy_value()

    return types.none(types.uintp), codegen


@njit(nogil=True, cache=True)
def fetch_ahead(address: Any, position: int, first: int, stop: int, width: int, like: Any) -> None:
    """Ask the memory for what tiles after this one need of a row, `first` being this tile's column.

    Many rows, each read in short pieces, are too many streams for the hardware to foresee. Pieces of a row are longer
    than a tile's, and rows take turns.
    """
    tiles = max(1, _PIECE // (width * like.itemsize))
    if (first // width + position) % tiles == 0:
        start = first + width
        for place in range(start * like.itemsize, min(start + tiles * width, stop) * like.itemsize, _LINE):
            _fetch_ahead(address + place)


@njit(nogil=True, cache=True)
def write_part(out: Any, first: int, values: Any, used: int) -> None:
    """Write the first `used` values to an array from `first` on; by index, it would be a scatter."""
    part = out[first : first + used]
    for k in range(part.shape[0]):
        part[k] = values[k]
