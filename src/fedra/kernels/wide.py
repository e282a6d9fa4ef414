"""What the compiler cannot know about a loop, and is told inside it: which vectors to use, what lies apart."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
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


@intrinsic
def apart_in_memory(typing_context: Any) -> Any:
    """Promise that no two arrays given to the function that calls this overlap.

    A loop over rows of a tile is short; checking first that none of seven arrays overlaps costs more than the loop.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        for argument in builder.function.args:
            # Arrays' numbers, and not the owners of their memory, which are bytes and may be shared.
            if isinstance(getattr(argument.type, "pointee", None), ir.FloatType | ir.DoubleType):
                argument.add_attribute("noalias")
        return context.get_dummy_value()

    return types.none(), codegen
