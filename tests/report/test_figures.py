"""Figures: those for which there are results, with the right figures in them, and the same bytes every time."""

import re

import matplotlib
import numpy as np
import pytest
from tests.report.paper_results import accuracy_of, paper_results

from fedra.report.cells import report_cells
from fedra.report.colours import rule_colour, rule_colours
from fedra.report.curves import curve_drawing
from fedra.report.drawing import Drawing, label, panels, styled, with_quantity
from fedra.report.figures import missing_figures, paper_drawings, table_drawings
from fedra.report.figures_accuracy import against_quantity
from fedra.report.tables import paper_tables
from fedra.rules import RULES


@pytest.fixture(scope="module")
def drawings(results):
    return {drawing.key: drawing for drawing in paper_drawings(results)}


def chosen(cells, **wanted):
    return [cell for cell in cells if all(getattr(cell, key) in values for key, values in wanted.items())]


def test_all_figures_of_the_paper(drawings):
    assert list(drawings) == ["figure1", "figure2", "figure4", "figure5", "figure6"]
    assert missing_figures(list(drawings.values())) == ()


def test_panels_are_those_with_results(drawings):
    titles = {key: [axes.get_title() for axes in drawing.figure.axes] for key, drawing in drawings.items()}
    assert titles["figure1"] == ["MNIST, IID", "HuffPost, IID", "MNIST, non-IID", "HuffPost, non-IID"]
    assert titles["figure2"] == ["MNIST, IID, fixed ratio", "MNIST, non-IID, fixed ratio"]
    assert (titles["figure4"], titles["figure5"]) == (["HuffPost"], ["MNIST"])
    attacks = ("Label Flip", "LIE", "Optimize")
    assert titles["figure6"] == [f"{name}, {attack}" for name in ("MNIST", "HuffPost") for attack in attacks]


def test_lines_of_figure_2_are_the_means(drawings, cells):
    axes = drawings["figure2"].figure.axes[0]
    own = chosen(cells, dataset=["mnist"], partition=["iid"], setting=["fixed"], attack=["lie"], rule=["rfa"])
    expected = [np.mean([accuracy_of(cell) for cell in own if cell.alpha_q == alpha]) for alpha in (0.0, 10.0)]
    ours = [line for line in axes.lines if line.get_color() == rule_colour("rfa") and line.get_linestyle() == "-"]
    assert any(np.allclose(line.get_ydata(), expected) for line in ours if len(line.get_ydata()) == 2)
    dashed = [line for line in axes.lines if line.get_color() == rule_colour("rfa") and line.get_linestyle() == "--"]
    assert [list(line.get_ydata()) for line in dashed] == [[99.05, 19.24]]


def test_bars_of_figure_5_are_the_means(drawings, cells):
    axes = drawings["figure5"].figure.axes[0]
    heights = sorted(patch.get_height() for patch in axes.patches)
    own = chosen(
        cells, dataset=["mnist"], partition=["iid"], setting=["dynamic"], attack=["label-flip", "lie", "optimize"]
    )
    rules = ("fedra, mcne", "fedra, under-estimated", "fedra, over-estimated")
    places = {(c.rule, c.attack, c.alpha_q) for c in own if c.rule in rules}
    means = [np.mean([accuracy_of(c) for c in own if (c.rule, c.attack, c.alpha_q) == place]) for place in places]
    assert len(places) == 18
    assert np.allclose(heights, sorted(means))


def test_scores_are_shares(drawings):
    for axes in drawings["figure6"].figure.axes:
        for stairs in axes.patches:
            assert stairs.get_data().values.sum() == pytest.approx(100.0)


def test_a_figure_without_results_is_missing(cells):
    only = paper_results(chosen(cells, setting=["fixed"], partition=["iid"]))
    drawn = paper_drawings(only)
    assert [drawing.key for drawing in drawn] == ["figure2"]
    assert missing_figures(drawn) == ("figure1", "figure4", "figure5", "figure6")


def test_nothing_done_draws_nothing(cells):
    nothing = paper_results(cells[:50], statuses={cell.run: "failed" for cell in cells})
    assert paper_drawings(nothing) == []
    assert list(table_drawings(nothing, paper_tables(nothing))) == []


def test_curves_are_means_over_seeds(results, cells):
    table = next(table for table in paper_tables(results) if table.key == "table2-mnist")
    curves = {str(run): lines for run, lines in results.curves.groupby("run")}
    drawing = curve_drawing(table, curves)
    assert [axes.get_title() for axes in drawing.figure.axes] == [
        rf"{attack}, $\alpha_q$ = 10" for attack in ("Label Flip", "LIE", "Optimize")
    ]
    lines = {line.get_color(): line for line in drawing.figure.axes[1].lines}
    assert len(lines) == 6
    own = chosen(cells, dataset=["mnist"], partition=["iid"], setting=["fixed"], attack=["lie"], rule=["fedra"])
    last = np.mean([accuracy_of(cell) for cell in own if cell.alpha_q == 10.0])
    assert lines[rule_colour("fedra")].get_ydata()[-1] == pytest.approx(last)
    assert lines[rule_colour("fedra")].get_linewidth() == max(line.get_linewidth() for line in lines.values())


def test_the_same_bytes_and_no_trace_in_the_callers_style(results, tmp_path):
    before = dict(matplotlib.rcParams)
    for name in ("a", "b"):
        against_quantity(report_cells(results)).write(tmp_path / name)
    assert dict(matplotlib.rcParams) == before
    for kind in ("png", "svg"):
        first, second = ((tmp_path / name / f"figure2.{kind}").read_bytes() for name in ("a", "b"))
        assert first == second
        assert not re.search(rb"<dc:date>|Matplotlib v", first)
    assert (tmp_path / "a" / "figure2.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("text", ["$x^{$", r"\$\frac{", "a\nb", "$" * 60, "\ud800</svg>", r"$\nonsense$"])
def test_hostile_labels_are_drawn_as_they_are(text, tmp_path):
    with styled():
        figure, grid = panels(1, 1, width=3, height=2)
        grid[0][0].set_title(label(text))
        grid[0][0].set_xlabel(with_quantity(text, 10.0))
    files = Drawing(key="x", caption=text, figure=figure).write(tmp_path)
    assert all(file.stat().st_size > 1000 for file in files)


def test_every_rule_has_its_own_colour():
    colours = rule_colours([*RULES, "mine", "fedra, pooled", "fedra gamma 0", "fedra gamma 0.5"])
    assert len(set(colours.values())) == len(colours)
    assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in colours.values())
    assert rule_colour("mine") == rule_colour("mine")
    assert colours["fedra"] == rule_colour("fedra")


def test_more_rules_than_colours_still_have_one_each():
    rules = [f"rule {number}" for number in range(40)]
    assert list(rule_colours(rules)) == rules
