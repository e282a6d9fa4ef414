"""`fedra audit FILE [--html OUT]`: print who was dropped how often and why, or write it as a page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fedra.audit.page import audit_page
from fedra.audit.reading import read_trail
from fedra.audit.summary import summary_text


def audit(path: str | Path, html: str | Path | None = None) -> str:
    """Return the summary of a trail as text, and write its page to `html` where that is given."""
    trail = read_trail(path)
    text = summary_text(trail)
    if html is None:
        return text
    Path(html).write_text(audit_page(trail, title=Path(path).name), encoding="utf-8")
    return f"{text}\n\nwrote {html}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="fedra audit", description="Summarise the audit trail of a federation.")
    parser.add_argument("file", type=Path, help="the JSON Lines file that the strategy wrote")
    parser.add_argument("--html", type=Path, metavar="OUT", help="also write a page with each client's timeline")
    arguments = parser.parse_args(argv)
    try:
        print(audit(arguments.file, arguments.html))
    except OSError as error:
        print(f"fedra audit: {error}", file=sys.stderr)
        return 1
    return 0
