"""What pages that refer to nothing outside themselves have in common: scripts, styles, and how they are embedded.

Needs the standard library only.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

SCRIPTS = ("svg.js", "charts.js", "theme.js")
STYLES = ("base.css", "charts.css")


def assets(package: str, names: Sequence[str], *, common: Sequence[str]) -> str:
    """Return common files and then a package's own as one text."""
    folders = [*((__name__, name) for name in common), *((package, name) for name in names)]
    texts = [files(folder).joinpath("assets").joinpath(name).read_text(encoding="utf-8") for folder, name in folders]
    return "\n" + "\n".join(texts)


def content_hash(text: str) -> str:
    """Return what a Content-Security-Policy names an inline script or style by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def embedded_json(value: Any) -> str:
    """Return JSON that may stand between script tags whatever the texts in it say."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
