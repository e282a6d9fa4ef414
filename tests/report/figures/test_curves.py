"""Curves behind a table: a panel for each claim that was run, own rules foremost, bands that say what they are."""

import pandas as pd
import pytest
from tests.report.formats.making import entry, table

from fedra.report.figures.curves import curve_drawing, panel_rows
from fedra.report.model import Column, Row

COLUMNS = [
    Column(attack="none", alpha_q=None, attack_label="No attack"),
    *(Column(attack="lie", alpha_q=alpha, attack_label="LIE") for alpha in (0.0, 3.0, 10.0)),
]


def made(*, seeds):
    rules = (("fedavg", False), ("my:Rule", True), ("fedra", False))
    runs = {}
    rows = []
    for rule, own in rules:
        entries = []
        for place in range(len(COLUMNS)):
            done = entry(50.0, rule=rule, statuses=("done",) * seeds)
            names = tuple(f"{rule}-{place}-{seed}" for seed in range(seeds))
            for seed, name in enumerate(names):
                runs[name] = pd.DataFrame({"round": [5, 10], "accuracy": [20.0 + seed, 50.0 + 2 * seed]})
            entries.append(done.__class__(**{**vars(done), "runs": names}))
        rows.append(Row(label=rule, family="f", rule=rule, entries=tuple(entries), own=own))
    return curve_drawing(table(rows, COLUMNS), runs)


def texts(drawing):
    (legend,) = drawing.figure.legends
    return [text.get_text() for text in legend.get_texts()]


def test_a_panel_for_each_claim_that_was_run():
    titles = [axes.get_title() for axes in made(seeds=1).figure.axes if axes.get_title()]
    assert titles == ["No attack", *(rf"LIE, $\alpha_q$ = {alpha}" for alpha in (0, 3, 10))]


def test_own_rules_are_foremost():
    drawing = made(seeds=2)
    assert texts(drawing)[:3] == ["my:Rule", "fedavg", "fedra"]
    for axes in drawing.figure.axes:
        lines = {line.get_marker(): line for line in axes.lines}
        if lines:
            mine = lines.pop("*")
            assert all(mine.get_zorder() > line.get_zorder() for line in lines.values())
            assert all(mine.get_linewidth() > line.get_linewidth() for line in lines.values())
            bands = axes.collections
            assert [band.get_zorder() for band in bands].count(max(band.get_zorder() for band in bands)) == 1


def test_bands_are_explained_where_there_are_any():
    several, one = made(seeds=3), made(seeds=1)
    assert texts(several)[-1] == "band: lowest to highest seed"
    assert several.caption.endswith("a band reaches from the lowest to the highest seed.")
    (band,) = (band for band in several.figure.axes[0].collections if band.get_zorder() == 2)
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (20.0, 54.0)
    assert texts(one) == ["my:Rule", "fedavg", "fedra"]
    assert not one.figure.axes[0].collections
    assert one.caption == "T: accuracy over rounds."


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([1, 1, 1, 1, 1], [4, 1]),
        ([1, 3], [4]),
        ([2, 2, 2], [2, 2, 2]),
        ([1, 1, 2, 2], [2, 2, 2]),
        ([1, 3, 1], [1, 3, 1]),
        ([5, 5], [5, 5]),
        ([7], [5, 2]),
        ([2] * 8, [4] * 4),
        ([1, *[2] * 7], [3, 4, 4, 4]),
        ([3] * 9, [3] * 9),
    ],
)
def test_panels_of_an_attack_stand_side_by_side(sizes, expected):
    places = iter(range(100))
    groups = [[next(places) for _ in range(size)] for size in sizes]
    rows = panel_rows(groups)
    assert [len(row) for row in rows] == expected
    assert [place for row in rows for place in row] == [place for group in groups for place in group]
