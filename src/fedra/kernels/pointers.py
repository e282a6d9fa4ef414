"""Reading a row in place from its address, inside compiled code."""

from __future__ import annotations

from typing import Any

from numba import carray, njit, types
from numba.extending import intrinsic


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
