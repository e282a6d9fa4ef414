"""A page of an audit trail, taken apart for tests."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from array import array
from html.parser import HTMLParser


class Page(HTMLParser):
    """A page's tags, the content of its scripts and styles, and its data as Python values."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[str, str]] = []
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data):
        if self._open in ("script", "style"):
            self.inside.append((self._open, data))

    def handle_endtag(self, tag):
        self._open = ""

    @property
    def data(self):
        (text,) = [data for kind, data in self.inside if kind == "script" and re.fullmatch(r"[A-Za-z0-9+/=]+", data)]
        return unpacked(text)


def unpacked(text: str):
    """The page's data, read as its script reads them."""
    content = zlib.decompress(base64.b64decode(text))
    (length,) = struct.unpack_from("<I", content)
    header = json.loads(content[4 : 4 + length])
    at, found = -(-(4 + length) // 8) * 8, {}
    for name, kind, count in header["columns"]:
        found[name] = array(kind)
        end = at + count * found[name].itemsize
        found[name].frombytes(content[at:end])
        at = -(-end // 8) * 8
    assert at == len(content)
    return {**header, "columns": found}
