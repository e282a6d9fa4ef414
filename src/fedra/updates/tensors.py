"""The tensors of an update: their kinds, where they lie in a file, and the form that all clients of a round share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fedra.server.faults import Unusable, short


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A type of numbers, by the name that safetensors has for it; `raw` is how NumPy sees its bytes."""

    name: str
    raw: np.dtype[np.generic]
    trained: bool = False

    @property
    def itemsize(self) -> int:
        """Bytes of one value."""
        return self.raw.itemsize


def _kinds(names: str, *, trained: bool) -> dict[str, Kind]:
    pairs = (text.split("=") for text in names.split())
    return {name: Kind(name=name, raw=np.dtype(raw), trained=trained) for name, raw in pairs}


# NumPy has no bfloat16: its bytes are the upper half of a float32's.
KINDS: dict[str, Kind] = {
    **_kinds("F16=<f2 BF16=<u2 F32=<f4 F64=<f8", trained=True),
    **_kinds("BOOL=|b1 U8=|u1 I8=|i1 U16=<u2 I16=<i2 U32=<u4 I32=<i4 U64=<u8 I64=<i8", trained=False),
}


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """A tensor in a file: its kind and shape, which of a client's files it is in, and where its bytes begin."""

    kind: Kind
    shape: tuple[int, ...]
    file: int
    offset: int

    @property
    def size(self) -> int:
        """How many values it has."""
        return math.prod(self.shape)


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A tensor of the form: where its values are among the columns; one that is not of floats has none."""

    name: str
    kind: Kind
    shape: tuple[int, ...]
    start: int
    stop: int


@dataclass(frozen=True, kw_only=True)
class Form:
    """The names, kinds and shapes that a round's updates have, and the columns that their floats are."""

    slots: tuple[Slot, ...] = ()
    _by_name: dict[str, Slot] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {slot.name: slot for slot in self.slots})

    @property
    def trained(self) -> tuple[Slot, ...]:
        """The tensors of floats."""
        return tuple(slot for slot in self.slots if slot.kind.trained)

    @property
    def dimension(self) -> int:
        """How many columns there are."""
        return self.slots[-1].stop if self.slots else 0

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """The type of the columns: float32, or float64 where a tensor is of float64."""
        wide = any(slot.kind.name == "F64" for slot in self.slots)
        return np.dtype(np.float64 if wide else np.float32)

    def check(self, tensors: Mapping[str, Tensor]) -> None:
        """Refuse a client whose tensors have other names, kinds or shapes."""
        missing = [name for name in self._by_name if name not in tensors]
        extra = [name for name in tensors if name not in self._by_name]
        if missing or extra:
            parts = [f"lacks tensor {short(name)}" for name in missing[:2]]
            parts += [f"has an unknown tensor {short(name)}" for name in extra[:2]]
            raise Unusable(f"{len(tensors)} tensors instead of {len(self.slots)}: {', '.join(parts)}")
        for slot in self.slots:
            tensor = tensors[slot.name]
            if tensor.kind != slot.kind:
                raise Unusable(f"tensor {short(slot.name)} has dtype {tensor.kind.name} instead of {slot.kind.name}")
            if tensor.shape != slot.shape:
                raise Unusable(f"tensor {short(slot.name)} has shape {short(tensor.shape)} instead of {slot.shape}")


def form_of(tensors: Mapping[str, Tensor], names: Iterable[str]) -> Form:
    """Return the form of these tensors, their columns in the order of `names`."""
    slots = []
    start = 0
    for name in names:
        tensor = tensors[name]
        stop = start + (tensor.size if tensor.kind.trained else 0)
        slots.append(Slot(name=name, kind=tensor.kind, shape=tensor.shape, start=start, stop=stop))
        start = stop
    return Form(slots=tuple(slots))


def base_form(tensors: Mapping[str, Tensor]) -> Form:
    """Return the form of a base model, its columns in the order of its file."""
    return form_of(tensors, sorted(tensors, key=lambda name: (tensors[name].file, tensors[name].offset, name)))


def common_form(clients: Iterable[Mapping[str, Tensor]]) -> Form | None:
    """Return the form that more than half of the clients have, its columns in the order of names; None without one.

    A plurality is not enough: the largest of several forms may be the attackers'.
    """
    every = list(clients)
    forms = Counter(map(_described, every))
    if not forms:
        return None
    most, count = forms.most_common(1)[0]
    if 2 * count <= len(every):
        return None
    example = next(tensors for tensors in every if _described(tensors) == most)
    return form_of(example, sorted(example))


def _described(tensors: Mapping[str, Tensor]) -> frozenset[tuple[str, str, tuple[int, ...]]]:
    return frozenset((name, tensor.kind.name, tensor.shape) for name, tensor in tensors.items())


def widened(raw: npt.NDArray[np.generic], kind: Kind, target: npt.NDArray[np.generic]) -> None:
    """Write values as they lie in a file to `target`, which is float32 or float64; none of them changes."""
    if kind.name == "BF16":
        if target.dtype == np.float32:
            halves = target.view(np.uint16)
            halves[0::2] = 0
            halves[1::2] = raw
        else:
            target[...] = (raw.astype(np.uint32) << 16).view(np.float32)
    else:
        target[...] = raw


def narrowed(values: npt.NDArray[np.floating], kind: Kind) -> npt.NDArray[np.generic]:
    """Return values as a file holds them, each rounded to the nearest that the kind has, to even between two."""
    with np.errstate(over="ignore"):  # what overflows becomes infinite, and is found by whoever looks at it
        if kind.name != "BF16":
            return values.astype(kind.raw)
        bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
        rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
        return rounded.astype(np.uint16)
