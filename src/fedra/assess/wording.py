"""Figures as texts and page write them."""

from __future__ import annotations

from fedra.cohort import number_text


def percent(share: float | None) -> str:
    """Return a share in percent, with the digits that it needs; a dash for none."""
    if share is None:
        return "-"
    value = 100 * share
    if value == 0:
        return "0%"
    if value < 0.001:
        return "<0.001%"
    if 99.95 <= value < 100:
        return ">99.9%"
    return f"{value:.0f}%" if value >= 99.95 else f"{value:.1f}%" if value >= 1 else f"{value:.2g}%"


def times(factor: float | None) -> str:
    """Return a factor with two digits after the point."""
    return "-" if factor is None else f"{factor:,.2f}"


def cosine(value: float) -> str:
    """Return a cosine; zero has no sign."""
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else text


def amount(value: float | None) -> str:
    """Return a quantity."""
    return "-" if value is None else "a billion" if value == 1e9 else number_text(round(value))


def whole(value: int | None) -> str:
    """Return a whole number, or a dash."""
    return "-" if value is None else f"{value:,}"


def clients(count: int) -> str:
    """Return so many clients."""
    return "1 client" if count == 1 else f"{count:,} clients"


def attackers(count: int) -> str:
    """Return so many attackers."""
    return "1 attacker" if count == 1 else f"{count:,} attackers"


def distance(value: float) -> str:
    """Return a distance with two digits after the point, or three digits where it is large."""
    return f"{value:.2f}" if value < 1000 else f"{value:.3g}"
