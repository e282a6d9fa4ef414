"""The work of a pass as bytes: a kernel's own function, with the rows and results it is about left as numbers.

What a kernel does with a block of columns is a function of that block and of what it closes over. Sending just that
function leaves every kernel as it is; rows of files, vectors and results are put in their places where it arrives.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedra.updates.passes import Array, Passes
from fedra.updates.readers import TensorReader, VectorReader

Work = Callable[[int, int], Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class Packed:
    """Work as bytes, and what the numbers in it stand for."""

    work: bytes
    rows: tuple[TensorReader, ...]
    vectors: tuple[VectorReader, ...]
    results: tuple[Array, ...]


def packed(work: Work, passes: Passes) -> Packed:
    """Return the work of a pass as bytes."""
    from ray import cloudpickle

    found: dict[str, dict[int, tuple[int, Any]]] = {"row": {}, "vector": {}, "result": {}}

    class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
        def persistent_id(self, value: Any) -> tuple[str, int] | None:
            if value is passes:
                return "passes", 0
            if isinstance(value, TensorReader):
                kind = "row"
            elif isinstance(value, VectorReader):
                kind = "vector"
            elif passes.is_result(value):
                kind = "result"
            else:
                return None
            # By identity: one that is there twice stays one, and is read once.
            number, _ = found[kind].setdefault(id(value), (len(found[kind]), value))
            return kind, number

    content = io.BytesIO()
    Pickler(content, protocol=pickle.HIGHEST_PROTOCOL).dump(work)
    return Packed(
        work=content.getvalue(),
        rows=tuple(value for _, value in found["row"].values()),
        vectors=tuple(value for _, value in found["vector"].values()),
        results=tuple(value for _, value in found["result"].values()),
    )


def unpacked(work: bytes, values: Mapping[str, Sequence[Any]]) -> Work:
    """Return work from its bytes, with these values in the place of its numbers."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, pid: tuple[str, int]) -> Any:
            kind, number = pid
            return values[kind][number]

    found: Work = Unpickler(io.BytesIO(work)).load()
    return found
