"""What `fedra audit` does: say who was dropped how often and why, as text, as JSON, and as a page."""

from __future__ import annotations

import json
from pathlib import Path

from fedra.audit.page import audit_page
from fedra.audit.reading import Trail, check_trail, read_trail
from fedra.audit.summary import summary_dict, summary_text
from fedra.files import write_at
from fedra.untrusted import clipped


def audit(path: str | Path, html: str | Path | None = None, *, as_json: bool = False) -> str:
    """Return the summary of a trail as text or as JSON, and write its page to `html` where that is given.

    Raises:
        ValueError: where the file is something else than an audit trail.
    """
    trail = read_trail(path)
    check_trail(path, trail)
    if html is not None:
        write_page(trail, Path(html), title=Path(path).name)
    if as_json:
        return json.dumps(summary_dict(trail), indent=2)
    text = summary_text(trail)
    return text if html is None else f"{text}\n\nwrote {clipped(html)}"


def write_page(trail: Trail, path: Path, *, title: str) -> None:
    """Write the page of a trail."""
    write_at(path, audit_page(trail, title=title).encode("utf-8"))
