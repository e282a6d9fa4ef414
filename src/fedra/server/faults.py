"""What a client did wrong, as an exception inside the package and as a text that is safe to print."""

from __future__ import annotations


class Unusable(Exception):
    """Something a client sent cannot be used; the text says what."""


def short(text: object, limit: int = 60) -> str:
    """Return what a client sent, or what was raised because of it, as a short text without control characters."""
    if isinstance(text, str | bytes):
        words = repr(text[:limit])
    else:
        try:
            words = str(text)
        except Exception:  # an error may be unable even to say what it is
            words = type(text).__name__
    return printable(words, limit)


def printable(text: str, limit: int) -> str:
    """Return a text without control characters, cut where it is longer."""
    text = text if len(text) <= limit else text[: limit - 3] + "..."
    return "".join(character if character.isprintable() else "?" for character in text)
