"""A federation drawn with characters, for any width of terminal from 40 columns on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from textwrap import wrap

import numpy as np

from fedra.federations.description import TOP_SHARES, FederationDescription
from fedra.untrusted import one_line

LEAST_WIDTH = 40
# So many clients are drawn one by one; more, by the power of two of their size.
MOST_SHOWN = 24
_MOST_LABELS = 12
_SHADES = " .:-=+*#%@"
_LONGEST_NAME = 16
# From so many columns on there is room for a percentage.
_LEAST_FIGURES = 4


def description_text(description: FederationDescription, *, width: int) -> str:
    """Return the drawing, no line longer than `width`; narrower than 40 columns is drawn as 40."""
    columns = max(LEAST_WIDTH, width)
    parts = [_head(description, columns), _sizes(description, columns), _labels(description, columns)]
    parts += [_shares(description), _claims(description, columns)]
    lines = "\n\n".join("\n".join(part) for part in parts).split("\n")
    return "\n".join(line[:columns].rstrip() for line in lines)


def _head(description: FederationDescription, columns: int) -> list[str]:
    quantities = description.quantities
    held, spare = int(quantities.sum()), description.num_samples - int(quantities.sum())
    bad = int(description.malicious.sum())
    who = (
        f"{one_line(description.title)}: {description.num_clients:,} clients hold {held:,} samples of "
        f"{description.dataset} ({description.partition}), {description.num_sampled:,} of them in a round."
    )
    sizes = (
        f"Sizes from {quantities.min():,} to {quantities.max():,}, median {np.median(quantities):,.0f}, mean "
        f"{quantities.mean():,.1f}."
    )
    facts = [who, sizes]
    if spare:
        facts.append(f"{spare:,} of {description.num_samples:,} training samples belong to nobody.")
    facts.append(
        f"Malicious where a run has an attack: {bad:,} ({100 * bad / description.num_clients:.1f} % of the clients, "
        f"{100 * description.malicious_share:.1f} % of the samples). The rule assumes that "
        f"{100 * description.assumed_ratio:g} % of the clients are."
    )
    return [line for fact in facts for line in wrap(fact, columns)]


def _sizes(description: FederationDescription, columns: int) -> list[str]:
    quantities = description.quantities
    if description.num_clients <= MOST_SHOWN:
        order = np.argsort(-quantities, kind="stable")
        names = [_name(description.names[client], description.malicious[client]) for client in order]
        return ["samples of each client (! malicious)", *_bars(names, quantities[order].tolist(), columns)]
    powers = np.floor(np.log2(quantities)).astype(int)
    rows = range(int(powers.min()), int(powers.max()) + 1)
    names = [f"{2**power:,}" if power == 0 else f"{2**power:,} - {2 ** (power + 1) - 1:,}" for power in rows]
    counts = [int((powers == power).sum()) for power in rows]
    liars = [int((description.malicious & (powers == power)).sum()) for power in rows]
    notes = [f" ({bad:,} malicious)" if bad else "" for bad in liars]
    return ["clients by number of samples", *_bars(names, counts, columns, notes)]


def _labels(description: FederationDescription, columns: int) -> list[str]:
    kinds = len(description.class_names)
    if description.num_clients <= MOST_SHOWN and kinds <= _MOST_LABELS:
        shares = description.labels / description.labels.sum(axis=1, keepdims=True)
        wide = min(12, max(2, (columns - _LONGEST_NAME) // kinds))
        figures = wide >= _LEAST_FIGURES
        legend = "%" if figures else f"{_SHADES[1]} little, {_SHADES[-1]} all"
        lines = [f"each label's part in a client's samples ({legend})"]
        heading = "".join(one_line(name)[: wide - 1].rjust(wide) for name in description.class_names)
        lines.append(" " * _LONGEST_NAME + heading)
        for client in np.argsort(-description.quantities, kind="stable"):
            cells = "".join((_percent(part) if figures else _shade(part)).rjust(wide) for part in shares[client])
            lines.append(f"{_name(description.names[client], description.malicious[client]):>{_LONGEST_NAME}}{cells}")
        return lines
    numbers = description.num_labels
    edges = [edge for edge in (1, 2, 3, 5, 10, 20, 50, 100) if edge <= kinds]
    spans = list(itertools.pairwise([*edges, kinds + 1]))
    names = [f"{low}" if high == low + 1 else f"{low} - {high - 1}" for low, high in spans]
    counts = [int(((numbers >= low) & (numbers < high)).sum()) for low, high in spans]
    return [f"clients by number of labels, of {kinds}", *_bars(names, counts, columns)]


def _shares(description: FederationDescription) -> list[str]:
    lines = ["part of all samples"]
    for part in TOP_SHARES:
        count, share = description.top_share(part)
        lines.append(
            f"  largest {100 * part:>2.0f} % ({count:,} client{'' if count == 1 else 's'}): {100 * share:.1f} %"
        )
    return lines


def _claims(description: FederationDescription, columns: int) -> list[str]:
    lines = wrap("what one liar could claim, and its part of a round's weight where claims are believed", columns)
    wide = max(len(claim.what) for claim in description.claims)
    for claim in description.claims:
        figures = f"{claim.quantity:>9,}  {100 * claim.share:>5.1f} %"
        if columns >= wide + len(figures) + 4:
            lines.append(f"  {claim.what:<{wide}}  {figures}")
        else:
            lines += [f"  {claim.what}", f"    {figures}"]
    return lines


def _bars(names: Sequence[str], values: Sequence[int], columns: int, notes: Sequence[str] = ()) -> Iterator[str]:
    """Yield a line for each value: its name, a bar that is as long as it is large, the value and a note."""
    ends = [f" {value:,}{note}" for value, note in zip(values, notes or [""] * len(values), strict=True)]
    left = max(map(len, names))
    room = max(1, columns - left - 1 - max(map(len, ends)))
    largest = max(1, *values)
    for name, value, end in zip(names, values, ends, strict=True):
        # What is there at all is seen.
        length = 0 if value == 0 else max(1, round(room * value / largest))
        yield f"{name:>{left}} {'#' * length}{end}"


def _name(name: str, malicious: bool) -> str:
    shown = one_line(name)
    short = shown if len(shown) <= _LONGEST_NAME - 2 else f"{shown[: _LONGEST_NAME - 3]}~"
    return f"!{short}" if malicious else short


def _percent(share: float) -> str:
    return "." if share == 0 else f"{100 * share:.0f}"


def _shade(share: float) -> str:
    return " " if share == 0 else _SHADES[max(1, min(len(_SHADES) - 1, int(share * (len(_SHADES) - 1) + 0.5)))]
