"""Which clients are malicious: drawn by ratio or number, named, or the largest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fedra import checks
from fedra.names import nearest
from fedra.rules.mcne import malicious_total
from fedra.seeding import generator
from fedra.simulation.holdings import Holdings
from fedra.untrusted import clipped

if TYPE_CHECKING:
    from fedra.simulation.config import SimulationConfig

_LARGEST = re.compile(r"\s*(?:the\s+)?largest\s+([1-9][0-9]{0,8})\s*", re.IGNORECASE)
_ABOUT_LARGEST = re.compile(r"(?:the\s+)?largest(?:\s.*)?", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,9}")
# A configuration holds the names, and has to stay small enough for the tables of grids.
_LONGEST = 32_768
_FORM = 'a list of clients, by number or name, or "largest 2"'


def malicious_text(value: Any, *, numbered: bool = False) -> str:
    """Return who is malicious in its one form: "largest K", or clients in order with commas between.

    `numbered`: clients have no names, and "03" is client 3.
    """
    if isinstance(value, str):
        if found := _LARGEST.fullmatch(value):
            return f"largest {found[1]}"
        value = [entry.strip() for entry in value.split(",")]
    if not isinstance(value, Sequence):
        raise TypeError(checks.wrong("malicious", value, _FORM))
    entries = [_entry(entry, numbered) for entry in value]
    if not entries:
        raise ValueError(checks.wrong("malicious", value, f"{_FORM}; for none, num_malicious=0"))
    seen: set[str] = set()
    for entry in entries:
        if entry in seen:
            raise ValueError(f"malicious has {clipped(entry, 40)!r} twice; name each client once")
        seen.add(entry)
    text = ",".join(sorted(entries, key=_place))
    if len(text) > _LONGEST:
        raise ValueError(
            f"malicious names {len(entries):,} clients in {len(text):,} characters, {_LONGEST:,} at most; give "
            "num_malicious or malicious_ratio"
        )
    return text


def malicious_count(text: str) -> int:
    """Return how many clients such a text names."""
    found = _LARGEST.fullmatch(text)
    return int(found[1]) if found else text.count(",") + 1


def check_malicious(text: str | None, num_clients: int) -> None:
    """Raise where so many clients, which have no names, do not have those that are to be malicious."""
    if text is None:
        return
    if found := _LARGEST.fullmatch(text):
        _check_largest(int(found[1]), num_clients)
        return
    for entry in text.split(","):
        if int(entry) >= num_clients:
            raise ValueError(_unknown_number(entry, num_clients))


def _entry(value: Any, numbered: bool) -> str:
    if not isinstance(value, str):
        return str(checks.whole("a client of malicious", value, 0, checks.MOST_WHOLE))
    name = value.strip()
    if not name or "," in name or not name.isprintable():
        raise ValueError(checks.wrong("a client of malicious", value, "a number or a name without commas"))
    if _ABOUT_LARGEST.fullmatch(name):
        raise ValueError(checks.wrong("malicious", value, f"{_FORM}, which stands alone"))
    if not numbered:
        return name
    if not _NUMBER.fullmatch(name):
        raise ValueError(
            f"malicious client {clipped(name, 40)!r} is unknown; clients of this partition have no names, give numbers "
            "that count from 0"
        )
    return str(int(name))


def _place(entry: str) -> tuple[int, str]:
    """Numbers by size, then names by letters."""
    return (int(entry), "") if _NUMBER.fullmatch(entry) else (10**9, entry)


def _check_largest(count: int, num_clients: int) -> None:
    if count > num_clients:
        raise ValueError(
            f"malicious='largest {count}' but the federation has only {num_clients} clients; give at most as many"
        )


def _unknown_number(name: str, num_clients: int) -> str:
    return f"malicious client {clipped(name, 40)!r} is unknown; clients are numbers from 0 to {num_clients - 1}"


def malicious_clients(config: SimulationConfig, holdings: Holdings) -> npt.NDArray[np.bool_]:
    """Return for each client whether it is malicious, as the configuration describes them."""
    total = holdings.partition.num_clients
    malicious = np.zeros(total, dtype=bool)
    if config.malicious is None:
        count = config.num_malicious
        if count is None:
            count = malicious_total(total, config.malicious_ratio)
        malicious[generator(config.seed, "simulation/malicious").choice(total, count, replace=False)] = True
    elif found := _LARGEST.fullmatch(config.malicious):
        _check_largest(int(found[1]), total)
        malicious[np.argsort(-holdings.partition.quantities, kind="stable")[: int(found[1])]] = True
    else:
        names = config.malicious.split(",")
        malicious[_clients(names, holdings)] = True
        if malicious.sum() < len(names):
            raise ValueError(f"malicious={clipped(config.malicious, 80)!r} names a client twice; name each once")
    return malicious


def _clients(wanted: Sequence[str], holdings: Holdings) -> list[int]:
    """Return clients' numbers, by their names, or by the numbers themselves where clients are not called by numbers."""
    total = holdings.partition.num_clients
    places = {name: place for place, name in enumerate(holdings.names)}
    numbered = not holdings.names or not all(known.isdecimal() for known in holdings.names)
    found = []
    for name in wanted:
        if name in places:
            found.append(places[name])
        elif numbered and _NUMBER.fullmatch(name) and int(name) < total:
            found.append(int(name))
        elif not holdings.names:
            raise ValueError(_unknown_number(name, total))
        else:
            shown = f"{nearest(name, holdings.names[:20])}{' ...' if total > 20 else ''}"
            raise ValueError(f"malicious client {clipped(name, 40)!r} is unknown{shown}")
    return found
