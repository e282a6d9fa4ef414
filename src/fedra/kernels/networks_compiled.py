"""Running a sorting network over the rows of a tile.

The steps are written out as vector instructions here, one loop for each pattern: rows are loaded, compared in
registers, and stored. Left to the compiler, in-place exchanges of rows become masked stores.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from fedra.kernels.networks import PATTERNS
from fedra.kernels.scalars import picked

# Rows of a tile begin with a cache line and are whole ones.
LINE = 64


def _vector_bytes(context: Any) -> int:
    """Return the size of this machine's vector registers; wrong, it would cost speed only."""
    return 64 if "+avx512f" in str(getattr(context.codegen(), "_tm_features", "")) else 32


def _exchanged(builder: Any, low: Any, high: Any) -> Any:
    return [picked(builder, "<", low[0], high[0])], [picked(builder, ">", low[0], high[0])]


def _exchanged_tagged(builder: Any, low: Any, high: Any) -> Any:
    """Exchange values and tags; of equal values the one with the lesser tag is low.

    Tags are numbers and move by the difference between them, which is exact: chosen, they would be masked stores again.
    """
    (a, s), (b, t) = low, high
    tie = builder.and_(builder.fcmp_ordered("==", a, b), builder.fcmp_ordered("<", t, s))
    swapped = builder.uitofp(builder.or_(builder.fcmp_ordered("<", b, a), tie), s.type)
    apart = builder.fmul(builder.fsub(t, s), swapped)
    low_value, high_value = picked(builder, "<", a, b), picked(builder, ">", a, b)
    return [low_value, builder.fadd(s, apart)], [high_value, builder.fsub(t, apart)]


def _write_step(context: Any, builder: Any, tiles: Any, steps: Any, position: Any, exchanged: Any) -> None:
    """Write the code of one step; `tiles` and `steps` are pairs of a type and a value."""
    word = context.get_value_type(types.intp)
    table = context.make_array(steps[0])(context, builder, steps[1])
    step = builder.gep(table.data, [builder.mul(position, cgutils.unpack_tuple(builder, table.shape)[1])])

    def entry(place: int) -> Any:
        return builder.load(builder.gep(step, [word(place)]))

    number = context.get_value_type(tiles[0][0].dtype)
    size = context.get_abi_sizeof(number)
    arrays = [context.make_array(kind)(context, builder, value) for kind, value in tiles]
    bases = [builder.ptrtoint(array.data, word) for array in arrays]
    row_bytes = builder.mul(cgutils.unpack_tuple(builder, arrays[0].shape)[1], word(size))
    vector_bytes = _vector_bytes(context)
    vector = ir.VectorType(number, vector_bytes // size)
    vectors = builder.udiv(row_bytes, word(vector_bytes))

    done = builder.append_basic_block("done")
    switch = builder.switch(entry(0), done)
    for kind, pattern in enumerate(PATTERNS):
        block = builder.append_basic_block(f"pattern{kind}")
        switch.add_case(word(kind), block)
        builder.position_at_end(block)
        rows = [builder.mul(entry(1 + i), row_bytes) for i in range(1 + max(max(pair) for pair in pattern))]
        with cgutils.for_range(builder, vectors) as loop:
            offset = builder.mul(loop.index, word(vector_bytes))
            places = [
                [builder.inttoptr(builder.add(builder.add(base, row), offset), vector.as_pointer()) for base in bases]
                for row in rows
            ]
            values = [[builder.load(place, align=vector_bytes) for place in row] for row in places]
            for low, high in pattern:
                values[low], values[high] = exchanged(builder, values[low], values[high])
            for row_places, row_values in zip(places, values, strict=True):
                for place, value in zip(row_places, row_values, strict=True):
                    builder.store(value, place, align=vector_bytes)
        builder.branch(done)
    builder.position_at_end(done)


@intrinsic
def _run_step(typing_context: Any, tile: Any, steps: Any, position: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _write_step(context, builder, [(tile, arguments[0])], (steps, arguments[1]), arguments[2], _exchanged)
        return context.get_dummy_value()

    return types.none(tile, steps, types.intp), codegen


@intrinsic
def _run_tagged_step(typing_context: Any, tile: Any, tags: Any, steps: Any, position: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tiles = [(tile, arguments[0]), (tags, arguments[1])]
        _write_step(context, builder, tiles, (steps, arguments[2]), arguments[3], _exchanged_tagged)
        return context.get_dummy_value()

    return types.none(tile, tags, steps, types.intp), codegen


@njit(nogil=True, cache=True)
def sort_columns(tile: Any, steps: Any) -> None:
    """Run a network over the rows of a tile (`columns.aligned`); none of its values is NaN."""
    for c in range(steps.shape[0]):
        _run_step(tile, steps, c)


@njit(nogil=True, cache=True)
def sort_tagged_columns(tile: Any, tags: Any, steps: Any) -> None:
    """Run a network over the rows of a tile and their tags, which are float64 as well."""
    for c in range(steps.shape[0]):
        _run_tagged_step(tile, tags, steps, c)
