"""What rules, attacks and data sets are called, and how rules are drawn: all names, colours and markers."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fedra.attacks import ATTACKS
from fedra.data import DATASETS
from fedra.rules import RULES

Names = Mapping[str, str]

DISPLAY_NAMES: Names = {
    **{name: spec.label for name, spec in DATASETS.items()},
    "iid": "IID",
    "non-iid": "non-IID",
    "dirichlet": "Dirichlet",
    "fixed": "fixed ratio",
    "dynamic": "dynamic ratio",
    "none": "No attack",
    "label-flip": "Label flip",
    "lie": "LIE",
    "optimize": "Optimize",
    "ipm": "IPM",
    "fedavg": "FedAvg",
    "uniform": "Uniform",
    "median": "Median",
    "trimmed-mean": "Trimmed mean",
    "krum": "Krum",
    "multi-krum": "Multi-Krum",
    "bulyan": "Bulyan",
    "norm-bound": "Norm-Bound",
    "rfa": "RFA",
    "meamed": "MeaMed",
    "caf": "CAF",
    "dnc": "DnC",
    "ctma": "CTMA",
    "truncate": "Truncate",
    "fedra": "FedRA",
}

# Told apart also by those who see red and green alike.
HONEST, MALICIOUS, NEUTRAL = "#0072b2", "#d55e00", "#6b6b6b"
COLOURS = {"honest": HONEST, "malicious": MALICIOUS}

_COLOURS = {
    "fedra": "#d55e00",
    "fedavg": "#0072b2",
    "norm-bound": "#56b4e9",
    "rfa": "#009e73",
    "truncate": "#cc79a7",
    "uniform": "#8f8f8f",
    "krum": "#882255",
    "multi-krum": "#6f5fb5",
    "median": "#999933",
    "trimmed-mean": "#44aa99",
    "bulyan": "#a8683a",
    "meamed": "#7fb800",
    "caf": "#332288",
    "dnc": "#ddaa33",
    "weighted-median": "#117733",
    "ctma": "#e377c2",
    "huber": "#17a2b8",
    "centered-clipping": "#661100",
    # Labels that stand for variants of a rule or for the best of several.
    "fedra, mcne": "#d55e00",
    "fedra, under-estimated": "#56b4e9",
    "fedra, over-estimated": "#0072b2",
    "best-quantity-ignorant": NEUTRAL,
}
_OTHER_COLOURS = ("#b8860b", "#4b7f52", "#7a5195", "#00798c", "#a23b72", "#5c6f1e", "#8c564b", "#3d5a98")
_OWN_COLOURS = ("#c8003c", "#5b00c9", "#00695c", "#7a4a00")
_MARKERS = {
    "fedra": "o",
    "fedavg": "s",
    "norm-bound": "^",
    "rfa": "D",
    "truncate": "v",
    "krum": "P",
    "multi-krum": "X",
    "median": "<",
    "trimmed-mean": ">",
    "bulyan": "h",
    "meamed": "p",
    "caf": "d",
    "dnc": "H",
    "weighted-median": "1",
    "ctma": "2",
    "huber": "3",
    "centered-clipping": "8",
}
_OTHER_MARKER, _OWN_MARKER = ".", "*"


@dataclass(frozen=True, kw_only=True)
class RuleStyle:
    """How one rule is drawn.

    Attributes:
        colour: as #rrggbb.
        marker: matplotlib's.
        strong: whether it stands out: a thicker line, on top.
        faint: whether it recedes, since another rule is the one that the figure is about.
    """

    colour: str
    marker: str
    strong: bool = False
    faint: bool = False


def display_name(label: str, names: Names = DISPLAY_NAMES) -> str:
    """Return what people call a data set, partition, setting, attack or rule; a label of somebody's own stays."""
    if label in names:
        return names[label]
    return label.replace("-", " ").capitalize() if label in RULES or label in ATTACKS else label


def rule_styles(rules: Iterable[tuple[str, bool]]) -> list[RuleStyle]:
    """Return how the rules of one figure are drawn.

    A user's own rules are what their figure is about: they stand out and all others recede. Without any, FedRA stands
    out.

    Args:
        rules: the label of each, and whether it is a user's own rule.
    """
    given = list(rules)
    with_own = any(own for _, own in given)
    colours: dict[tuple[str, bool], str] = {}
    for rule, own in given:
        colours.setdefault((rule, own), _colour(rule, own, list(colours.values())))
    return [
        RuleStyle(
            colour=colours[rule, own],
            marker=_OWN_MARKER if own else _MARKERS.get(rule, _OTHER_MARKER),
            strong=own or (rule == "fedra" and not with_own),
            faint=with_own and not own,
        )
        for rule, own in given
    ]


def rule_style(rule: str) -> RuleStyle:
    """Return how one of fedra's rules is drawn where no others decide about it."""
    return rule_styles([(rule, False)])[0]


def _colour(rule: str, own: bool, taken: list[str]) -> str:
    """Return a rule's colour; of those without one of their own, different ones as long as there are any."""
    if not own and rule in _COLOURS:
        return _COLOURS[rule]
    choice = _OWN_COLOURS if own else _OTHER_COLOURS
    free = [colour for colour in choice if colour not in taken] or choice
    # Own rules in their order; others always the same, whatever stands before them.
    return free[0] if own else free[zlib.crc32(rule.encode("utf-8", "surrogatepass")) % len(choice) % len(free)]
