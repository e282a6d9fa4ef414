"""Clients who are kept, and try to weigh more in the inner strategy than the rule lets them."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.common import parameters_to_ndarrays
from flwr.server.strategy import FedAvg as LegacyFedAvg
from flwr.serverapp.strategy import FedAvg, FedMedian
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flower.federation import MemoryGrid, arrays_of, model, moved, one_round, record, reply_to
from tests.flower.test_legacy import fit_result, play
from tests.security.own_rules import CappedPick, GivenWeights, KeepAll

from fedra import RULES, make_rule
from fedra.flower import Guard
from fedra.flower.legacy import Guard as LegacyGuard

LARGEST = 2**53
SELECTING = {name: make_rule(name) for name, kind in RULES.items() if kind.scored}
SELECTING |= {"capped": CappedPick(), "all": KeepAll(), "uneven": GivenWeights(weights=(3.0, 1e-3, 0.0, 7.5))}


class Watching(FedAvg):
    """FedAvg that remembers what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: dict[int, object] = {}

    def aggregate_train(self, server_round, replies):
        replies = list(replies)
        self.claims = {m.metadata.src_node_id: m.content["metrics"]["num-examples"] for m in replies}
        return super().aggregate_train(server_round, replies)


def clients(claims: list[float]) -> MemoryGrid:
    def make(node: int):
        def client(message):
            arrays = moved(message.content["arrays"], np.random.default_rng(node))
            return reply_to(message, arrays, {"loss": float(node), "num-examples": claims[node - 1]})

        return client

    return MemoryGrid({node: make(node) for node in range(1, len(claims) + 1)})


def replies_by_node(count: int, sent) -> dict[int, dict[str, np.ndarray]]:
    return {node: moved(sent, np.random.default_rng(node)) for node in range(1, count + 1)}


def test_a_kept_client_that_claims_2_to_the_53_does_not_become_the_result():
    reports, inner, sent = [], Watching(), record(model())
    strategy = Guard(inner, rule=make_rule("multi-krum", num_selected=10), on_round=reports.append)
    arrays, metrics = one_round(strategy, clients([LARGEST, *[20] * 9]), sent)
    assert set(inner.claims.values()) == {20}
    assert all(type(claim) is int for claim in inner.claims.values())
    assert [client["weight"] for client in reports[0].clients] == pytest.approx([0.1] * 10)
    for name, array in arrays_of(arrays).items():
        mean = np.mean([reply[name] for reply in replies_by_node(10, sent).values()], axis=0)
        np.testing.assert_allclose(array, mean, rtol=1e-5)
    assert metrics["loss"] == pytest.approx(5.5)


def test_a_kept_client_that_claims_2_to_the_53_does_not_become_the_result_of_the_older_api():
    reports = []
    strategy = LegacyGuard(LegacyFedAvg(), rule=make_rule("multi-krum", num_selected=8), on_round=reports.append)
    answers = [fit_result(0, claim=LARGEST), *(fit_result(place) for place in range(1, 8))]
    _, parameters, _ = play(strategy, answers)
    assert [client["weight"] for client in reports[0].clients] == pytest.approx([1 / 8] * 8)
    arrays = [parameters_to_ndarrays(answer.parameters) for answer in answers]
    for place, array in enumerate(parameters_to_ndarrays(parameters)[:3]):
        np.testing.assert_allclose(array, np.mean([parts[place] for parts in arrays], axis=0), rtol=1e-5)


CLAIMS = st.lists(st.sampled_from([1, 2, 7, 20, 33, 1000, 10**6, 10**9, LARGEST, 1.5, 2.0**40]), min_size=6, max_size=9)


@settings(max_examples=40, deadline=None)
@given(claims=CLAIMS, name=st.sampled_from(sorted(SELECTING)))
def test_the_weight_on_record_is_the_weight_in_the_result(claims, name):
    """Whatever clients claim, and whatever the rule makes of it."""
    reports, sent = [], record(model())
    strategy = Guard(FedAvg(), rule=SELECTING[name], on_round=reports.append)
    arrays, metrics = one_round(strategy, clients(claims), sent)
    weights = {client["client"]: client["weight"] for client in reports[0].clients}
    if arrays is None:
        assert reports[0].skipped
        return
    assert sum(weights.values()) == pytest.approx(1.0)
    assert metrics["loss"] == pytest.approx(sum(weight * node for node, weight in weights.items()), rel=1e-6)
    replies = replies_by_node(len(claims), sent)
    for key, array in arrays_of(arrays).items():
        expected = sum(weight * replies[node][key].astype(float) for node, weight in weights.items())
        np.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(claims=CLAIMS, name=st.sampled_from(sorted(SELECTING)))
def test_the_weight_on_record_is_the_weight_in_the_result_of_the_older_api(claims, name):
    reports, given_on = [], []

    class Watched(LegacyFedAvg):
        def aggregate_fit(self, server_round, results, failures):
            given_on.extend(answer.num_examples for _, answer in results)
            return super().aggregate_fit(server_round, results, failures)

    answers = [fit_result(place, claim=claim) for place, claim in enumerate(claims)]
    _, parameters, _ = play(LegacyGuard(Watched(), rule=SELECTING[name], on_round=reports.append), answers)
    if parameters is None:
        assert reports[0].skipped
        return
    weights = [client["weight"] for client in reports[0].clients]
    assert given_on == [n for n in given_on if n >= 0 and n <= LARGEST]
    sent_on = [answer.num_examples for answer, w in zip(answers, weights, strict=True) if w > 0]
    assert all(type(number) is int for number in given_on) or given_on == sent_on
    arrays = [parameters_to_ndarrays(answer.parameters) for answer in answers]
    for place, array in enumerate(parameters_to_ndarrays(parameters)[:3]):
        expected = sum(weight * parts[place].astype(float) for weight, parts in zip(weights, arrays, strict=True))
        np.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(claims=st.lists(st.integers(1, LARGEST), min_size=6, max_size=9), cap=st.floats(1, 1e9))
def test_the_rules_weights_are_those_on_record(claims, cap):
    """Rounding to whole numbers of examples does not change what the rule decided."""
    reports = []
    one_round(Guard(FedAvg(), rule=CappedPick(cap=cap), on_round=reports.append), clients(claims), record(model()))
    capped = np.minimum(np.asarray(claims[1:], dtype=float), cap)
    weights = [client["weight"] for client in reports[0].clients]
    np.testing.assert_allclose(weights, [0.0, *(capped / capped.sum())], rtol=1e-5, atol=1e-12)


def test_claims_that_a_rule_weighs_by_reach_the_inner_strategy_as_they_are():
    inner, claims = Watching(), [3, 50, 20, 20, 41, 7, 20, 20]
    one_round(Guard(inner, rule="fedra"), clients(claims), record(model()))
    assert inner.claims
    assert all(claims[node - 1] == claim for node, claim in inner.claims.items())


def test_a_claim_that_fedra_keeps_and_cuts_is_cut_in_the_inner_strategy():
    """Its update speaks for far less than it claims, though not so far that it is left out."""
    reports, inner, claims = [], Watching(), [300, *[20] * 8]
    one_round(Guard(inner, rule="fedra", on_round=reports.append), clients(claims), record(model()))
    weights = {client["client"]: client["weight"] for client in reports[0].clients}
    assert 0 < weights[1] < 0.5 * 300 / sum(claims)
    handed_on = {node: claim / sum(inner.claims.values()) for node, claim in inner.claims.items()}
    assert handed_on == pytest.approx({node: weight for node, weight in weights.items() if weight > 0})


def test_a_claim_that_fedra_keeps_and_cuts_is_cut_in_the_older_api():
    reports, given_on = [], []

    class Watched(LegacyFedAvg):
        def aggregate_fit(self, server_round, results, failures):
            given_on.extend(answer.num_examples for _, answer in results)
            return super().aggregate_fit(server_round, results, failures)

    answers = [fit_result(0, claim=300), *(fit_result(place) for place in range(1, 9))]
    play(LegacyGuard(Watched(), rule="fedra", on_round=reports.append), answers)
    weights = [client["weight"] for client in reports[0].clients if client["kept"]]
    assert reports[0].clients[0]["kept"]
    assert weights[0] < 0.5 * 300 / sum(answer.num_examples for answer in answers)
    assert [number / sum(given_on) for number in given_on] == pytest.approx(weights)


@pytest.mark.parametrize("claims", [[1, 1, 1, 1, 1, 1.5], [2.5] * 6, [7.25, 20, 20, 20, 20, 33.5]])
def test_claims_that_are_no_whole_numbers_keep_their_weight_in_the_older_api(claims):
    """Examples are whole numbers there: 1.5 must not become 2."""
    given_on = []

    class Watched(LegacyFedAvg):
        def aggregate_fit(self, server_round, results, failures):
            given_on.extend(answer.num_examples for _, answer in results)
            return super().aggregate_fit(server_round, results, failures)

    play(LegacyGuard(Watched(), rule=KeepAll()), [fit_result(place, claim=claim) for place, claim in enumerate(claims)])
    assert all(type(number) is int for number in given_on)
    assert [number / sum(given_on) for number in given_on] == pytest.approx(np.asarray(claims) / sum(claims))


def test_strategies_that_do_not_look_at_claims_go_on_as_before():
    sent = record(model())
    arrays, _ = one_round(Guard(FedMedian(), rule="multi-krum"), clients([LARGEST, *[20] * 8]), sent)
    assert arrays is not None


@pytest.mark.parametrize("weights", [(np.nan,), (-1.0, 2.0), (0.0,), (np.inf, 1.0)])
def test_weights_that_are_none_skip_the_round(weights):
    reports = []
    strategy = Guard(FedAvg(), rule=GivenWeights(weights=weights), on_round=reports.append)
    arrays, metrics = one_round(strategy, clients([20] * 6), record(model()))
    assert arrays is None
    assert metrics["fedra-skipped"] == 1
    assert "given-weights" in reports[0].note
