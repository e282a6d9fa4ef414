"""How figures look and are written: the same bytes for the same results."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fedra.files import folder_inside, write_bytes
from fedra.report.appearance import NEUTRAL, RuleStyle
from fedra.untrusted import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

T = TypeVar("T")

FORMATS = ("png", "svg", "pdf")
# What a format says of when and by what a figure was made.
_DATED = {"png": ("Software",), "svg": ("Date", "Creator"), "pdf": ("CreationDate", "Creator", "Producer")}
_DPI = 150
_LONGEST_LABEL = 36
_STYLE: Mapping[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": NEUTRAL,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.7,
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.facecolor": "white",
    "svg.hashsalt": "fedra",
    "svg.fonttype": "path",
    # Journals refuse the Type 3 fonts that are matplotlib's default.
    "pdf.fonttype": 42,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawing:
    """A figure with its file name and caption; `embedded`: whether the page shows it, too."""

    key: str
    caption: str
    figure: Figure
    embedded: bool = True

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write it as PNG, SVG and PDF."""
        folder_inside(folder)
        files = tuple(folder / f"{self.key}.{kind}" for kind in FORMATS)
        with styled():
            # Panels are fitted once, not for each format: that is most of the work.
            if (engine := self.figure.get_layout_engine()) is not None:
                engine.execute(self.figure)
                self.figure.set_layout_engine(None)
        for file, kind in zip(files, FORMATS, strict=True):
            write_bytes(file, self._bytes(kind))
        return files

    def _bytes(self, kind: str) -> bytes:
        target = io.BytesIO()
        # A date or the version of a library would make other bytes of the same figure.
        metadata = dict.fromkeys(_DATED[kind])
        with styled():
            self.figure.savefig(target, format=kind, dpi=_DPI, metadata=metadata)
        return target.getvalue()


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the report's style, and leave the caller's as it was."""
    matplotlib = require_matplotlib()
    with matplotlib.rc_context(_STYLE):
        yield


def require_matplotlib() -> Any:
    """Return matplotlib, or raise with what to install."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise ValueError(
            'figures need matplotlib, which is not installed: pip install "fedra[report]", or leave them out with '
            "--no-figures"
        ) from error
    return matplotlib


def panels(rows: int, columns: int, *, width: float, height: float, share_y: bool = False) -> tuple[Figure, Any]:
    """Return a figure and its rows x columns axes, each of this size in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, sharey=share_y)


def label(text: str, *, longest: int = _LONGEST_LABEL) -> str:
    """Return a text that others chose as matplotlib shows it: on one line, not too long, and never as a formula."""
    line = one_line(text)
    short = line if len(line) <= longest else f"{line[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"
    return short.replace("$", r"\$")


def with_quantity(text: str, alpha_q: float | None, *, between: str = ", ") -> str:
    """Return an attack's label with its claimed quantity."""
    return label(text) if alpha_q is None else rf"{label(text)}{between}$\alpha_q$ = {alpha_q:g}"


def line_looks(style: RuleStyle) -> dict[str, Any]:
    """Return how a rule's line is drawn: what the figure is about is thick and on top, the others are behind it."""
    return {
        "color": style.colour,
        "marker": style.marker,
        "linewidth": 2.6 if style.strong else 1.1 if style.faint else 1.4,
        "alpha": 0.55 if style.faint else 1.0,
        "zorder": 4 if style.strong else 3,
    }


def own_first(rules: Iterable[T], own: Callable[[T], bool]) -> list[T]:
    """Return rules as a legend has them: the user's own before the others, each in their order."""
    return sorted(rules, key=lambda rule: not own(rule))


def percent_axis(axes: Axes, *, low: float = 0.0) -> None:
    """Label accuracy from `low` to 100 percent."""
    axes.set_ylim(low, 101)
    axes.set_ylabel("accuracy (%)")


def legend_below(figure: Figure, axes: Axes, *, columns: int) -> None:
    """Put one legend for all panels under them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)
