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

_LARGEST = re.compile(r"\s*(?:the\s+)?largest\s+([1-9][0-9]{0,8})\s*")
# A configuration holds the names, and has to stay small enough for the tables of grids.
_LONGEST = 32_768
_FORM = 'a list of clients, by number or name, or "largest 2"'


def malicious_text(value: Any) -> str:
    """Return who is malicious in its one form: "largest K", or clients with commas between."""
    if isinstance(value, str):
        if found := _LARGEST.fullmatch(value):
            return f"largest {found[1]}"
        value = [entry.strip() for entry in value.split(",")]
    if not isinstance(value, Sequence):
        raise TypeError(checks.wrong("malicious", value, _FORM))
    entries = [_entry(entry) for entry in value]
    if not entries:
        raise ValueError(checks.wrong("malicious", value, f"{_FORM}; for none, num_malicious=0"))
    for entry in entries:
        if entries.count(entry) > 1:
            raise ValueError(f"malicious has {clipped(entry, 40)!r} twice; name each client once")
    text = ",".join(entries)
    if len(text) > _LONGEST:
        raise ValueError(
            f"malicious names {len(entries):,} clients in {len(text):,} characters, {_LONGEST:,} at most; give "
            "num_malicious or malicious_ratio"
        )
    return text


def _entry(value: Any) -> str:
    if isinstance(value, str):
        name = value.strip()
        if not name or "," in name or not name.isprintable():
            raise ValueError(checks.wrong("a client of malicious", value, "a number or a name without commas"))
        return name
    return str(checks.whole("a client of malicious", value, 0))


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
        if int(found[1]) > total:
            raise ValueError(
                f"malicious='largest {found[1]}' but the federation has only {total} clients; give at most as many"
            )
        malicious[np.argsort(-holdings.partition.quantities, kind="stable")[: int(found[1])]] = True
    else:
        malicious[[_client(name, holdings) for name in config.malicious.split(",")]] = True
        if malicious.sum() < len(config.malicious.split(",")):
            raise ValueError(f"malicious={clipped(config.malicious, 80)!r} names a client twice; name each once")
    return malicious


def _client(name: str, holdings: Holdings) -> int:
    """Return a client's number, by its name, or by the number itself where clients are not called by numbers."""
    total = holdings.partition.num_clients
    if name in holdings.names:
        return holdings.names.index(name)
    numbered = not all(known.isdecimal() for known in holdings.names) or not holdings.names
    if numbered and re.fullmatch(r"[0-9]{1,9}", name) and int(name) < total:
        return int(name)
    if not holdings.names:
        raise ValueError(
            f"malicious client {clipped(name, 40)!r} is unknown; clients are numbers from 0 to {total - 1}"
        )
    shown = f"{nearest(name, holdings.names[:20])}{' ...' if total > 20 else ''}"
    raise ValueError(f"malicious client {clipped(name, 40)!r} is unknown{shown}")
