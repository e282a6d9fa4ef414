"""Rules that assume malicious clients: how many, when they refuse, and what they take from a federation."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.strategies import RULE_NAMES

import fedra
from fedra.rules import rule_parameters
from fedra.rules.malicious import AssumesMalicious, exact
from fedra.rules.mcne import malicious_total
from fedra.simulation import SimulationConfig

ASSUMING = [name for name in RULE_NAMES if issubclass(fedra.RULES[name], AssumesMalicious)]
RATIOS = st.sampled_from([0.0, 0.001, 0.05, 0.1, 0.25, 0.3, 0.49]) | st.floats(0, 0.5, exclude_max=True)
SIZES = st.none() | st.integers(1, 20) | st.integers(1, 10**6)
SETTINGS = st.sampled_from(["fixed", "dynamic"])


def test_the_rules_that_assume():
    assert ASSUMING == ["trimmed-mean", "meamed", "krum", "multi-krum", "bulyan", "caf", "dnc", "fedra", "concord"]


@pytest.mark.parametrize(
    ("name", "clients", "num_malicious", "condition"),
    [
        ("krum", 6, 2, "n > 2m\\+2 for m assumed"),
        ("multi-krum", 2, 0, "n > 2m\\+2 for m assumed"),
        ("bulyan", 6, 1, "n >= 4m\\+3 for m assumed"),
        ("fedra", 4, 1, "n > 2m\\+2 for m assumed"),
    ],
)
def test_too_many_assumed_names_n_and_m_and_the_condition(name, clients, num_malicious, condition):
    rule = fedra.make_rule(name, num_malicious=num_malicious)
    with pytest.raises(ValueError, match=condition) as caught:
        rule(np.zeros((clients, 2)), [1] * clients)
    assert f"n = {clients} and m = {num_malicious}" in str(caught.value)
    assert "clamp=True" in str(caught.value)


@pytest.mark.parametrize("name", ["krum", "multi-krum", "bulyan", "fedra"])
def test_clamping_takes_the_largest_m_that_fits(name):
    verdict = fedra.make_rule(name, num_malicious=50, clamp=True)(np.eye(11), [1] * 11)
    assert verdict.update is not None
    if name != "fedra":
        assert verdict.num_malicious == {"krum": 4, "multi-krum": 4, "bulyan": 2}[name]
    with pytest.raises(ValueError, match="sample more clients"):
        fedra.make_rule(name, clamp=True)(np.eye(2), [1] * 2)


@pytest.mark.parametrize("name", ASSUMING)
@given(st.integers(1, 200), st.integers(0, 120))
def test_the_condition_says_when_a_rule_refuses(name, clients, num_malicious):
    rule = fedra.make_rule(name, num_malicious=num_malicious)
    holds = eval(rule.condition.replace("m", "*m"), {"n": clients, "m": num_malicious})
    assert (rule.refusal(clients) == "") == holds
    assert (num_malicious <= rule.most_malicious(clients)) == holds
    clamped = dataclasses.replace(rule, clamp=True)
    most = max(0, rule.most_malicious(clients))
    assert clamped.assumed_malicious(clients) == min(num_malicious, most)


@pytest.mark.parametrize("name", ASSUMING)
@given(st.integers(1, 10**6), RATIOS)
def test_the_assumed_number_is_the_ceiling_of_the_exact_product(name, clients, ratio):
    assumed = fedra.make_rule(name, malicious_ratio=ratio).expected_malicious(clients)
    assert assumed - 1 < clients * exact(ratio) <= assumed


def parameters_of(draw, name):
    """Some of a rule's parameters, of those that a federation has something to say about and a few others."""
    choices = {
        "malicious_ratio": RATIOS,
        "num_clients": SIZES,
        "setting": SETTINGS,
        "num_malicious": st.none() | st.integers(0, 30),
        "clamp": st.booleans(),
        "estimator": st.sampled_from(["evidence", "mcne"]),
        "gamma": st.sampled_from([0.0, 0.5]),
        "iterate": st.booleans(),
        "bound": st.sampled_from([None, 2.0]),
        "iterations": st.integers(1, 5),
        "num_selected": st.none() | st.integers(1, 9),
    }
    valid = [parameter for parameter in rule_parameters(name) if parameter in choices]
    stated = draw(st.lists(st.sampled_from(valid), unique=True)) if valid else []
    return {parameter: draw(choices[parameter]) for parameter in stated}


def made(make):
    """Return what a function makes, or the kind of mistake it finds."""
    try:
        return make()
    except (TypeError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize("name", RULE_NAMES)
@settings(max_examples=200)
@given(st.data(), RATIOS, SIZES, SETTINGS)
def test_in_a_simulation_a_rule_takes_what_it_has_a_parameter_for_and_was_not_given(name, data, ratio, size, setting):
    parameters = parameters_of(data.draw, name)
    known = {"malicious_ratio": ratio, "num_clients": size, "setting": setting}
    taken = {parameter: value for parameter, value in known.items() if parameter in rule_parameters(name)}
    expected = made(lambda: fedra.make_rule(name, **{**taken, **parameters}))
    # Not a whole configuration: that would refuse rules for which its rounds are too small.
    config = SimpleNamespace(rule=name, rule_params=parameters, before=None, told_ratio=ratio, setting=setting)
    assert made(lambda: SimulationConfig.make_rule(config, size)) == expected


@pytest.mark.parametrize("ratio", [0.0, 0.001, 0.2])
def test_a_ratio_stated_for_a_simulation_counts_with_the_federations_size(ratio):
    """Unlike on a platform, where less than one malicious client of N leaves N unknown."""
    config = SimulationConfig(rule="fedra", rule_params={"malicious_ratio": ratio}, malicious_ratio=0.1)
    assert config.make_rule(100) == fedra.FedRA(malicious_ratio=ratio, num_clients=100, setting="dynamic")


@pytest.mark.parametrize("name", RULE_NAMES)
@given(st.data(), st.integers(0, 30) | st.integers(1, 10**6))
def test_on_a_platform_only_the_size_is_known(name, data, size):
    rule = made(lambda: fedra.make_rule(name, **parameters_of(data.draw, name)))
    assume(not isinstance(rule, type))
    found = rule.for_federation(num_clients=size)
    unknown = getattr(rule, "num_clients", size) is None
    if unknown and malicious_total(size, rule.malicious_ratio) > 0:
        assert found == dataclasses.replace(rule, num_clients=size)
        assert found.num_clients == size
    else:
        assert found is rule


@pytest.mark.parametrize("name", ASSUMING)
def test_what_is_not_known_changes_nothing(name):
    rule = fedra.make_rule(name, malicious_ratio=0.2)
    assert rule.for_federation() is rule
    assert rule.for_federation(malicious_ratio=0.3).malicious_ratio == 0.3
    assert rule.for_federation(malicious_ratio=0.3).clamp == rule.clamp


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"malicious_ratio": 0.5}, "malicious_ratio=0.5; give a number from 0"),
        ({"num_clients": -1, "malicious_ratio": 0.1}, "num_clients=-1; give a whole number of at least 1"),
        ({"setting": "static"}, "setting='static'; valid: dynamic, fixed"),
    ],
)
def test_a_federation_that_cannot_be_is_refused(known, message):
    with pytest.raises(ValueError, match=message):
        fedra.FedRA().for_federation(**known)
