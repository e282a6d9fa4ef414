"""Rules by name."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

import fedra
from fedra.rules import rule_family, rule_parameters

FAMILIES = {
    "quantity-ignorant": {
        *("uniform", "median", "trimmed-mean", "meamed", "krum", "multi-krum", "bulyan", "caf", "dnc"),
        "centered-clipping",
    },
    "quantity-aware": {"fedavg", "norm-bound", "rfa", "weighted-median", "ctma", "huber"},
    "quantity-robust": {"truncate", "fedra", "concord"},
}


def test_every_rule_is_there_in_its_family():
    found = {}
    for name, rule in fedra.RULES.items():
        assert rule.name == name
        found.setdefault(str(rule.family), set()).add(name)
    assert found == FAMILIES


def test_the_page_of_rules_has_each_of_them_in_its_family():
    page = (Path(__file__).parent.parent / "docs" / "rules.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `([a-z-]+)` \| ([a-z]+) \|", page, re.MULTILINE))
    assert listed == {name: str(rule.family).removeprefix("quantity-") for name, rule in fedra.RULES.items()}


@pytest.mark.parametrize("name", fedra.RULES)
def test_rules_are_frozen_keyword_only_and_documented(name):
    rule = fedra.RULES[name]
    assert dataclasses.is_dataclass(rule)
    assert rule.__doc__
    with pytest.raises(TypeError):
        rule(1)
    assert fedra.make_rule(name) == rule()
    assert fedra.make_rule(name, **rule_parameters(name)) == rule()


def test_parameters_reach_the_rule():
    assert fedra.make_rule("multi-krum", num_malicious=5) == fedra.MultiKrum(num_malicious=5)
    rule = fedra.make_rule("fedra", malicious_ratio=0.2, num_clients=100, gamma=0.5)
    assert (rule.malicious_ratio, rule.num_clients, rule.gamma) == (0.2, 100, 0.5)


def test_something_may_stand_before_a_rule():
    assert fedra.make_rule("median", before="nnm") == fedra.Preceded(
        rule=fedra.Median(), before=fedra.make_preaggregator("nnm")
    )
    bucketing = fedra.make_preaggregator("bucketing", size=4)
    expected = fedra.Preceded(rule=fedra.Krum(num_malicious=1), before=bucketing)
    assert fedra.make_rule("krum", before="bucketing size=4", num_malicious=1) == expected
    assert fedra.make_rule("krum", before=bucketing, num_malicious=1) == expected
    with pytest.raises(ValueError, match="unknown pre-aggregator 'nmn'; did you mean 'nnm'"):
        fedra.make_rule("median", before="nmn")
    with pytest.raises(TypeError, match="before=5; "):
        fedra.make_rule("median", before=5)


def test_the_family_is_that_of_the_parameters():
    assert rule_family("rfa", {"weights": "capped"}) is fedra.Family.ROBUST
    assert rule_family("median", {}, "bucketing") is fedra.Family.AWARE
    assert rule_family("median", {}, "nnm") is fedra.Family.IGNORANT
    assert rule_family("rfa", {"weights": "nonsense"}) is fedra.Family.AWARE


def test_an_unknown_name_lists_the_valid_ones():
    with pytest.raises(ValueError, match="unknown rule 'multikrum'; did you mean 'multi-krum'") as caught:
        fedra.make_rule("multikrum")
    assert all(name in str(caught.value) for name in fedra.RULES)
    with pytest.raises(ValueError, match="unknown rule 'zzz'; valid: fedavg"):
        fedra.make_rule("zzz")


def test_an_unknown_parameter_lists_the_valid_ones():
    with pytest.raises(TypeError, match="'fedra' has no parameter 'gama'; did you mean 'gamma'") as caught:
        fedra.make_rule("fedra", gama=0.1)
    assert "malicious_ratio" in str(caught.value)
    with pytest.raises(TypeError, match="'fedavg' has no parameter 'gamma'; valid: none"):
        fedra.make_rule("fedavg", gamma=0.1)


@pytest.mark.parametrize("name", [None, 5, ["fedra"]])
def test_a_name_that_is_no_text_is_refused(name):
    with pytest.raises(TypeError, match="give one of fedavg"):
        fedra.make_rule(name)


def test_an_own_rule_is_found_by_its_module_and_class():
    assert isinstance(fedra.make_rule("fedra.rules.means:FedAvg"), fedra.FedAvg)
    with pytest.raises(ValueError, match=r"not a subclass of fedra\.Rule"):
        fedra.make_rule("fedra:Verdict")


def test_a_rule_of_ones_own_is_one_method():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class First(fedra.Rule):
        name = "first"
        family = fedra.Family.IGNORANT

        def decide(self, cohort):
            weights = np.zeros(len(cohort))
            weights[0] = 1.0
            return fedra.Decision(weights=weights, kept=weights > 0)

    verdict = First()([np.array([np.nan]), np.array([2.0]), np.array([3.0])], [1, 1, 1])
    assert verdict.update.tolist() == [2.0]
    assert verdict.reasons[2] == "left out by first"


def test_a_rule_that_decides_nothing_is_told_so():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Silent(fedra.Rule):
        name = "silent"
        family = fedra.Family.IGNORANT

        def decide(self, cohort):
            return fedra.Decision()

    with pytest.raises(TypeError, match=r"Silent\.decide gave neither weights nor an update"):
        Silent()(np.eye(2), [1, 1])


def test_an_unfinished_own_rule_is_told(tmp_path, monkeypatch):
    (tmp_path / "unfinished_rules.py").write_text(
        "import fedra\nclass Bare(fedra.Rule):\n    def decide(self, cohort):\n        return fedra.Decision()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="is unfinished: make it a @dataclass"):
        fedra.make_rule("unfinished_rules:Bare")
