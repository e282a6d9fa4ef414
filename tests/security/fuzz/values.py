"""What mutations put in the place of honest values, all drawn from one generator."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from tests.security.headers import flipped, mutated

NUMBERS = (
    0, 1, -1, 2, 20, 2**31, 2**53, 2**53 + 1, 2**63, -(2**63), 2**64, 10**99, -(10**99), 10**400, -(10**400),
    0.0, -0.0, 0.5, 1e-45, 5e-324, 1e9, 3e38, 1e100, 1.7e308, -1.7e308, float("nan"), float("inf"), float("-inf"),
    True, False, None, "", "20", b"20",
    np.float32(2), np.float64("nan"), np.int64(7), np.bool_(True), 3 + 4j, (), {}, [], [1], [0.5, 0.5], [1, 0.5],
    [1, 2], [-0.0, 10**99], [None], [float("nan")], [[1]], ["a"], [10**400], object(), np.zeros(2), [0.5] * 100_001,
)  # fmt: skip
NAMES = (
    "arrays", "metrics", "config", "num-examples", "loss", "each", "fc", "half", "steps", "table", "", " ", "__proto__",
    "__class__", "fedra-kept", "\x1b[2J\x1b]0;x\x07", "\r\n", "\u202e", "\ud800", "\x00", "x" * 5000, "a/b", "../../x",
    "<script>", "num-examples ", "NUM-EXAMPLES",
)  # fmt: skip
DTYPES = ("f2", "f4", "f8", ">f4", ">f8", "i1", "i8", "u1", "u8", "?", "c8", "U3", "S2", "M8[s]", "f4,f4")
SHAPES = ((), (0,), (1,), (2,), (2, 3), (3, 2), (6,), (1, 2, 3), (0, 7), (2, 2, 2, 2))
FLOATS = (np.nan, np.inf, -np.inf, 6e4, -6e4, 7e4, 3e38, -3e38, 1e300, 1e20, 1e-45, 0.0, -5.0, 1e3)


def array(rng: random.Random) -> np.ndarray:
    """An array of any type and shape."""
    dtype = np.dtype(rng.choice(DTYPES))
    made = np.zeros(rng.choice(SHAPES), dtype)
    if dtype.kind in "fiu" and made.size:
        with np.errstate(all="ignore"):
            made[...] = np.asarray(rng.choice(FLOATS)).astype(dtype)
    return np.asfortranarray(made) if rng.random() < 0.2 else made


def respelled(values: np.ndarray, rng: random.Random) -> np.ndarray:
    """The same or nearly the same values in another form, or with one of them out of range."""
    kind = rng.randrange(5)
    with np.errstate(all="ignore"):
        if kind == 0:
            return np.asfortranarray(values)
        if kind == 1:
            return values.astype(values.dtype.newbyteorder())
        if kind == 2:
            return values.astype(rng.choice(["f2", "f4", "f8", "i8", "?"]))
        changed = np.array(values, dtype=values.dtype if values.dtype.kind == "f" or kind == 3 else np.float64)
        if changed.size:
            changed.reshape(-1)[rng.randrange(changed.size)] = np.asarray(rng.choice(FLOATS)).astype(changed.dtype)
        return changed


def data(good: bytes, rng: random.Random) -> bytes:
    """The bytes of an array, torn, or under a header of its own."""
    kind = rng.randrange(7)
    if kind == 6:
        return padded(good, rng)
    if kind == 0:
        return good[: rng.randrange(len(good) + 1)]
    if kind == 1:
        return good + bytes(rng.randrange(1, 200))
    if kind == 2:
        return mutated(rng)[1]
    if kind == 3:
        # This array's values under a header that was made for another.
        other = mutated(rng)[1]
        return other[:128] + good[128:]
    return flipped(good, rng)


def padded(good: bytes, rng: random.Random) -> bytes:
    """This array under a header of nearly the longest length, full of one thing."""
    start = 10 + int.from_bytes(good[8:10], "little")
    text, filling = good[10:start].rstrip(b" \n"), rng.choice([b" ", b"}", b"{", b"(", b",", b"1,", b"'", b"\\", b" }"])
    room = filling * ((9_990 - len(text)) // len(filling))
    cut = rng.choice([1, len(text) // 2, max(1, len(text) - 1), len(text)])
    header = text[:cut] + room + rng.choice([b"", b"x", text[cut:]])
    return b"\x93NUMPY\x02\x00" + len(header).to_bytes(4, "little") + header + good[start:]


def claim_or_metric(rng: random.Random) -> Any:
    return rng.choice(NUMBERS)
