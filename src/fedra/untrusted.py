"""What others wrote, read with care: files of bounded size, JSON and TOML of bounded depth, texts made harmless."""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any, BinaryIO

MEBIBYTE = 1 << 20
_DEEPEST = 32
_LONGEST_INTEGER = 20
_LONGEST_REASON = 300


def opened(path: Path) -> BinaryIO:
    """Open a regular file to read; a pipe, a device or a folder, which could block or never end, is an error."""
    try:
        kind = path.stat().st_mode
        # Only opening a device may already do something. What takes the file's place now must not be waited for.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK) if stat.S_ISREG(kind) else None
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{path} cannot be read ({reason}); check its name and permissions") from error
    if handle is not None:
        kind = os.fstat(handle).st_mode
        if stat.S_ISREG(kind):
            return os.fdopen(handle, "rb")
        os.close(handle)
    what = "a folder" if stat.S_ISDIR(kind) else "a pipe or a device"
    raise ValueError(f"{path} is {what}, not a file; a file must be there")


def read_bounded(path: Path, most: int, remedy: str = "put the file back") -> bytes:
    """Return the content of a regular file of at most so many bytes; `remedy` is what to do about one with more."""
    with opened(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"{path} has more than {most:,} bytes, the most that such a file may have; {remedy}")
    return content


def read_text(path: Path, most: int, *, what: str, form: str) -> str:
    """Return the text of a file that a person wrote; errors say what it should hold, and in which form."""
    try:
        return read_bounded(path, most, form).decode("utf-8-sig")
    except FileNotFoundError:
        raise ValueError(f"there is no file {path} with {what}; {form}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text ({error.reason}); {form}") from None


def parsed_json(text: bytes | str) -> Any:
    """Return what a JSON text says; whole numbers of more than 20 digits become floats, which fit no count.

    Raises:
        ValueError: where it is no UTF-8, no JSON, or too deep to be taken apart.
    """
    try:
        return json.loads(text if isinstance(text, str) else text.decode(), parse_int=_whole)
    except RecursionError:
        raise ValueError("too many brackets within brackets") from None


def parsed_toml(text: bytes) -> dict[str, Any]:
    """Return what a TOML text says, tables within tables up to 32 deep."""
    try:
        values = tomllib.loads(text.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("too many brackets within brackets") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"it is no UTF-8 text ({error.reason})") from None
    except ValueError as error:
        if isinstance(error, tomllib.TOMLDecodeError):
            raise
        raise ValueError(f"a number in it cannot be read ({str(error).partition(':')[0]})") from None
    check_depth(values)
    return values


def check_depth(value: Any) -> None:
    """Raise where lists and tables lie more than 32 deep in one another: what walks through them could not."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise ValueError(f"more than {_DEEPEST} brackets within brackets")


def encodable(text: str) -> str:
    """Return a text that can be written to a file: half a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def one_line(text: str) -> str:
    """Return a text without line breaks, control characters, and whatever else cannot be printed."""
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(text.split())


def clipped(text: object, longest: int = _LONGEST_REASON) -> str:
    """Return a text that others chose, or anything else as text, on one line, harmless on a terminal, and not too long.

    Never raises, although the text of somebody's object may.
    """
    try:
        line = one_line(str(text)[: 4 * longest])
    except Exception:
        line = "a number of thousands of digits" if isinstance(text, int) else type(text).__name__
    return line if len(line) <= longest else f"{line[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"


def is_file_name(name: object) -> bool:
    """Whether a text names one entry of a folder: nothing that leads elsewhere, and nothing that cannot be shown."""
    return isinstance(name, str) and re.fullmatch(r"[!-.0-~]{1,200}", name) is not None and name not in (".", "..")


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)
