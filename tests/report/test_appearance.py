"""Names, colours and markers: one for each, and a user's own rules stand out."""

import re

import pytest

from fedra.report.appearance import DISPLAY_NAMES, display_name, rule_style, rule_styles
from fedra.rules import RULES


def test_every_rule_of_fedra_has_a_name():
    names = [display_name(rule) for rule in RULES]
    assert len(set(names)) == len(names)
    assert all(name[0].isupper() and "-" not in name for name in names if name not in DISPLAY_NAMES.values())
    assert (display_name("fedavg"), display_name("centered-clipping")) == ("FedAvg", "Centered clipping")
    assert display_name("my own") == "my own"
    assert display_name("fedavg", {"fedavg": "FedAdam"}) == "FedAdam"


def test_every_rule_has_its_own_colour():
    labels = [*RULES, "fedra, pooled", "fedra gamma 0", "fedra gamma 0.5"]
    colours = [style.colour for style in rule_styles((label, False) for label in labels)]
    assert len(set(colours)) == len(labels)
    assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in colours)
    assert colours[labels.index("fedra")] == rule_style("fedra").colour


def test_more_rules_than_colours_still_have_one_each():
    assert len(rule_styles((f"rule {number}", number % 2 == 0) for number in range(40))) == 40


def test_without_own_rules_fedra_stands_out():
    styles = dict(zip(RULES, rule_styles((rule, False) for rule in RULES), strict=True))
    assert [rule for rule, style in styles.items() if style.strong] == ["fedra"]
    assert not any(style.faint for style in styles.values())


@pytest.mark.parametrize("label", ["mine", "fedra", "fedavg"])
def test_an_own_rule_stands_out_and_all_others_recede(label):
    others = [rule for rule in RULES if rule != label]
    styles = rule_styles([*((rule, False) for rule in others), (label, True)])
    assert (styles[-1].strong, styles[-1].faint) == (True, False)
    assert all(style.faint and not style.strong for style in styles[:-1])
    assert styles[-1].colour not in {style.colour for style in styles[:-1]}


def test_several_own_rules_differ():
    styles = rule_styles([("a", True), ("b", True), ("fedra", False)])
    assert styles[0].colour != styles[1].colour
    assert styles[0].strong
    assert styles[1].strong
