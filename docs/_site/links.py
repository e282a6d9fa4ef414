"""Look through a built site: every link leads somewhere, and no page loads anything from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself; a link that a reader may follow is another matter.
_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[tuple[str, bool]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.names.update(value for key in ("id", "name") if (value := values.get(key)))
        if tag == "a" and values.get("href"):
            self.links.append((str(values["href"]), False))
        elif tag == "link" and values.get("rel") != "canonical" and values.get("href"):
            self.links.append((str(values["href"]), True))
        elif values.get(_LOADED.get(tag, "")):
            self.links.append((str(values[_LOADED[tag]]), True))


def faults(site: Path) -> Iterator[str]:
    """Yield a sentence for each link that leads nowhere, and for each that loads something from elsewhere."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        if path.name == "404.html":  # its links begin at the root of a server
            continue
        for link, loaded in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if loaded and parts.scheme != "data":
                    yield f"{path.relative_to(site)} loads {link}"
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if not target.exists():
                yield f"{path.relative_to(site)} links to {link}, which is not there"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
                yield f"{path.relative_to(site)} links to {link}, where that place is not"
