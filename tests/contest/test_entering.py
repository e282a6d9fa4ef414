"""The contest as a grid: the cells asked for, runs that others share, and what cannot be run."""

import pytest

from fedra.contest import Contest, read_programme
from fedra.contest.entering import _assumed, is_contest
from fedra.contest.programme import ContestSetting
from fedra.experiments import Grid, GridFolder
from fedra.simulation import SimulationConfig

BULYAN = {"rule": "bulyan", "label": "Bulyan"}


def test_the_cells_are_rules_by_attacks_by_claims_by_settings():
    grid = Contest().grid
    programme = read_programme()
    columns = 2 * (len(programme.attacks) - 1) + 1
    assert len(grid.cells) == len(programme.rules) * columns * len(programme.usual_settings)
    assert {cell.alpha_q for cell in grid.cells if cell.attack == "adaptive"} == {None}
    assert {cell.alpha_q for cell in grid.cells if cell.attack == "lie"} == {0.0, 10.0}
    assert {cell.seed for cell in grid.cells} == {2}
    assert {cell.setting for cell in grid.cells} == {"dynamic"}
    silos = {cell.config.num_clients for cell in grid.cells if cell.dataset == "Digits (10 silos)"}
    assert silos == {10}


def test_runs_are_those_of_a_grid_that_says_the_same():
    """Whoever has run the cells by `fedra grid` need not run them again."""
    values = {
        "rules": [
            "fedavg",
            {"rule": "trimmed-mean", "before": "nnm"},
            {"rule": "ctma", "params": {"weights": "capped"}},
        ],
        "attacks": ["none", "lie", "backdoor"],
        "alpha_q": [0, 10],
        "seeds": [2],
        "settings": ["dynamic"],
        "blocks": [
            {
                "datasets": ["mnist"],
                "partitions": ["iid", "non-iid"],
                "fixed": {"rounds": 100, "eval_every": 25, "lr": 1e-3, "max_quantity": 512},
            },
            {
                "datasets": ["cifar10"],
                "partitions": ["iid"],
                "fixed": {"rounds": 150, "eval_every": 50, "lr": 1e-3, "max_quantity": 128},
            },
        ],
    }
    assert Grid.from_dict(values).runs.keys() <= Contest().grid.runs.keys()


def test_a_part_of_it_can_be_chosen():
    grid = Contest(settings=("digits-silos",), rules=("fedra", "rfa"), attacks=("lie", "adaptive"), seeds=(3, 4)).grid
    assert {cell.rule for cell in grid.cells} == {"rfa", "fedra-printed", "fedra-evidence"}
    assert len(grid.cells) == 3 * (2 + 1) * 2
    (one,) = {cell.rule for cell in Contest(rules=("fedra-evidence",)).grid.cells}
    assert one == "fedra-evidence"
    assert {cell.dataset for cell in Contest(settings=("huffpost-iid",)).grid.cells} == {"huffpost"}
    assert {cell.config.rounds for cell in Contest(rounds=3).grid.cells} == {3}


def test_own_rules_enter():
    grid = Contest(settings=("digits-silos",), rules=("rfa",), added_rules=(BULYAN, "krum")).grid
    assert {cell.rule for cell in grid.cells} == {"rfa", "Bulyan", "krum"}


def test_names_do_not_depend_on_the_order_of_the_choice():
    one = Contest(settings=("mnist-iid", "digits-silos"), seeds=(2, 3))
    assert one.name == Contest(settings=("digits-silos", "mnist-iid"), seeds=(3, 2)).name
    assert one.name != Contest(settings=("digits-silos", "mnist-iid"), seeds=(3, 4)).name
    assert is_contest(one.name, broken=False)
    broken = Contest(broken=True).name
    assert is_contest(broken, broken=True)
    assert not is_contest(broken, broken=False)
    assert not is_contest("paper-quick-x", broken=False)


def test_more_attackers_than_assumed():
    grid = Contest(broken=True, settings=("mnist-iid",), rules=("fedra-evidence",)).grid
    known = {cell.attack: cell for cell in grid.cells}
    assert list(known)[:3] == ["decoys, as assumed", "decoys, 1.5 times", "decoys, 2 times"]
    twice = known["decoys, 2 times"].config
    assert (twice.malicious_ratio, twice.assumed_ratio, twice.alpha_q) == (0.2, 0.1, 10.0)
    assert known["decoys, 1.5 times"].config.malicious_ratio == 0.15
    assert known["adaptive, 2 times"].config.alpha_q is None
    # As many as assumed is a cell of the contest itself.
    assert known["decoys, as assumed"].run in Contest().grid.runs
    assert known["adaptive, as assumed"].run in Contest().grid.runs


def test_few_silos():
    grid = Contest(broken=True, settings=("digits-silos",), rules=("fedavg",)).grid
    assert {cell.config.num_clients for cell in grid.cells} == {5, 8, 10, 20}
    for cell in grid.cells:
        assert cell.config.num_sampled == cell.config.num_clients
        assert cell.config.num_malicious == (None if cell.attack == "none" else int(cell.attack.split(" ")[1]))
    assert len(grid.cells) == 4 * (1 + 3 * 2)


def test_a_rule_that_refuses_so_few_clients_is_left_out_and_named():
    contest = Contest(broken=True, settings=("digits-silos",), rules=("fedavg",), added_rules=(BULYAN,))
    left = {cell.config.num_clients for cell in contest.grid.cells if cell.rule == "Bulyan"}
    assert left == {8, 10, 20}
    (note,) = contest.notes()
    assert note.startswith("Bulyan has no part in Digits (5 silos): bulyan needs n >= 4m+3")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"settings": ("mnist",)}, r"unknown setting of the contest 'mnist'; did you mean 'mnist-iid'\?"),
        ({"settings": ("mnist-non-iid",), "broken": True}, "unknown setting with a broken assumption 'mnist-non-iid'"),
        ({"rules": ("fedrra",)}, r"unknown rule of the contest 'fedrra'; did you mean 'fedra'\?"),
        ({"attacks": ("lye",)}, r"unknown attack of the contest 'lye'; did you mean 'lie'\?"),
        ({"attacks": ("lie",), "broken": True}, "unknown attack of the contest 'lie'"),
        ({"seeds": (-1,)}, "a seed=-1; give a whole number"),
        ({"seeds": ()}, "no seeds given"),
        ({"rounds": 0}, "rounds=0; give a whole number of at least 1"),
        ({"rules": ()}, "no rules given"),
        ({"added_rules": ("nonesuch",)}, "unknown rule 'nonesuch'"),
    ],
)
def test_what_is_not_there_is_told(choice, message):
    with pytest.raises(ValueError, match=message):
        Contest(**choice)


def test_data_that_are_missing_are_told(tmp_path):
    contest = Contest(settings=("mnist-iid", "digits-silos"), data_dir=str(tmp_path))
    (missing,) = contest.missing_data(to_run=True)
    assert missing.startswith("mnist is missing: ")
    assert "--settings digits-silos needs no files" in missing
    assert contest.missing_data(to_run=False) == []


def test_a_folder_cannot_mix_two_contests(tmp_path):
    short = Contest(settings=("digits-silos",), rounds=3)
    GridFolder(path=tmp_path).record(short.name, short.grid)
    Contest(settings=("digits-silos",), rounds=3, seeds=(4,)).check_folder(tmp_path)
    with pytest.raises(ValueError, match=r"has another run for Digits .*cannot mix two protocols"):
        Contest(settings=("digits-silos",)).check_folder(tmp_path)
    # Others may stand beside it.
    Contest(broken=True, settings=("digits-silos",)).check_folder(tmp_path)
    GridFolder(path=tmp_path).record("mine", Grid.from_dict({"fixed": {"rounds": 7}}))
    short.check_folder(tmp_path)


def test_settings_are_those_of_a_run():
    for setting in read_programme().settings.values():
        SimulationConfig.from_dict({"dataset": setting.dataset, "partition": setting.partition, **setting.fixed})


@pytest.mark.parametrize(
    ("federation", "fixed", "expected"),
    [
        (None, {}, 0.1),
        ({"malicious_ratio": 0.2}, {}, 0.2),
        ({"num_malicious": 2, "assumed_ratio": 0.05}, {}, 0.05),
        ({"malicious_ratio": 0.2}, {"num_malicious": 2}, 0.1),
        ({"assumed_ratio": 0.05}, {"assumed_ratio": 0.3}, 0.3),
    ],
)
def test_crowds_are_counted_in_what_the_rules_assume(federation, fixed, expected):
    setting = ContestSetting(key="x", dataset="digits", partition="iid", fixed=fixed, federation=federation)
    assert _assumed(setting) == expected
