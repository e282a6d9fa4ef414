"""Ways to damage a file or to replace what a JSON text says, drawn from a generator."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager

DIGITS, DEEP = "@digits@", "@deep@"
VALUES = [
    *(10**30, 2**63, -5, 0.5, float("nan"), float("inf"), True, None, DIGITS, DEEP),
    *("text", "", "../../x", "/etc/passwd", "a\0b", "\ud800", "\x1b[31mred\x1b]0;owned\x07", "[red]", "x" * 5000),
    *("<script>alert(1)</script>", [], {}, [[1]], {"a": {"b": []}}, [None] * 50),
]


def json_text(value) -> str:
    """JSON, with numbers of thousands of digits and nesting that no parser takes."""
    text = json.dumps(value)
    return text.replace(json.dumps(DIGITS), "9" * 5000).replace(json.dumps(DEEP), "[" * 3000 + "]" * 3000)


def with_value(document, rng):
    """Return the document with one value somewhere in it replaced, removed or doubled."""
    document = json.loads(json.dumps(document))
    places = list(_places(document))
    holder, key = places[rng.integers(len(places))]
    kind = rng.integers(8)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.append(holder[key])
    else:
        holder[key] = VALUES[rng.integers(len(VALUES))]
    return document


def _places(document):
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in inner:
        yield document, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _truncate(path, rng):
    os.truncate(path, int(rng.integers(0, path.stat().st_size)))


def _flip(path, rng):
    content = bytearray(path.read_bytes())
    for at in rng.integers(0, len(content), rng.integers(1, 9)):
        content[at] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)


def _overwrite(path, rng):
    content = bytearray(path.read_bytes())
    at = int(rng.integers(0, len(content)))
    noise = rng.bytes(int(rng.integers(1, 40)))
    content[at : at + len(noise)] = noise
    path.write_bytes(content)


def _noise(path, rng):
    path.write_bytes(rng.bytes(int(rng.integers(0, 2000))))


def _append(path, rng):
    with path.open("ab") as file:
        file.write(rng.bytes(int(rng.integers(1, 200))))


def _huge(path, rng):
    os.truncate(path, 50 * 2**30)


def _missing(path, rng):
    path.unlink()


def _directory(path, rng):
    path.unlink()
    path.mkdir()


def _pipe(path, rng):
    path.unlink()
    os.mkfifo(path)


def _endless(path, rng):
    path.unlink()
    path.symlink_to("/dev/zero")


def _nowhere(path, rng):
    path.unlink()
    path.symlink_to("nowhere")


DAMAGES = {
    "cut": _truncate,
    "bits flipped": _flip,
    "bytes overwritten": _overwrite,
    "noise": _noise,
    "longer": _append,
    "50 GiB with a hole": _huge,
    "missing": _missing,
    "a folder": _directory,
    "a pipe": _pipe,
    "a device": _endless,
    "a link to nowhere": _nowhere,
}


def files_of(folder):
    """All files of a folder but the lock, in order."""
    return sorted(file for file in folder.rglob("*") if file.is_file() and file.name != ".lock")


def copied(folder, target):
    shutil.rmtree(target, ignore_errors=True)
    return shutil.copytree(folder, target)


class Hung(BaseException):
    """No answer in time."""


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raise where the body takes longer: a hang fails the test instead of stopping all of them."""

    def ring(*_):
        raise Hung

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
