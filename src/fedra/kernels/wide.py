"""Asking the compiler for its widest vectors, inside compiled code."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


@intrinsic
def prefer_wide_vectors(typing_context: Any) -> Any:
    """Let the function that calls this use 512-bit vectors where there are any.

    LLVM keeps to 256 bits on such machines, for fear of lower clocks; loops bound by arithmetic gain a quarter.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # llvmlite's own `add` takes only attributes from its list of names; should these no longer be a set, the
        # code is as right, and a little slower.
        attributes = builder.function.attributes
        if isinstance(attributes, set):
            set.add(attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), codegen
