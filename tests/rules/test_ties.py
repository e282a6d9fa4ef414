"""Scores that tie at FedRA's cut: by index as in the paper, or left out together."""

from __future__ import annotations

import numpy as np
import pytest

import fedra


def colluding_round(colluders: int) -> tuple[np.ndarray, np.ndarray]:
    """Nine honest clients and some that all send the same, far away, with the same claim."""
    rng = np.random.default_rng(0)
    honest = rng.normal(0, 1, (9, 300))
    lie = np.tile(rng.normal(20, 1, 300), (colluders, 1))
    return np.concatenate([lie, honest]), np.concatenate([np.full(colluders, 50), np.full(9, 5)])


def test_by_index_one_of_three_colluders_gets_in():
    updates, quantities = colluding_round(3)
    verdict = fedra.FedRA.as_printed(setting="fixed", num_malicious=1)(updates, quantities)
    assert verdict.kept[:3].tolist() == [True, False, False]


@pytest.mark.parametrize("setting", ["fixed", "dynamic"])
def test_dropping_ties_leaves_out_all_colluders(setting):
    updates, quantities = colluding_round(3)
    verdict = fedra.FedRA(setting=setting, num_malicious=1, drop_ties=True)(updates, quantities)
    assert not verdict.kept[:3].any()
    assert verdict.kept[3:].sum() >= 8
    assert np.abs(verdict.update).max() < 5


def test_dropping_ties_changes_nothing_without_ties():
    rng = np.random.default_rng(1)
    updates, quantities = rng.normal(0, 1, (12, 50)), rng.integers(1, 100, 12)
    plain = fedra.FedRA(setting="fixed", drop_ties=False)(updates, quantities)
    dropping = fedra.FedRA(setting="fixed", drop_ties=True)(updates, quantities)
    np.testing.assert_array_equal(plain.kept, dropping.kept)
    np.testing.assert_array_equal(plain.update, dropping.update)


def test_where_all_tie_somebody_is_kept():
    verdict = fedra.FedRA(setting="fixed", drop_ties=True)(np.ones((12, 5)), np.ones(12))
    assert verdict.kept.sum() == 12 - verdict.num_malicious - 1
    np.testing.assert_array_equal(verdict.update, np.ones(5))


def test_as_printed_is_the_papers_method_with_other_parameters_as_given():
    rule = fedra.FedRA.as_printed(gamma=0.5, num_clients=100)
    assert (rule.variance, rule.drop_ties, rule.gamma, rule.num_clients) == ("separate", False, 0.5, 100)
    assert fedra.FedRA() == fedra.FedRA(variance="pooled-root", drop_ties=True, gamma=0.1)


def test_a_switch_is_a_switch():
    with pytest.raises(TypeError, match="drop_ties='no'"):
        fedra.FedRA(drop_ties="no")
