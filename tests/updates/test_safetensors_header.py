"""What is accepted here the format's own library accepts, and reads alike."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError
from safetensors.numpy import load, save
from tests.updates.written import raw_safetensors

from fedra.server.faults import Unusable
from fedra.updates.safetensors_header import LENGTH_BYTES, header_length, make_header, read_tensors
from fedra.updates.tensors import KINDS, Tensor

NUMPY = {name: kind.raw for name, kind in KINDS.items() if name != "BF16"}


def ours(content: bytes) -> dict[str, Tensor]:
    length = header_length(content[:LENGTH_BYTES], len(content))
    return read_tensors(content[LENGTH_BYTES : LENGTH_BYTES + length], len(content), 0)


def check_against_library(content: bytes) -> bool:
    """Return whether it was accepted; then the library must have accepted it, with the same tensors."""
    try:
        found = ours(content)
    except Unusable:
        return False
    if any(tensor.kind.name == "BF16" for tensor in found.values()):
        return True  # NumPy's half of the library has no such type
    expected = load(content)
    assert found.keys() == expected.keys()
    for name, tensor in found.items():
        array = np.frombuffer(content, tensor.kind.raw, tensor.size, tensor.offset).reshape(tensor.shape)
        assert tensor.shape == expected[name].shape
        assert array.tobytes() == expected[name].tobytes()
    return True


@st.composite
def files(draw: Any) -> bytes:
    names = draw(st.lists(st.text(max_size=5), unique=True, max_size=4))
    arrays = {}
    for name in names:
        if name == "__metadata__":
            continue
        dtype = draw(st.sampled_from(sorted(NUMPY.values(), key=str)))
        shape = draw(st.lists(st.integers(0, 3), max_size=3))
        arrays[name] = np.zeros(shape, dtype=dtype)
    # Of no tensors and empty metadata the library writes what it does not read itself.
    arrays.setdefault("one", np.ones(1))
    return save(arrays, draw(st.none() | st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2)))


@settings(max_examples=100, deadline=None)
@given(files())
def test_what_the_library_writes_is_read(content: bytes) -> None:
    assert check_against_library(content)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.text(max_size=4), st.sampled_from(sorted(NUMPY)), st.lists(st.integers(0, 3), max_size=3)),
        unique_by=lambda slot: slot[0],
        max_size=4,
    ).filter(lambda slots: all(name != "__metadata__" for name, _, _ in slots))
)
def test_what_we_write_the_library_reads(slots: list[tuple[str, str, list[int]]]) -> None:
    header = make_header(((name, KINDS[kind], tuple(shape)) for name, kind, shape in slots), {"format": "pt"})
    size = sum(KINDS[kind].itemsize * int(np.prod(shape)) for _, kind, shape in slots)
    content = header + bytes(size)
    assert len(header) % 8 == 0
    assert check_against_library(content)


ATOMS = [
    "0",
    "1",
    "-0",
    "-1",
    "1.0",
    "1e0",
    "01",
    "18446744073709551616",
    "9" * 400,
    "null",
    "true",
    '"F32"',
    '"F8_E4M3"',
]
PIECES = [
    *ATOMS, "[", "]", "{", "}", ",", ":", " ", "\n", "\t", '"a"', '"b"', '"\\ud800"', '"\\u0000"', "NaN", "Infinity",
    '"dtype"', '"shape"', '"data_offsets"', '"__metadata__"', "[0,4]", "[4,8]", "[0,0]", "[1]", "[]", "[0]", "[2,2]",
    '"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}', '"x":{"dtype":"F32","shape":[],"data_offsets":[4,8]}',
    '"__metadata__":{"a":"b"}', '"__metadata__":null', '"__metadata__":{"a":1}', "\x7f", "\ufeff", "é",
]  # fmt: skip
GOOD = (
    '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[2,2],"data_offsets":[4,8]},'
    '"__metadata__":{"k":"v"}}'
)


def mutated(rng: random.Random) -> bytes:
    text = GOOD
    for _ in range(rng.randint(1, 3)):
        begin = rng.randint(0, len(text))
        end = min(len(text), begin + rng.choice([0, 0, 1, 1, 2, 5, 12]))
        text = text[:begin] + rng.choice([*PIECES, ""]) + text[end:]
    header = text.encode() + b" " * rng.choice([0, 0, 1, 7])
    length = len(header) + rng.choice([0] * 12 + [-1, 1, 8, 1 << 40])
    data = bytes(rng.choice([8, 8, 8, 8, 0, 4, 7, 9, 12]))
    return raw_safetensors(header, data, length=max(0, length))


@pytest.mark.parametrize("seed", range(20))
def test_no_mutation_passes_that_the_library_refuses(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(500):
        content = mutated(rng)
        try:
            check_against_library(content)
        except SafetensorError as error:
            raise AssertionError(content) from error


def test_most_of_what_the_library_reads_is_read_here_too() -> None:
    """Strict, but not so strict that real files fail: of mutations that the library takes, few are refused."""
    rng = random.Random(0)
    taken = refused = 0
    for _ in range(10_000):
        content = mutated(rng)
        try:
            load(content)
        except (SafetensorError, KeyError, ValueError):
            continue
        taken += 1
        refused += not check_against_library(content)
    assert taken > 20
    assert refused < taken / 2


def entry(**changes: Any) -> dict[str, Any]:
    return {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"a": entry(dtype="F8_E5M2")}, "has dtype 'F8_E5M2'; fedra reads"),
        ({"a": entry(dtype=["F32"])}, "has dtype"),
        ({"a": entry(shape=[2.0])}, "number '2.0'"),
        ({"a": entry(shape=[True, 2])}, "impossible shape"),
        ({"a": entry(shape=[2] * 65)}, "impossible shape"),
        ({"a": entry(shape=[0, 2**62, 2**62])}, "impossible shape"),
        ({"a": entry(shape=[3])}, "holds 8 bytes instead of 12"),
        ({"a": entry(data_offsets=[0])}, "impossible place"),
        ({"a": entry(data_offsets=[4, 12])}, "overlap or leave a gap at byte 0"),
        ({"a": entry(), "b": entry()}, "overlap or leave a gap at byte 8"),
        ({"a": entry(), "b": entry(data_offsets=[8, 16])}, "instead of"),
        ({"a": {**entry(), "more": 1}}, "not described by"),
        ({"__metadata__": {"a": 1}, "a": entry()}, "no table of texts"),
        (b'{"a":1,"a":2}', "stands there twice"),
        (b"[1]", "begins with"),
        (b" {}", "begins with"),
        (b'{"a":' + b"[" * 100_000, "no JSON"),
        (b"{\xff}", "no JSON"),
        (b'{"\\ud800":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', "half a character"),
    ],
)
def test_a_reason_says_what_is_wrong(header: Any, reason: str) -> None:
    with pytest.raises(Unusable, match=reason.replace("[", r"\[")):
        ours(raw_safetensors(header, bytes(8)))


@pytest.mark.parametrize(
    "content", [b"", b"1234567", (1 << 40).to_bytes(8, "little"), (50).to_bytes(8, "little") + b"{}"]
)
def test_a_file_too_short_for_its_header_is_refused(content: bytes) -> None:
    with pytest.raises(Unusable, match=r"too few|cut short"):
        ours(content)


def test_a_header_that_would_fill_memory_is_not_read() -> None:
    with pytest.raises(Unusable, match="cut short, or no safetensors"):
        header_length((17 << 20).to_bytes(8, "little"), 1 << 40)


def test_json_is_what_is_written() -> None:
    header = make_header([("a", KINDS["BF16"], (2, 3))])
    assert json.loads(header[8:]) == {"a": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}
