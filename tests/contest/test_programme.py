"""The programme is one that can be run: rules, attacks and settings that there are."""

from fedra.attacks import ATTACKS
from fedra.contest import read_programme
from fedra.contest.programme import rule_label
from fedra.data import DATASETS
from fedra.rules import RULES

PROGRAMME = read_programme()


def test_rules_attacks_and_data_sets_are_there():
    for entry in PROGRAMME.rules:
        assert (entry if isinstance(entry, str) else entry["rule"]) in RULES
    assert set(PROGRAMME.attacks) <= set(ATTACKS)
    assert set(PROGRAMME.broken_attacks) | PROGRAMME.own_claims <= set(PROGRAMME.attacks)
    assert {setting.dataset for setting in PROGRAMME.settings.values()} <= set(DATASETS)
    assert set(PROGRAMME.broken) <= set(PROGRAMME.settings)


def test_every_name_is_of_something_and_every_label_stands_once():
    labels = [rule_label(entry) for entry in PROGRAMME.rules]
    assert len(set(labels)) == len(labels) >= 10
    assert set(PROGRAMME.names) <= {*labels, *PROGRAMME.attacks}
    # Labels are chosen by, with separated by commas.
    assert not any("," in label for label in labels)


def test_the_usual_settings_are_those_that_are_not_optional():
    assert PROGRAMME.usual_settings == ("mnist-iid", "mnist-non-iid", "cifar10-iid", "digits-silos")
    assert PROGRAMME.settings["huffpost-iid"].optional


def test_a_rule_without_a_label_is_called_as_a_grid_calls_it():
    assert rule_label("rfa") == "rfa"
    assert rule_label({"rule": "median", "before": "nnm"}) == "nnm+median"
    assert rule_label({"rule": "median", "before": "nnm", "label": "both"}) == "both"
