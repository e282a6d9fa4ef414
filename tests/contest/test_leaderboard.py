"""The boards: the figures of the standings and of the results, in every format."""

import csv
import io

import pytest
from tests.contest.contest_results import contest_data, with_accuracies
from tests.report.formats.making import check_latex

from fedra.contest import Contest, contest_tables, standings
from fedra.contest.leaderboard import (
    Board,
    by_setting,
    leaderboard,
    measure_boards,
    price_board,
    standing_values,
    treatment_board,
)
from fedra.report.formats.markdown import DASH

SMALL = Contest(settings=("digits-silos",), rules=("fedavg", "rfa", "median"), attacks=("none", "lie", "backdoor"))


@pytest.fixture(scope="module")
def tables():
    points = {"fedavg": 90.0, "rfa": 85.5, "median": 70.0}
    return contest_tables(with_accuracies(contest_data(SMALL), lambda o: points[o.rule] - (o.attack == "lie")))


def test_the_leaderboard_says_who_where_and_how_far(tables):
    board = leaderboard(tables, key="k", title="T")
    assert board.lines == (
        ("FedAdam", "0.0", DASH, "0.0", "89.6", "5"),
        ("RFA", "4.5", "Digits (10 silos), IID: No attack", "4.5", "85.1", "5"),
        ("Median", "20.0", "Digits (10 silos), IID: No attack", "20.0", "69.6", "5"),
    )


def test_the_price_is_what_nobody_attacking_costs_and_what_the_worst_leaves():
    contest = Contest(settings=("digits-silos",), rules=("fedavg", "rfa"), attacks=("none", "lie", "adaptive"))
    points = {("fedavg", "none"): 95.0, ("rfa", "none"): 94.0, ("fedavg", "adaptive"): 9.0, ("rfa", "adaptive"): 70.0}
    tables = contest_tables(with_accuracies(contest_data(contest), lambda o: points.get((o.rule, o.attack), 50.0)))
    board = price_board(tables, key="k", title="T")
    assert board.heads[3:] == ("Digits (10 silos), IID: no attack", "Digits (10 silos), IID: adaptive")
    assert {line[0]: (line[1], *line[3:]) for line in board.lines} == {
        "RFA": ("1.0", "94.0", "70.0"),
        "FedAdam": ("61.0", "95.0", "9.0"),
    }


def test_refusals_are_counted():
    contest = Contest(settings=("digits-silos",), broken=True, rules=("fedavg",), added_rules=("bulyan", "rfa"))
    board = leaderboard(contest_tables(contest_data(contest), broken=True), key="k", title="T")
    cells = {line[0]: line[-1] for line in board.lines}
    assert cells == {"FedAdam": "28", "RFA": "28", "Bulyan": "21 of 28, refuses 7"}
    assert "refuses so few clients" in board.caption


def test_each_setting_by_itself(data):
    tables = contest_tables(data)
    board = by_setting(tables, key="k", title="T")
    assert board.heads[:3] == ("rule", "MNIST, IID: worst", "MNIST, IID: mean")
    assert len(board.heads) == 9
    alone = {standing.label: standing for standing in standings(tables[2:3])}
    for line in board.lines:
        assert line[5:7] == (f"{alone[line[0]].worst.points:.1f}", f"{alone[line[0]].mean_accuracy:.1f}")
    assert [line[0] for line in board.lines] == [standing.label for standing in standings(tables)]


def test_what_attackers_get_and_honest_clients_lose(tables):
    board = treatment_board(tables, key="k", title="T")
    lines = {line[0]: dict(zip(board.heads, line, strict=True)) for line in board.lines}
    assert lines["Median"]["attack weight"] == lines["Median"]["silenced, clean"] == DASH
    (row,) = (row for row in tables[0].rows if row.rule == "rfa")
    weights = [entry.measures["malicious_weight"] for entry in row.entries if "malicious_weight" in entry.measures]
    assert lines["RFA"]["attack weight"] == f"{100 * sum(weights) / len(weights):.1f}"
    assert lines["RFA"]["dropped, clean"] == f"{100 * row.entries[0].measures['honest_dropped']:.1f}"
    success = [entry.measures["attack_success"] for entry in row.entries if "attack_success" in entry.measures]
    assert lines["RFA"]["trigger works"] == f"{sum(success) / 2:.1f}"


def test_other_figures_cell_by_cell(tables):
    boards = {board.key: board for board in measure_boards(tables[0])}
    weight = boards["contest-digits-10-silos-iid-malicious-weight"]
    assert weight.heads == (
        *("rule", "LIE, alpha_q 0", "LIE, alpha_q 10"),
        *("Backdoor, alpha_q 0", "Backdoor, alpha_q 10"),
    )
    assert {line[0]: set(line[1:]) for line in weight.lines}["Median"] == {DASH}
    success = boards["contest-digits-10-silos-iid-attack-success"]
    assert success.heads == ("rule", "Backdoor, alpha_q 0", "Backdoor, alpha_q 10")
    assert len(boards["contest-digits-10-silos-iid-honest-dropped"].heads) == 6
    assert len(boards) == 5


def test_every_format_has_the_same_lines():
    board = Board(key="k", title="A & B", caption="50% _of_ it.", heads=("rule", "a_b"), lines=(("x|y", "1.0"),))
    files = board.files()
    assert list(files) == ["k.md", "k.csv", "k.tex"]
    assert r"| x\|y | 1.0 |" in files["k.md"]
    assert list(csv.reader(io.StringIO(files["k.csv"]))) == [["rule", "a_b"], ["x|y", "1.0"]]
    assert r"x\textbar{}y & 1.0 \\" in files["k.tex"]
    assert r"\caption{A \& B. 50\% \_of\_ it.}" in files["k.tex"]
    check_latex(files["k.tex"], width=2)
    shown = board.text_table(folded=True)
    assert (shown.heading, shown.folded, shown.numbers) == ("A & B", True, frozenset({1}))
    assert board.text_table().heading == ""


def test_values_are_plain(tables):
    first = standing_values(tables)[0]
    assert first["rule"] == "fedavg"
    assert (first["worst_regret"], first["cells"], first["of"], first["refused"]) == (0.0, 5, 5, 0)
