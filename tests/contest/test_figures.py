"""The picture of regret: a line for each cell, a column for each rule, and nothing without results."""

import pytest
from tests.contest.contest_results import contest_data

from fedra.contest import Contest, contest_tables, standings
from fedra.contest.figures import regret_map


def drawn(data, tables):
    return {drawing.key: drawing.figure for drawing in regret_map(data, tables)}


def test_each_cell_is_drawn_once_with_its_regret(data):
    tables = contest_tables(data)
    figure = drawn(data, tables)["contest-regret"]
    assert len(figure.axes) == len(tables)
    order = standings(tables)
    for axes, table in zip(figure.axes, tables, strict=True):
        values = axes.images[0].get_array()
        assert values.shape == (len(table.columns), len(order))
        assert values.min(axis=1).tolist() == [0] * len(table.columns)
        for place, standing in enumerate(order):
            points = [regret.points for regret in standing.regrets if regret.table is table]
            assert values[:, place].tolist() == pytest.approx(points)
        assert len(axes.texts) == values.size


def test_broken_assumptions_are_a_picture_of_their_own(data):
    tables = (*contest_tables(data), *contest_tables(data, broken=True))
    figures = drawn(data, tables)
    assert list(figures) == ["contest-regret", "contest-broken-regret"]
    assert len(figures["contest-broken-regret"].axes) == 5


def test_without_two_rules_there_is_nothing_to_compare():
    data = contest_data(Contest(settings=("digits-silos",), rules=("rfa",)))
    assert drawn(data, contest_tables(data)) == {}


def test_names_that_others_chose_are_no_formulas(tmp_path):
    entry = {"rule": "krum", "label": r"$\frac{$ _x^"}
    data = contest_data(Contest(settings=("digits-silos",), rules=("rfa",), added_rules=(entry,)))
    for drawing in regret_map(data, contest_tables(data)):
        assert all(file.stat().st_size > 0 for file in drawing.write(tmp_path))


def test_a_short_picture_has_room_for_long_names(tmp_path, recwarn):
    entry = {"rule": "krum", "label": "my_rules:CappedMeanOfAll"}
    rules, attacks = ("fedavg", "median"), ("none", "lie")
    data = contest_data(Contest(settings=("digits-silos",), rules=rules, attacks=attacks, added_rules=(entry,)))
    (drawing,) = regret_map(data, contest_tables(data))
    drawing.write(tmp_path)
    assert not [str(warning.message) for warning in recwarn]
    (axes,) = drawing.figure.axes
    canvas = drawing.figure.bbox
    names = [text.get_window_extent() for text in axes.get_xticklabels()]
    assert all(canvas.y0 <= name.y0 and name.y1 <= canvas.y1 for name in names)
    lines = len(axes.texts) / len(names)
    # A line is at least as high as its figures.
    assert axes.get_window_extent().height / lines > 7 / 72 * drawing.figure.dpi
