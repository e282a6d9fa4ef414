"""Everybody is asked in every round (n = N), and more lie than was assumed; or nobody does."""

from itertools import product

import numpy as np
import pytest
from flwr.serverapp.strategy import FedAvg
from tests.flower.federation import MemoryGrid, arrays_of, honest, model, one_round, record, reply_to
from tests.security.synthetic import KINDS_OF_QUANTITIES, honest_clients, judged

import fedra
from fedra.flower import Guard


def reversing(message):
    """Take the honest step backwards, and claim a billion samples."""
    arrays = {name: array - np.float32(0.01) for name, array in arrays_of(message.content["arrays"]).items()}
    return reply_to(message, arrays, {"loss": 0.5, "num-examples": 10**9})


@pytest.mark.parametrize("clients", [10, 12, 13, 20, 50])
@pytest.mark.parametrize("attackers", [2, 3])
@pytest.mark.parametrize("known", ["everybody", "two more"])
def test_more_attackers_than_assumed_get_nothing(clients, attackers, known):
    rule = fedra.FedRA(malicious_ratio=0.1, num_clients=clients + 2 * (known == "two more"))
    for seed in range(10):
        rng = np.random.default_rng([seed, clients])
        those = honest_clients(rng, clients - attackers)
        reversed_mean = -np.tile(those.updates.mean(axis=0), (attackers, 1))
        verdict, weight, cosine = judged(rule, those, reversed_mean, np.full(attackers, 1e9))
        assert weight == 0
        assert cosine > 0.8
        assert verdict.kept[: clients - attackers].all()


@pytest.mark.parametrize("attackers", [2, 3])
def test_a_guarded_federation_of_ten_goes_forward(attackers):
    grid = MemoryGrid({node: honest(node, 20 + 10 * node) if node > attackers else reversing for node in range(1, 11)})
    reports = []
    strategy = Guard(FedAvg(fraction_train=1.0), rule=fedra.FedRA(malicious_ratio=0.1), on_round=reports.append)
    start = record(model())
    arrays = start
    for number in range(1, 6):
        arrays, _ = one_round(strategy, grid, arrays, number)
    for name, array in arrays_of(arrays).items():
        moved = array - arrays_of(start)[name]
        assert np.all(moved > 0.04), name
    for report in reports:
        assert [client["kept"] for client in report.clients] == [
            client["client"] > attackers for client in report.clients
        ]


@pytest.mark.parametrize("clients", [5, 7, 10, 13, 20, 50, 100])
@pytest.mark.parametrize("quantities", KINDS_OF_QUANTITIES)
def test_where_nobody_lies_nearly_everybody_is_kept(clients, quantities):
    dropped, lost = [], []
    for seed in range(40):
        those = honest_clients(np.random.default_rng([seed, clients]), clients, quantities)
        verdict = fedra.FedRA(malicious_ratio=0.1, num_clients=clients)(those.updates, those.quantities)
        dropped.append(1 - verdict.kept.mean())
        lost.append(1 - those.quantities[verdict.kept].sum() / those.quantities.sum())
    assert np.mean(dropped) <= 0.05
    assert np.mean(lost) <= 0.05


def test_no_honest_client_is_dropped_for_ever():
    """Clients whose quantities differ, the same ones in every round."""
    rng = np.random.default_rng(0)
    quantities = np.floor(np.exp(rng.uniform(0, 6, 13)))
    dropped = np.zeros(13)
    for _ in range(50):
        updates = 0.3 + rng.standard_normal((13, 300)) / np.sqrt(quantities)[:, np.newaxis]
        dropped += ~fedra.FedRA(malicious_ratio=0.1, num_clients=13)(updates, quantities).kept
    assert dropped.max() <= 5


def test_weights_follow_the_quantities_where_nobody_lies():
    for clients, seed in product((20, 50), range(10)):
        those = honest_clients(np.random.default_rng([seed, clients]), clients)
        weights = fedra.FedRA()(those.updates, those.quantities).weights
        assert np.abs(weights - those.quantities / those.quantities.sum()).sum() < 0.1
