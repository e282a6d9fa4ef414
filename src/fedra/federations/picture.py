"""A federation as a picture: sizes, labels, how much the largest hold, and what a lie would weigh."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fedra.federations.description import FederationDescription
from fedra.files import write_bytes
from fedra.report.appearance import HONEST, MALICIOUS, NEUTRAL
from fedra.report.figures.drawing import label, panels, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 150
# Without a date or a version the same federation has the same bytes.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
PICTURE_FORMATS = tuple(_METADATA)
_MOST_ROWS = 200
_MOST_NAMES = 24


def check_picture_name(path: Path) -> None:
    """Raise where a picture's name does not end in a format that there is, or its folder is not there."""
    if path.suffix.lower() not in _METADATA:
        raise ValueError(f"{path} ends in no format of a picture; name it .png, .svg or .pdf")
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {path.parent} for {path.name}; make it first")


def write_picture(description: FederationDescription, path: Path) -> None:
    """Draw a federation into a .png, .svg or .pdf file."""
    check_picture_name(path)
    kind = path.suffix.lower()
    target = io.BytesIO()
    with styled():
        figure = _drawn(description)
        figure.savefig(target, format=kind[1:], dpi=_DPI, metadata=_METADATA[kind])
    write_bytes(path, target.getvalue())


def _drawn(description: FederationDescription) -> Figure:
    figure, ((sizes, labels), (shares, claims)) = panels(2, 2, width=5.2, height=3.4)
    figure.suptitle(
        f"{label(description.title, longest=60)}: {description.num_clients:,} clients, "
        f"{int(description.quantities.sum()):,} samples of {label(description.dataset)}"
    )
    _draw_sizes(sizes, description)
    _draw_labels(labels, description)
    _draw_shares(shares, description)
    _draw_claims(claims, description)
    return figure


def _draw_sizes(axes: Axes, description: FederationDescription) -> None:
    order = np.argsort(-description.quantities, kind="stable")
    ranks, held = np.arange(1, len(order) + 1), description.quantities[order]
    bad = description.malicious[order]
    if len(order) <= 60:
        axes.bar(ranks, held, color=[MALICIOUS if one else HONEST for one in bad])
        axes.set_yscale("log" if held.max() > 50 * held.min() else "linear")
        _name_clients(axes, ranks, description, order)
    else:
        axes.plot(ranks[~bad], held[~bad], ".", color=HONEST, markersize=3, label="honest")
        axes.plot(ranks[bad], held[bad], "x", color=MALICIOUS, markersize=4, label="malicious")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.legend(loc="best")
    axes.set(title="Samples of each client", xlabel="client, the largest first", ylabel="samples")


def _name_clients(
    axes: Axes, places: npt.NDArray[np.int64], description: FederationDescription, order: npt.NDArray[np.int64]
) -> None:
    """Write the clients' names below the axis where there is room for them."""
    if len(order) > _MOST_NAMES:
        return
    names = [label(description.names[client], longest=12) for client in order]
    axes.set_xticks(places, names, rotation=0 if max(map(len, names)) <= 2 else 90)


def _draw_labels(axes: Axes, description: FederationDescription) -> None:
    order = np.argsort(-description.quantities, kind="stable")
    if len(order) > _MOST_ROWS:
        order = order[np.linspace(0, len(order) - 1, _MOST_ROWS).astype(int)]
    held = description.labels[order] / description.labels[order].sum(axis=1, keepdims=True)
    axes.imshow(held.T, aspect="auto", interpolation="nearest", cmap="Blues", vmin=0, vmax=1)
    axes.grid(visible=False)
    _name_clients(axes, np.arange(len(order)), description, order)
    names = [label(name, longest=10) for name in description.class_names]
    if len(names) <= 20:
        axes.set_yticks(range(len(names)), names)
    axes.set(title="Labels of each client (dark: all its samples)", ylabel="label")
    shown = "the largest first" if len(order) == description.num_clients else f"{_MOST_ROWS} of them, the largest first"
    axes.set_xlabel(f"client, {shown}")


def _draw_shares(axes: Axes, description: FederationDescription) -> None:
    held = np.sort(description.quantities)[::-1]
    parts = np.concatenate([[0.0], np.cumsum(held) / held.sum()])
    axes.plot(100 * np.arange(len(parts)) / len(held), 100 * parts, color=HONEST, linewidth=2)
    axes.plot([0, 100], [0, 100], color=NEUTRAL, linewidth=1, linestyle=":")
    for part in (0.01, 0.05, 0.10):
        count, share = description.top_share(part)
        axes.plot(100 * count / len(held), 100 * share, "o", color=MALICIOUS, markersize=4)
    axes.set(
        title="What the largest hold",
        xlabel="part of the clients, the largest first (%)",
        ylabel="part of the samples (%)",
        xlim=(0, 100),
        ylim=(0, 101),
    )


def _draw_claims(axes: Axes, description: FederationDescription) -> None:
    names = [f"{claim.what}: {claim.quantity:,}" for claim in description.claims]
    places = np.arange(len(names))[::-1]
    axes.barh(places, [100 * claim.share for claim in description.claims], color=MALICIOUS, height=0.35)
    axes.set_yticks([])
    for place, name, claim in zip(places, names, description.claims, strict=True):
        axes.text(1, place + 0.24, f"{name} ({100 * claim.share:.1f} %)", fontsize=8)
    axes.set(
        title="What one liar could claim",
        xlabel=f"part of a round of {description.num_sampled:,} where claims are believed (%)",
        xlim=(0, 100),
        ylim=(-0.6, len(names) - 0.2),
    )
