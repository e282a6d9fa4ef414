"""One colour for each rule, in all figures and on the page; told apart also by those who see red and green alike."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from fedra.experiments.paper import BEST_IGNORANT

BENIGN, MALICIOUS = "#0072b2", "#d55e00"

_RULES = {
    "fedra": "#d55e00",
    "fedra, mcne": "#d55e00",
    "fedra, under-estimated": "#56b4e9",
    "fedra, over-estimated": "#0072b2",
    "fedavg": "#0072b2",
    "norm-bound": "#56b4e9",
    "rfa": "#009e73",
    "truncate": "#cc79a7",
    BEST_IGNORANT: "#6b6b6b",
    "uniform": "#8f8f8f",
    "krum": "#882255",
    "multi-krum": "#6f5fb5",
    "median": "#999933",
    "trimmed-mean": "#44aa99",
    "bulyan": "#a8683a",
}
_OTHERS = ("#b8860b", "#4b7f52", "#7a5195", "#00798c", "#a23b72", "#5c6f1e", "#8c564b", "#3d5a98")


def rule_colour(rule: str) -> str:
    """Return a rule's colour, by its label; one we do not know always gets the same."""
    return _RULES.get(rule) or _OTHERS[_place(rule)]


def rule_colours(rules: Iterable[str]) -> dict[str, str]:
    """Return the colour of each rule, those we do not know with different ones as long as there are any."""
    colours: dict[str, str] = {}
    for rule in rules:
        free = [colour for colour in _OTHERS if colour not in colours.values()] or _OTHERS
        colours[rule] = _RULES.get(rule) or colours.get(rule) or free[_place(rule) % len(free)]
    return colours


def _place(rule: str) -> int:
    return zlib.crc32(rule.encode("utf-8", "surrogatepass")) % len(_OTHERS)
