"""A user's rule that clips or takes signs must see updates: on whole models it would decide nothing, silently."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import ConfigRecord
from flwr.common import parameters_to_ndarrays
from flwr.server.strategy import FedAvg as LegacyFedAvg
from flwr.serverapp.strategy import FedAvg
from tests.flower.federation import arrays_of, federation, model, one_round, record, reply_to
from tests.flower.test_legacy import fit_result, play
from tests.flower.test_legacy import model as legacy_model
from tests.security.own_rules import Signs

from fedra import RULES, FedRA
from fedra.flower import Guard, RobustStrategy
from fedra.flower.legacy import Guard as LegacyGuard
from fedra.flower.legacy import RobustStrategy as LegacyRobustStrategy


@pytest.fixture
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, "signs", Signs)


def far(message):
    """A reply whose update has an entry of 5: no sign rule of this file keeps it."""
    arrays = {name: (a + 5).astype(a.dtype) for name, a in arrays_of(message.content["arrays"]).items()}
    return reply_to(message, arrays, {"loss": 0.5, "num-examples": 20})


@pytest.mark.usefixtures("_registered")
def test_a_registered_rule_steps_by_the_signs_of_updates():
    sent = record({name: array + 100 for name, array in model().items()})
    arrays, _ = one_round(RobustStrategy(rule="signs"), federation(6, node_2=far), sent)
    for name, array in arrays_of(arrays).items():
        np.testing.assert_allclose(array, sent[name].numpy() + 0.5, rtol=1e-6)


@pytest.mark.usefixtures("_registered")
def test_a_registered_rule_selects_by_updates_before_any_strategy():
    sent, reports = record({name: array + 100 for name, array in model().items()}), []
    arrays, _ = one_round(Guard(FedAvg(), rule="signs", on_round=reports.append), federation(6, node_2=far), sent)
    assert [client["kept"] for client in reports[0].clients] == [True, False, True, True, True, True]
    for name, array in arrays_of(arrays).items():
        assert 0 < np.mean(array - sent[name].numpy()) < 0.1


@pytest.mark.usefixtures("_registered")
def test_a_registered_rule_sees_updates_in_the_older_api():
    answers = [fit_result(place) for place in range(5)] + [fit_result(5, shift=50.0)]
    for strategy in (
        LegacyRobustStrategy(rule="signs", on_round=(reports := []).append),
        LegacyGuard(LegacyFedAvg(), rule="signs", on_round=reports.append),
    ):
        _, parameters, _ = play(strategy, answers)
        assert parameters is not None
        assert [client["kept"] for client in reports.pop().clients] == [True] * 5 + [False]
    _, parameters, _ = play(LegacyRobustStrategy(rule="signs"), answers)
    for before, after in zip(legacy_model()[:3], parameters_to_ndarrays(parameters)[:3], strict=True):
        np.testing.assert_allclose(after, before + 0.5, rtol=1e-5, atol=1e-6)


def test_kept_replies_of_a_rule_on_updates_reach_the_inner_strategy_bit_for_bit():
    def contents(messages) -> dict[int, dict[str, bytes]]:
        return {m.metadata.src_node_id: {n: a.data for n, a in m.content["arrays"].items()} for m in messages}

    class Watching(FedAvg):
        def aggregate_train(self, server_round, replies):
            self.seen = contents(replies)
            return super().aggregate_train(server_round, replies)

    grid, inner = federation(6, node_2=far), Watching()
    strategy = Guard(inner, rule=Signs())
    replies = grid.send_and_receive(strategy.configure_train(1, record(model()), ConfigRecord(), grid))
    sent_back = contents(replies)
    strategy.aggregate_train(1, replies)
    assert sorted(inner.seen) == [1, 3, 4, 5, 6]
    assert inner.seen == {node: sent_back[node] for node in inner.seen}


def test_a_subclass_of_a_rule_that_does_without_updates_has_to_state_it_again():
    class Own(FedRA):
        pass

    assert not FedRA.needs_updates
    assert Own.needs_updates
    assert Own().needs_updates
