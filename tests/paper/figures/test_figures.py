"""Figures: those for which there are results, with the right figures in them, and the same bytes every time."""

import re

import matplotlib
import numpy as np
import pytest
from tests.paper.paper_results import accuracy_of, grid_cells, paper_data

from fedra.paper import paper_tables
from fedra.paper.figures import FIGURES
from fedra.report.appearance import rule_style
from fedra.report.figures import FIGURES as REPORT_FIGURES
from fedra.report.figures.curves import curve_drawing
from fedra.report.figures.drawing import FORMATS


def drawn(data):
    return {drawing.key: drawing for figure in FIGURES.values() for drawing in figure(data, ())}


@pytest.fixture(scope="module")
def drawings(data):
    return drawn(data)


def chosen(cells, **wanted):
    return [cell for cell in cells if all(getattr(cell, key) in values for key, values in wanted.items())]


def test_all_figures_of_the_paper(drawings):
    assert list(drawings) == list(FIGURES) == ["figure1", "figure2", "figure4", "figure5", "figure6"]


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
    coloured = [line for line in axes.lines if line.get_color() == rule_style("rfa").colour]
    ours = [line for line in coloured if line.get_linestyle() == "-"]
    assert any(np.allclose(line.get_ydata(), expected) for line in ours if len(line.get_ydata()) == 2)
    dashed = [
        line for line in axes.lines if line.get_color() == rule_style("rfa").colour and line.get_linestyle() == "--"
    ]
    assert [list(line.get_ydata()) for line in dashed] == [[99.05, 19.24]]


def test_figure_2_has_fedra_in_both_panels_and_says_what_its_bars_are(drawings):
    for axes in drawings["figure2"].figure.axes:
        lines = [line for line in axes.lines if line.get_color() == rule_style("fedra").colour]
        assert any(len(line.get_ydata()) == 2 and line.get_linestyle() == "-" for line in lines)
    for key in ("figure1", "figure2", "figure4", "figure5"):
        assert drawings[key].caption.endswith("one standard deviation over seeds to either side of the mean.")


def test_figure_2_is_one_curve_of_the_values_of_several_calls():
    calls = [grid_cells(targets=("figure2",), rules=("fedra",), alpha_q=values) for values in ((0.0, 10.0), (1, 2, 5))]
    drawing = drawn(paper_data([cell for cells in calls for cell in cells]))["figure2"]
    for axes in drawing.figure.axes:
        assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "1", "2", "5", "10"]
        (line,) = (one for one in axes.lines if one.get_linestyle() == "-" and len(one.get_ydata()))
        assert len(line.get_ydata()) == 5


def test_one_seed_has_no_bars_to_explain(cells):
    alone = drawn(paper_data(chosen(cells, seed=[0], dataset=["mnist"])))
    assert all("deviation" not in drawing.caption for drawing in alone.values())


def test_an_own_rule_is_foremost_in_figure_2():
    added = ({"rule": "tests.security.own_rules:KeepAll", "label": "ours"},)
    drawing = drawn(paper_data(grid_cells(targets=("figure2",), added_rules=added)))["figure2"]
    (legend,) = drawing.figure.legends
    assert next(text.get_text() for text in legend.get_texts()) == "ours"
    for axes in drawing.figure.axes:
        lines = [line for line in axes.lines if line.get_linestyle() == "-" and len(line.get_ydata()) == 2]
        foremost = max(lines, key=lambda line: line.get_zorder())
        assert foremost.get_linewidth() == max(line.get_linewidth() for line in lines)
        assert [line.get_marker() for line in lines if line.get_zorder() == foremost.get_zorder()] == ["*"]


def test_figure_6_is_at_the_papers_claim_or_at_those_asked_for():
    def titles(**choice):
        data = paper_data(grid_cells(targets=("figure6",), **choice))
        (drawing,) = FIGURES["figure6"](data, ())
        return drawing.caption, [axes.get_title() for axes in drawing.figure.axes]

    caption, panels = titles()
    assert caption.endswith("alpha_q 10.")
    assert panels == ["MNIST, Label Flip", "MNIST, LIE", "MNIST, Optimize"]
    caption, panels = titles(alpha_q=(0.0, 5.0))
    assert caption.endswith("alpha_q 0, 5.")
    assert panels[0] == r"MNIST, Label Flip, $\alpha_q$ = 0"
    assert panels[-1] == r"MNIST, Optimize, $\alpha_q$ = 5"


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
    assert list(drawn(paper_data(chosen(cells, setting=["fixed"], partition=["iid"])))) == ["figure2"]


def test_nothing_done_draws_nothing(cells):
    nothing = paper_data(cells[:50], statuses={cell.run: "failed" for cell in cells})
    assert drawn(nothing) == {}
    assert list(REPORT_FIGURES["curves"](nothing, paper_tables(nothing))) == []


def test_curves_are_means_over_seeds(data, cells):
    table = next(table for table in paper_tables(data) if table.key == "table2-mnist")
    drawing = curve_drawing(table, data.curves)
    assert [axes.get_title() for axes in drawing.figure.axes] == [
        rf"{attack}, $\alpha_q$ = {alpha}" for attack in ("Label Flip", "LIE", "Optimize") for alpha in (0, 10)
    ]
    lines = {line.get_color(): line for line in drawing.figure.axes[3].lines}
    assert len(lines) == 6
    own = chosen(cells, dataset=["mnist"], partition=["iid"], setting=["fixed"], attack=["lie"], rule=["fedra"])
    last = np.mean([accuracy_of(cell) for cell in own if cell.alpha_q == 10.0])
    assert lines[rule_style("fedra").colour].get_ydata()[-1] == pytest.approx(last)
    assert lines[rule_style("fedra").colour].get_linewidth() == max(line.get_linewidth() for line in lines.values())


def test_the_same_bytes_and_no_trace_in_the_callers_style(data, tmp_path):
    before = dict(matplotlib.rcParams)
    for name in ("a", "b"):
        next(iter(FIGURES["figure2"](data, ()))).write(tmp_path / name)
    assert dict(matplotlib.rcParams) == before
    for kind in FORMATS:
        first, second = ((tmp_path / name / f"figure2.{kind}").read_bytes() for name in ("a", "b"))
        assert first == second
        assert not re.search(rb"<dc:date>|Matplotlib v|/CreationDate", first)
    assert (tmp_path / "a" / "figure2.png").read_bytes().startswith(b"\x89PNG")
