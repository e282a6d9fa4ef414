from __future__ import annotations

from collections import Counter

import pytest

from fedra import RULES, Family
from fedra.data import DATASETS
from fedra.experiments import Grid
from fedra.paper import read_paper
from fedra.paper.published import BEST_IGNORANT, PublishedAccuracy
from fedra.paper.reproduction import paper_rules

PAPER = read_paper()


def published(table: int, dataset: str, rule: str, attack: str, alpha_q: float | None = None) -> float:
    (found,) = (
        line.accuracy
        for line in PAPER.accuracies
        if (line.table, line.dataset, line.rule, line.attack, line.alpha_q) == (table, dataset, rule, attack, alpha_q)
    )
    return found


def test_every_table_is_whole() -> None:
    counts = Counter(line.table for line in PAPER.accuracies)
    wide, narrow = 3 * 6 * 3 * 5, 3 * 5 * 3
    assert counts == {2: wide, 3: narrow, 4: wide, 5: narrow, 6: wide, 7: narrow}
    assert len({(line.table, line.dataset, line.rule, line.attack, line.alpha_q) for line in PAPER.accuracies}) == 945
    kinds = {(line.table, line.partition, line.setting) for line in PAPER.accuracies}
    assert kinds == {
        *((table, "iid", "fixed") for table in (2, 3)),
        *((table, "iid", "dynamic") for table in (4, 5)),
        *((table, "non-iid", "dynamic") for table in (6, 7)),
    }


def test_figures_are_percentages_under_known_names() -> None:
    for line in PAPER.accuracies:
        assert 0 < line.accuracy < 100
        assert round(line.accuracy, 2) == line.accuracy
        assert line.dataset in DATASETS
        assert line.rule in RULES or line.rule == BEST_IGNORANT
        assert {line.dataset, line.rule, line.attack} <= set(PAPER.names)


@pytest.mark.parametrize(
    ("place", "accuracy"),
    [
        ((2, "mnist", "fedra", "label-flip", 0), 99.30),
        ((2, "mnist", "fedavg", "lie", 10), 16.09),
        ((2, "cifar10", "norm-bound", "optimize", 0), 25.13),
        ((2, "mind", "truncate", "lie", 5), 53.11),
        ((3, "mnist", "trimmed-mean", "optimize"), 30.34),
        ((3, "mind", "bulyan", "label-flip"), 66.52),
        ((4, "cifar10", "fedra", "label-flip", 0), 61.86),
        ((4, "cifar10", "rfa", "label-flip", 0), 62.31),
        ((4, "mind", "fedra", "optimize", 10), 71.12),
        ((5, "cifar10", "multi-krum", "lie"), 21.44),
        ((6, "mnist", "truncate", "optimize", 1), 13.05),
        ((6, "mind", "rfa", "optimize", 10), 0.96),
        ((6, "cifar10", "fedra", "label-flip", 10), 49.69),
        ((7, "mind", "median", "optimize"), 17.59),
        ((7, "mnist", "multi-krum", "lie"), 89.87),
    ],
)
def test_spot_values(place: tuple[int, str, str, str, float], accuracy: float) -> None:
    assert published(*place) == accuracy


def test_the_best_quantity_ignorant_row_is_the_best_of_the_table_after_it() -> None:
    ignorant = [
        name
        for name, rule in RULES.items()
        if rule.family is Family.IGNORANT and name in set(paper_rules()) - {"uniform"}
    ]
    best = [line for line in PAPER.accuracies if line.rule == BEST_IGNORANT]
    assert len(best) == 3 * 3 * 3 * 5
    for line in best:
        candidates = [published(line.table + 1, line.dataset, rule, line.attack) for rule in ignorant]
        assert line.accuracy == max(candidates), line


def test_statistics_fit_the_data() -> None:
    by_name = {line.dataset: line for line in PAPER.statistics}
    assert list(by_name) == ["mnist", "cifar10", "mind"]
    assert (by_name["mnist"].num_clients, by_name["mnist"].max_quantity) == (3025, 6820)
    assert (by_name["cifar10"].std_quantity, by_name["cifar10"].num_clients) == (200.14, 3115)
    assert (by_name["mind"].num_train, by_name["mind"].num_test, by_name["mind"].num_classes) == (71068, 20307, 18)
    for line in PAPER.statistics:
        assert line.num_train / line.num_clients == pytest.approx(line.mean_quantity, rel=0.005)


def test_the_frame_has_a_line_for_each() -> None:
    frame = PAPER.frame()
    assert list(frame.columns) == list(PublishedAccuracy.__dataclass_fields__)
    assert len(frame) == 945
    assert frame["alpha_q"].isna().sum() == 135


def test_figures_are_grids() -> None:
    cells = {figure.number: len(Grid.from_dict(figure.grid).cells) for figure in PAPER.figures}
    assert cells == {1: 3 * 2 * 9, 2: 2 * 5 * 5, 4: 2 * 3 * 3 * 5, 5: 3 * 3 * 5, 6: 3 * 3}
    assert [figure.round for figure in PAPER.figures if figure.shows == "scores"] == [1000]
