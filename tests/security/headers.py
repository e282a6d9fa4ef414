"""Mutated .npy data: bytes that are nearly an array that NumPy saved."""

from __future__ import annotations

import io
import random

import numpy as np

ARRAYS = (
    np.arange(6, dtype=np.float32),
    np.arange(6, dtype=np.float64).reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype=np.float32).reshape(3, 2)),
    np.arange(4, dtype=">f8"),
    np.asarray(1.5, dtype=np.float32),
    np.zeros((0, 3), dtype=np.float16),
    np.ones(1, dtype=np.float32),
    np.arange(5, dtype=np.int64),
    np.array([True, False]),
)

VALUES = {
    "descr": [
        "'<f4'", "'>f4'", "'=f4'", "'|f4'", "'f4'", "'f'", "'float32'", "'<f8'", "'d'", "'>f8'", "'<i8'",
        "'|b1'", "'?'",
        "'|O'", "'O'", "'<U1'", "'T'", "'<f16'", "'<c8'", "'<f4,<f4'", "'(2,)<f4'", "('<f4', (1,))", "[('', '<f4')]",
        "[('a', '<f4')]", "b'<f4'", "None", "1", "'a4'", "'M8[s]'", "'\u00e9'", "'<f4' ", "\"<f4\"",
        "'''<f4'''", "'<' 'f4'",
        "u'<f4'", "'\\x3cf4'", "'<f4L'", "'f04'", "'e'", "'<f2'",
    ],
    "fortran_order": ["False", "True", "0", "1", "None", "'False'", "false", "(False)", "not True", "False or 1"],
    "shape": [
        "(6,)", "(6L,)", "(6)", "6", "[6]", "(2, 3)", "(2,3)", "(3, 2)", "(3,2,)", "(4,)", "()", "(,)",
        "(1,)", "(True,)",
        "(False, 3)", "(0, 3)", "(-1,)", "(-6,)", "(6.0,)", "(+6,)", "(06,)", "(0x6,)", "(6_0,)", "(2, 3L)", "(2L, 3L)",
        "(6, 1)", "(1, 6)", "(2**1, 3)", "(9223372036854775807, 2)", "(18446744073709551622,)", "(5,)",
        "(2,)", "(2 ,3 )",
        "(2, 3) ", "(2,, 3)", "(6,),", "(" + "9" * 5000 + ",)", "(" + "1, " * 80 + ")", "(None,)", "('6',)",
        "(6,) + ()",
    ],
}  # fmt: skip
KEYS = ("descr", "fortran_order", "shape")
STARTS = ["{", "{", "{", "{", " {", "{ ", "\t{", "\n{", "dict(", "{'x': 1, ", "# \n{", "(", "\ufeff{", "{**{}, "]
ENDS = [
    "}", "}\n", ", }\n", ", }   \n", "}\n\n", "} ", "}\r\n", "}\x00", "}#", "};", "", ")", ", 'descr': '<f8'}",
    ", 'y': 1}", "}\u00e9", "}\udcff", "} if True else {}", "}\\\n",
]  # fmt: skip


def saved(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def mutated(rng: random.Random) -> tuple[np.ndarray, bytes]:
    """Return an array, and bytes that a hostile client could send in its place."""
    array = rng.choice(ARRAYS)
    data = saved(array)
    kind = rng.random()
    if kind < 0.25:
        return array, flipped(data, rng)
    body = data[10 + int.from_bytes(data[8:10], "little") :]
    text = header_text(array, rng)
    codec, errors = rng.choice([("latin1", "replace")] * 9 + [("utf8", "surrogateescape")] * 9 + [("utf16", "replace")])
    encoded = text.encode(codec, errors)
    version = rng.choice(
        [(1, 0)] * 6 + [(2, 0)] * 3 + [(3, 0)] * 3 + [(9, 0), (1, 1), (0, 0), (2, 1), (4, 0), (255, 255)]
    )
    length = len(encoded) + rng.choice([0] * 40 + [1, -1, 100, 2**15])
    size = rng.choice([2, 4]) if rng.random() < 0.03 else 2 if version == (1, 0) else 4
    start = b"\x93NUMPY" + bytes(version) + (max(0, length) % 2**16).to_bytes(size, "little")
    tail = rng.choice([b""] * 40 + [b"\x00", bytes(8), b"x" * 100])
    made = start + encoded + body + tail
    return array, flipped(made, rng) if rng.random() < 0.1 else made


def header_text(array: np.ndarray, rng: random.Random) -> str:
    own = {
        "descr": repr(array.dtype.str),
        "fortran_order": str(array.flags.f_contiguous and not array.flags.c_contiguous),
        "shape": repr(array.shape),
    }
    keys = list(KEYS)
    if rng.random() < 0.3:
        rng.shuffle(keys)
    if rng.random() < 0.05:
        keys.append(rng.choice(KEYS))
    if rng.random() < 0.05:
        keys.pop()
    quote = rng.choice(["'"] * 12 + ['"'] * 3 + ["u'", "b'", ""])
    parts = []
    for key in keys:
        value = rng.choice(VALUES[key]) if rng.random() < 0.2 else own[key]
        colon = rng.choice([": "] * 8 + [":"] * 3 + [" : "] * 3 + ["=", ":\n"])
        parts.append(f"{quote}{key}{quote[-1:]}{colon}{value}")
    inside = rng.choice([", "] * 12 + [","] * 3 + [" ,"] * 3 + [",\n", ";", " "]).join(parts)
    end = rng.choice(ENDS) if rng.random() < 0.4 else ", }\n"
    return (rng.choice(STARTS) if rng.random() < 0.3 else "{") + inside + end


def flipped(data: bytes, rng: random.Random) -> bytes:
    """Change, insert or remove a few bytes, most of them in the header."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(min(len(changed), 128) if rng.random() < 0.8 else len(changed) or 1) if changed else 0
        kind = rng.randrange(4)
        if kind == 0 or not changed:
            changed.insert(place, rng.randrange(256))
        elif kind == 1:
            del changed[place]
        elif kind == 2:
            changed[place] ^= 1 << rng.randrange(8)
        else:
            changed[place] = rng.choice(b"0123456789'(),:{} LTF<>|=\x00\xff")
    return bytes(changed)
