"""What `fedra audit` does: say who was dropped how often and why, and write it as a page."""

from __future__ import annotations

from pathlib import Path

from fedra.audit.page import audit_page
from fedra.audit.reading import read_trail
from fedra.audit.summary import summary_text
from fedra.files import write_at
from fedra.untrusted import clipped


def audit(path: str | Path, html: str | Path | None = None) -> str:
    """Return the summary of a trail as text, and write its page to `html` where that is given."""
    trail = read_trail(path)
    text = summary_text(trail)
    if html is None:
        return text
    write_at(Path(html), audit_page(trail, title=Path(path).name).encode("utf-8"))
    return f"{text}\n\nwrote {clipped(html)}"
