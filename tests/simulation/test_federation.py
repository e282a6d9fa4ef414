from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from tests.reference import attacks as reference

from fedra.data import Dataset, load_dataset
from fedra.simulation import SimulationConfig
from fedra.simulation.federation import Federation, make_federation

ROUNDS = 400


@cache
def digits() -> Dataset:
    return load_dataset("digits")


def federation(**given: object) -> Federation:
    return make_federation(SimulationConfig.from_dict({"attack": "lie", **given}), digits())


@pytest.mark.parametrize(("num_sampled", "ratio"), [(50, 0.1), (30, 0.1), (20, 0.25), (7, 0.03), (140, 0.1)])
def test_a_fixed_round_has_exactly_its_share_of_malicious_clients(num_sampled: int, ratio: float) -> None:
    made = federation(setting="fixed", num_sampled=num_sampled, malicious_ratio=ratio, rule="fedavg")
    total = int(made.malicious.sum())
    assert total == math.floor(140 * ratio)
    for number in range(40):
        clients = made.sample(number)
        assert len(set(clients.tolist())) == num_sampled
        assert made.malicious[clients].sum() == math.ceil(num_sampled * total / 140)


def test_a_dynamic_round_is_hypergeometric() -> None:
    made = federation(setting="dynamic")
    rounds = [made.sample(number) for number in range(ROUNDS)]
    assert all(len(set(clients.tolist())) == 50 for clients in rounds)
    counts = np.array([made.malicious[clients].sum() for clients in rounds])
    mean, variance = 50 * 0.1, 50 * 0.1 * 0.9 * (140 - 50) / (140 - 1)
    assert abs(counts.mean() - mean) < 4 * math.sqrt(variance / ROUNDS)
    assert 0.7 * variance < counts.var(ddof=1) < 1.4 * variance
    drawn = np.bincount(np.concatenate(rounds), minlength=140)
    assert abs(drawn - ROUNDS * 50 / 140).max() < 5 * math.sqrt(ROUNDS * 50 / 140)


@pytest.mark.parametrize("setting", ["fixed", "dynamic"])
def test_rounds_are_drawn_by_seed_and_number_alone(setting: str) -> None:
    made = federation(setting=setting)
    later = [made.sample(number) for number in (5, 3)]
    again = federation(setting=setting)
    np.testing.assert_array_equal(again.sample(3), later[1])
    np.testing.assert_array_equal(again.sample(5), later[0])
    assert (later[0] != later[1]).any()
    assert (federation(setting=setting, seed=1).sample(3) != later[1]).any()


def test_who_is_malicious_depends_on_neither_attack_nor_claims_nor_rule() -> None:
    expected = federation().malicious
    for given in ({"attack": "optimize"}, {"alpha_q": 10}, {"rule": "krum"}, {"setting": "fixed"}):
        np.testing.assert_array_equal(federation(**given).malicious, expected)
    assert (federation(seed=1).malicious != expected).any()


def test_without_an_attack_nobody_is_malicious() -> None:
    made = federation(attack="none")
    assert not made.malicious.any()
    np.testing.assert_array_equal(made.claims, made.partition.quantities)


@pytest.mark.parametrize("alpha_q", [0, 1, 2, 5, 10])
def test_malicious_clients_all_claim_one_quantity_in_all_rounds(alpha_q: float) -> None:
    made = federation(alpha_q=alpha_q)
    true = made.partition.quantities
    assert set(made.claims[made.malicious]) == {reference.claimed_quantity(true[made.malicious], alpha_q)}
    np.testing.assert_array_equal(made.claims[~made.malicious], true[~made.malicious])


def test_with_statistics_of_the_round_sampled_malicious_clients_claim_by_their_own_quantities() -> None:
    made = federation(alpha_q=5, quantity_statistics="round")
    true = made.partition.quantities
    claims = set()
    for number in range(10):
        clients = made.sample(number)
        lying = made.malicious[clients]
        claimed = made.claims_of(clients)
        assert set(claimed[lying]) <= {reference.claimed_quantity(true[clients][lying], 5)}
        np.testing.assert_array_equal(claimed[~lying], true[clients][~lying])
        claims |= set(claimed[lying])
    assert len(claims) > 1


def test_without_an_enlarged_quantity_statistics_of_the_round_change_nothing() -> None:
    for given in ({}, {"claimed_quantity": 77}):
        made, same = federation(quantity_statistics="round", **given), federation(**given)
        clients = made.sample(3)
        np.testing.assert_array_equal(made.claims_of(clients), same.claims_of(clients))


def test_a_fixed_claim() -> None:
    made = federation(claimed_quantity=12345)
    assert set(made.claims[made.malicious]) == {12345.0}


def test_the_pool_is_of_malicious_clients_only() -> None:
    small = federation()
    np.testing.assert_array_equal(small.pool(0), np.flatnonzero(small.malicious))
    large = federation(malicious_ratio=0.45, rule="fedavg")
    pools = [large.pool(number) for number in range(20)]
    for pool in pools:
        assert len(set(pool.tolist())) == 50
        assert large.malicious[pool].all()
    assert (pools[0] != pools[1]).any()
    assert set(np.concatenate(pools)) == set(np.flatnonzero(large.malicious))


def test_the_cap_holds_data_and_quantity_together() -> None:
    made = federation(max_quantity=20)
    assert made.partition.quantities.max() == 20
    assert made.claims[~made.malicious].max() == 20
    assert max(len(made.partition.indices(client)) for client in range(made.num_clients)) == 20


def test_more_sampled_clients_than_there_are() -> None:
    message = r"num_sampled=141 but the federation has only 140 clients \(digits, partition seed 161\); sample fewer"
    with pytest.raises(ValueError, match=message):
        federation(num_sampled=141)


def test_clients_and_attackers_may_be_counted() -> None:
    made = federation(num_clients=10, quantities="lognormal sigma=1", num_sampled=10, num_malicious=2)
    assert made.num_clients == 10
    assert made.malicious.sum() == 2
    assert made.partition.quantities.sum() == len(digits().train_labels)
    assert federation(num_clients=10, num_sampled=10).malicious.sum() == 1
    none = federation(num_malicious=0, alpha_q=10)
    np.testing.assert_array_equal(none.claims, none.partition.quantities)
    assert federation(malicious_ratio=0.2, assumed_ratio=0.1).malicious.sum() == 28
    assert federation(num_clients=10, num_sampled=10, num_malicious=10, setting="fixed").malicious.all()


def test_more_attackers_than_clients() -> None:
    with pytest.raises(ValueError, match=r"num_malicious=141 but the federation has only 140 clients \(digits, "):
        federation(num_malicious=141)


def test_the_partition_has_a_seed_of_its_own() -> None:
    stated = federation(seed=1).partition
    np.testing.assert_array_equal(stated.offsets, federation(seed=2).partition.offsets)
    other = federation(partition_seed=5, num_sampled=10).partition
    assert len(other.offsets) != len(stated.offsets) or (other.offsets != stated.offsets).any()
