"""How figures look and are written."""

import pytest

from fedra.report.appearance import RuleStyle
from fedra.report.figures.drawing import Drawing, label, line_looks, panels, styled, with_quantity


@pytest.mark.parametrize("text", ["$x^{$", r"\$\frac{", "a\nb", "$" * 60, "\ud800</svg>", r"$\nonsense$"])
def test_hostile_labels_are_drawn_as_they_are(text, tmp_path):
    with styled():
        figure, grid = panels(1, 1, width=3, height=2)
        grid[0][0].set_title(label(text))
        grid[0][0].set_xlabel(with_quantity(text, 10.0))
    files = Drawing(key="x", caption=text, figure=figure).write(tmp_path)
    assert all(file.stat().st_size > 1000 for file in files)


def test_a_pdf_has_fonts_that_journals_take(tmp_path):
    with styled():
        figure, grid = panels(1, 1, width=3, height=2)
        grid[0][0].set_title("accuracy")
    (pdf,) = (file for file in Drawing(key="x", caption="", figure=figure).write(tmp_path) if file.suffix == ".pdf")
    written = pdf.read_bytes()
    assert written.startswith(b"%PDF-")
    assert b"/Type3" not in written
    assert b"/TrueType" in written or b"/CIDFontType2" in written


def test_what_a_figure_is_about_is_on_top_and_thick():
    strong, plain, faint = (
        line_looks(RuleStyle(colour="#000000", marker=".", **looks))
        for looks in ({"strong": True}, {}, {"faint": True})
    )
    assert strong["linewidth"] > plain["linewidth"] > faint["linewidth"]
    assert strong["zorder"] > plain["zorder"] == faint["zorder"]
    assert strong["alpha"] == plain["alpha"] == 1.0 > faint["alpha"]
