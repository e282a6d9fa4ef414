"""Rounds of nobody, of a few, and of too few once screening is done."""

import numpy as np
import pytest
from tests.strategies import RULE_NAMES, make_round, steady_rule

import fedra

every_rule = pytest.mark.parametrize("name", RULE_NAMES)
LEAST = {
    "trimmed-mean": 3,
    "meamed": 3,
    "caf": 3,
    "dnc": 3,
    "krum": 5,
    "multi-krum": 5,
    "bulyan": 7,
    "fedra": 5,
    "concord": 5,
}
SCORED = {"krum", "multi-krum", "caf", "dnc", "ctma", "fedra", "concord"}
WEIGHTED = {*SCORED, "fedavg", "uniform", "norm-bound", "rfa", "huber"}


def assert_no_update(verdict, name, count):
    assert verdict.update is None
    assert verdict.note
    assert not verdict.kept.any()
    assert len(verdict) == len(verdict.reasons) == len(verdict.to_records()) == count
    assert all(verdict.reasons)
    assert verdict.num_malicious is None
    if name in WEIGHTED:
        assert verdict.weights.tolist() == [0.0] * count
    else:
        assert verdict.weights is None
    if name in SCORED:
        assert np.isnan(verdict.scores).all()
        assert len(verdict.scores) == count
    else:
        assert verdict.scores is None
    assert "no update" in str(verdict)


@every_rule
@pytest.mark.parametrize("nobody", [[], (), np.empty((0, 5)), np.empty((0, 5), dtype=np.float32)])
def test_nobody(name, nobody):
    verdict = fedra.make_rule(name)(nobody, [])
    assert_no_update(verdict, name, 0)
    assert "nobody" in verdict.note


@every_rule
@pytest.mark.parametrize("clients", [1, 2, 3, 4, 5, 6, 7])
def test_a_few_clients_are_enough_or_a_clear_error(name, clients):
    cohort = make_round(clients, clients, 3)
    rule = steady_rule(name)
    if clients >= LEAST.get(name, 1):
        assert np.isfinite(rule(cohort.updates, cohort.quantities).update).all()
    else:
        complaint = f"{name} needs n .* for m assumed malicious clients, but has n = {clients} and m = 1; sample more"
        with pytest.raises(ValueError, match=complaint):
            rule(cohort.updates, cohort.quantities)


@pytest.mark.parametrize("name", ["krum", "multi-krum", "bulyan", "fedra"])
def test_three_clients_are_enough_for_no_malicious_one(name):
    cohort = make_round(0, 3, 4)
    verdict = fedra.make_rule(name, num_malicious=0)(cohort.updates, cohort.quantities)
    assert np.isfinite(verdict.update).all()


@every_rule
def test_everyone_rejected(name):
    verdict = fedra.make_rule(name)(np.full((9, 4), np.nan), [1] * 9)
    assert_no_update(verdict, name, 9)
    assert "nobody was left" in verdict.note
    assert all("not finite" in reason for reason in verdict.reasons)


@every_rule
def test_everyone_unreadable(name):
    verdict = fedra.make_rule(name)([None, "x", object(), {}, 5, True, b"", [[]], ...], [1] * 9)
    assert_no_update(verdict, name, 9)


@pytest.mark.parametrize("name", LEAST)
def test_too_few_after_screening_is_a_verdict_and_not_an_error(name):
    clients = LEAST[name]
    cohort = make_round(1, clients, 4)
    cohort.updates[0, 2] = np.inf
    verdict = fedra.make_rule(name)(cohort.updates, cohort.quantities)
    assert_no_update(verdict, name, clients)
    assert f"n = {clients - 1} and m = 1" in verdict.note
    assert "after screening" in verdict.note
    assert "not finite" in verdict.reasons[0]
    assert all("no update" in reason for reason in verdict.reasons[1:])


def test_too_few_for_the_number_to_select_after_screening():
    cohort = make_round(1, 6, 4)
    cohort.updates[0] = np.nan
    verdict = fedra.MultiKrum(num_malicious=0, num_selected=6)(cohort.updates, cohort.quantities)
    assert_no_update(verdict, "multi-krum", 6)


@every_rule
def test_updates_without_coordinates(name):
    verdict = fedra.make_rule(name)(np.empty((9, 0)), range(1, 10))
    assert verdict.update.shape == (0,)


def test_one_client_is_its_own_result():
    for name in (
        "fedavg",
        "uniform",
        "median",
        "norm-bound",
        "rfa",
        "weighted-median",
        "ctma",
        "huber",
        "centered-clipping",
        "truncate",
    ):
        verdict = fedra.make_rule(name)(np.array([[1.5, -2.0]]), [7])
        assert verdict.update.tolist() == [1.5, -2.0]
