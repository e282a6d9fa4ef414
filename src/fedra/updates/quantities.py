"""How many samples each client claims, from a user's file: CSV, JSON, or a name and a number in each line."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fedra.untrusted import MEBIBYTE, clipped, parsed_json, read_bounded
from fedra.updates.update_files import client_name

_MOST_BYTES = 16 * MEBIBYTE
_LONGEST_NUMBER = 40
_HEADINGS = {"client", "name", "file", "path", "id"}
_FORM = "write a client's name or file and its number of samples in each line, or a JSON table of them"


def read_quantities(path: Path) -> dict[str, Any]:
    """Return claims by client as a file has them; what is no number stays as it is, and screening refuses it."""
    content = read_bounded(path, _MOST_BYTES)
    try:
        text = content.decode("utf-8-sig")
        pairs = list(_from_json(parsed_json(text)) if path.suffix.lower() == ".json" else _from_lines(text))
    except (ValueError, csv.Error) as error:
        raise ValueError(f"quantities {path}: {clipped(error, 120)}; {_FORM}") from error
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"quantities {path}: {clipped(name, 80)} is given twice; give each client once")
        found[name] = value
    return found


def claims_of(paths: Sequence[Path], given: dict[str, Any], source: Path) -> list[Any]:
    """Return the claim of each client, looked up by its name, its file's name, or its path."""
    claims = []
    for path in paths:
        names = (client_name(path), path.name, str(path), str(path.absolute()))
        found = [name for name in names if name in given]
        if not found:
            raise ValueError(
                f"quantities {source}: nothing for {clipped(path.name, 80)}; add a line for {clipped(names[0], 80)}"
            )
        claims.append(given[found[0]])
    return claims


def _from_json(found: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(found, dict):
        yield from found.items()
        return
    if not isinstance(found, list):
        raise ValueError("neither a table nor a list")
    for entry in found:
        if not isinstance(entry, dict) or not isinstance(entry.get("client"), str) or "quantity" not in entry:
            raise ValueError('a list has entries such as {"client": "name", "quantity": 100}')
        yield entry["client"], entry["quantity"]


def _from_lines(text: str) -> Iterator[tuple[str, Any]]:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for number, cells in enumerate(_cells(lines)):
        cells = [cell.strip() for cell in cells]
        if len(cells) != 2:
            raise ValueError(f"{clipped(' '.join(cells), 60)} is not a name and a number")
        if number == 0 and cells[0].lower() in _HEADINGS:
            continue
        yield cells[0], _number(cells[1])


def _cells(lines: list[str]) -> Iterable[list[str]]:
    if any("," in line for line in lines):
        return csv.reader(lines)
    # A name may hold spaces; the number is what comes last.
    return (line.rsplit(None, 1) for line in lines)


def _number(text: str) -> Any:
    if len(text) > _LONGEST_NUMBER:
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
