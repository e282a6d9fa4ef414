"""Widening float16 and bfloat16 inside compiled code, exactly, on any CPU."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from fedra.kernels.pointers import row_part


def _from_bfloat16(builder: Any, bits: Any) -> Any:
    word = ir.IntType(32)
    return builder.bitcast(builder.shl(builder.zext(bits, word), word(16)), ir.FloatType())


def _from_float16(builder: Any, bits: Any) -> Any:
    """Move exponent and fraction to their places; subnormal numbers are whole multiples of 2**-24."""
    word, real = ir.IntType(32), ir.FloatType()
    wide = builder.zext(bits, word)
    magnitude = builder.and_(wide, word(0x7FFF))
    sign = builder.shl(builder.and_(wide, word(0x8000)), word(16))
    moved = builder.shl(magnitude, word(13))
    # The exponent's bias is 112 larger; infinity and NaN have the largest exponent here and there.
    larger = builder.select(builder.icmp_unsigned(">=", magnitude, word(0x7C00)), word(224 << 23), word(112 << 23))
    normal = builder.add(moved, larger)
    small = builder.bitcast(builder.fmul(builder.sitofp(magnitude, real), real(2.0**-24)), word)
    value = builder.select(builder.icmp_unsigned("<", magnitude, word(0x400)), small, normal)
    return builder.bitcast(builder.or_(value, sign), real)


@intrinsic
def widened(typing_context: Any, value: Any) -> Any:
    """Return a float as it is, the bits of a float16 (int16) or bfloat16 (uint16) as float32 (`halves.mark`)."""
    if isinstance(value, types.Float):
        return value(value), lambda context, builder, signature, arguments: arguments[0]
    convert = {types.int16: _from_float16, types.uint16: _from_bfloat16}[value]
    return types.float32(value), lambda context, builder, signature, arguments: convert(builder, arguments[0])


@njit(nogil=True, cache=True)
def widen_block(addresses: Any, start: int, like: Any, wide: Any) -> None:
    """Fill the rows of a matrix with the columns from `start` on."""
    for i in range(addresses.shape[0]):
        row = row_part(addresses[i], start, start + wide.shape[1], like)
        target = wide[i]
        for k in range(row.shape[0]):
            target[k] = widened(row[k])
