"""Single operations on numbers that Python cannot say, inside compiled code.

Written as branches or as `a if a < b else b`, these would become masked stores (slow on many CPUs) once a loop over
them is vectorised; as one compare and one select they become the vector minimum and maximum.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

# No NaN comes here, and whoever uses these must not care which of two zeros of different sign it gets.
_ANY_ZERO = ("nnan", "nsz")


def picked(builder: Any, comparison: str, first: Any, second: Any) -> Any:
    """Write down the choice of the lesser ("<") or greater (">") of two floats, or vectors of them."""
    wins = builder.fcmp_ordered(comparison, first, second, flags=_ANY_ZERO)
    return builder.select(wins, first, second, flags=_ANY_ZERO)


@intrinsic
def smaller(typing_context: Any, a: Any, b: Any) -> Any:
    """Return the lesser of two floats of one type; neither is NaN, and of two zeros it may be either."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return picked(builder, "<", *arguments)

    return a(a, a), codegen


@intrinsic
def larger(typing_context: Any, a: Any, b: Any) -> Any:
    """Return the greater of two floats of one type; neither is NaN, and of two zeros it may be either."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return picked(builder, ">", *arguments)

    return a(a, a), codegen


@intrinsic
def one_if(typing_context: Any, condition: Any) -> Any:
    """Return 1.0 where the condition holds, else 0.0."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.uitofp(arguments[0], ir.DoubleType())

    return types.float64(types.boolean), codegen


@intrinsic
def chosen(typing_context: Any, condition: Any, a: Any, b: Any) -> Any:
    """Return `a` where the condition holds, else `b`, having evaluated both."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    return a(types.boolean, a, a), codegen


@intrinsic
def bits_of(typing_context: Any, value: Any) -> Any:
    """Return the bits of a float64 as an int64."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def from_bits(typing_context: Any, bits: Any) -> Any:
    """Return the float64 that has the bits of an int64."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def looked_up(typing_context: Any, table: Any, index: Any) -> Any:
    """Return ``table[index]`` of a contiguous float64 array, by a load of its own.

    Marked as atomic, which costs nothing, so that no loop makes a gather of it: those are slower than single loads on
    most CPUs.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load_atomic(builder.gep(array.data, [arguments[1]]), "monotonic", 8)

    return types.float64(table, types.int64), codegen
