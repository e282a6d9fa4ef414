"""What rules cost where nobody attacks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedra.assess import Federation, HonestRound, RealRounds, SyntheticRounds, clean_cost
from fedra.rules import RULES, FedAvg, MultiKrum, Uniform, make_rule

SILOS = [5200, 4100, 900, 800, 700, 300, 120, 60]


@pytest.fixture
def rounds() -> list[HonestRound]:
    made = SyntheticRounds(federation=Federation.of(SILOS), dimension=50)
    return [made.round(number) for number in range(20)]


def test_fedavg_costs_nothing(rounds: list[HonestRound]) -> None:
    cost = clean_cost(FedAvg(), rounds, None)
    assert cost.error == pytest.approx(1.0, rel=1e-5)
    assert cost.difference < 1e-5
    assert (cost.dropped, cost.data_dropped, cost.silenced, cost.without_update) == (0, 0, 0, 0)


def test_the_plain_mean_costs_what_theory_says() -> None:
    quantities = np.array(SILOS, dtype=float)
    made = SyntheticRounds(federation=Federation.of(SILOS), dimension=400)
    cost = clean_cost(Uniform(), [made.round(number) for number in range(40)], None)
    # Var of the plain mean over that of the mean by quantity: (sum 1/q / n^2) / (1 / sum q).
    wanted = math.sqrt(np.sum(1 / quantities) / len(quantities) ** 2 * quantities.sum())
    assert cost.error == pytest.approx(wanted, rel=0.03)
    assert cost.difference == pytest.approx(math.sqrt(wanted**2 - 1), rel=0.03)


def test_who_is_left_out_and_silenced(rounds: list[HonestRound]) -> None:
    rule = MultiKrum(num_malicious=1)
    cost = clean_cost(rule, rounds, None)
    verdicts = [rule(round_.updates, round_.quantities) for round_ in rounds]
    assert cost.dropped == pytest.approx(np.mean([1 - verdict.kept.mean() for verdict in verdicts]))
    data = [
        round_.quantities[~verdict.kept].sum() / round_.quantities.sum()
        for round_, verdict in zip(rounds, verdicts, strict=True)
    ]
    assert cost.data_dropped == pytest.approx(np.mean(data))
    silenced = [
        (verdict.weights <= 0) | (verdict.weights < 0.1 * round_.quantities / round_.quantities.sum())
        for round_, verdict in zip(rounds, verdicts, strict=True)
    ]
    assert cost.silenced == pytest.approx(np.mean(silenced))


@pytest.mark.parametrize("name", RULES)
def test_every_rule_has_a_cost(name: str, rounds: list[HonestRound]) -> None:
    cost = clean_cost(make_rule(name), rounds[:3], None)
    assert cost.error is not None
    assert math.isfinite(cost.error)
    assert 0 <= cost.dropped <= 1


def test_from_files_the_sampling_error_is_that_of_leaving_out_one() -> None:
    rng = np.random.default_rng(0)
    quantities = np.array([5.0, 7.0, 1.0, 3.0])
    real = RealRounds(updates=rng.normal(size=(4, 6)), quantities=quantities).round(0)
    means = [
        HonestRound(
            updates=np.delete(real.updates, place, axis=0), quantities=np.delete(real.quantities, place), truth=None
        ).mean
        for place in range(4)
    ]
    wanted = math.sqrt(3 / 4 * sum(float(np.sum((mean - real.mean) ** 2)) for mean in means))
    assert real.sampling_error() == pytest.approx(wanted)
    cost = clean_cost(Uniform(), [real], None)
    assert cost.error is None
    assert cost.difference == pytest.approx(np.linalg.norm(real.updates.mean(axis=0) - real.mean) / wanted)
