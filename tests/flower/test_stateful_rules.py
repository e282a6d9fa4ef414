"""What a rule remembers in the strategies of both APIs: carried on, saved, restored bit for bit, not moved by a round
that was not used.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.flower.both import APIS, STRATEGIES, Answer, federation, make, model, same
from tests.server.stateful_rules import Diary, OtherDiary, Spoilt

from fedra import CenteredClipping
from fedra.optimizers import SGD
from fedra.server.state import load_state

CASES = {
    f"{rule.name} in {name}": (api, kind, rule)
    for rule in (CenteredClipping(), CenteredClipping(radius=0.01, iterations=1), Diary())
    for name, (api, kind) in STRATEGIES.items()
    if kind == "robust" or rule.scored
}
CLIENTS = federation(8)


def memory(strategy) -> dict[str, np.ndarray]:
    return dict(strategy.server.defence.rule_state or {})


def same_memory(one, other) -> bool:
    return list(one) == list(other) and same(list(one.values()), list(other.values()))


@pytest.mark.parametrize(("api", "kind", "rule"), CASES.values(), ids=CASES)
def test_memory_is_carried_saved_and_restored_bit_for_bit(tmp_path, api, kind, rule):
    path = tmp_path / "state.npz"
    whole = make(api, kind, rule=rule)
    through = api.run(whole, CLIENTS, 5)
    for rounds in (2, 3, 3, 5):
        strategy = make(api, kind, rule=rule, state=path)
        resumed = api.run(strategy, CLIENTS, rounds)
        saved = load_state(path, strategy.server.writer)
        assert (saved.round, saved.rule_name) == (rounds, rule.name)
        assert same_memory(saved.rule, memory(strategy))
        assert same(list(saved.arrays.values()), resumed)
    assert same(resumed, through)
    assert same_memory(memory(strategy), memory(whole))
    assert memory(whole)


@pytest.mark.parametrize(("api", "kind", "rule"), CASES.values(), ids=CASES)
def test_memory_matters(tmp_path, api, kind, rule):
    """A server that forgets comes to another model: else the test above could not fail."""
    path = tmp_path / "state.npz"
    through = api.run(make(api, kind, rule=rule), CLIENTS, 3)
    api.run(make(api, kind, rule=rule, state=path), CLIENTS, 2)
    strategy = make(api, kind, rule=rule, state=path)
    recall = strategy.server.defence.recall
    strategy.server.defence.recall = lambda state, dimension, **owner: recall({}, dimension, **owner)
    assert not same(api.run(strategy, CLIENTS, 3), through)


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
def test_both_apis_remember_alike(api):
    one, other = make(APIS["message"], "robust", rule=Diary()), make(api, "robust", rule=Diary())
    APIS["message"].run(one, CLIENTS, 3)
    api.run(other, CLIENTS, 3)
    assert same_memory(memory(one), memory(other))
    assert len(memory(other)["sizes"]) == 3


@pytest.mark.parametrize(("api", "kind"), STRATEGIES.values(), ids=STRATEGIES)
def test_memory_that_would_not_be_finite_costs_the_round_only(tmp_path, api, kind):
    path, records, models = tmp_path / "state.npz", [], []
    strategy = make(api, kind, rule=Spoilt(), on_round=records.append, state=path)
    api.run(strategy, CLIENTS, 2, evaluate=lambda number, arrays: models.append(arrays))
    assert [record.note for record in records] == ["", "the rule would remember values that are not finite"]
    assert records[1].kept == 0
    assert same(models[1], models[2])
    assert memory(strategy)["sizes"].tolist() == [8]
    assert load_state(path, strategy.server.writer).rule["sizes"].tolist() == [8]


def shouting(number, server_round, sent) -> Answer:
    """Answers from the second round on are so large that a step of any length goes beyond float32."""
    size = 0.01 if server_round == 1 else 1e30
    return Answer([np.asarray(a + size, dtype=a.dtype) if a.dtype.kind == "f" else a for a in sent])


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
@pytest.mark.parametrize("rule", [CenteredClipping(), Diary()], ids=["centered-clipping", "growing"])
def test_a_model_that_is_not_finite_does_not_move_the_memory(tmp_path, api, rule):
    records, clients = [], dict.fromkeys(range(1, 9), shouting)
    strategy = make(
        api, "robust", rule=rule, server_optimizer=SGD(lr=1e15), on_round=records.append, state=tmp_path / "state.npz"
    )
    api.run(strategy, clients, 1)
    before = memory(strategy)
    again = make(
        api, "robust", rule=rule, server_optimizer=SGD(lr=1e15), on_round=records.append, state=tmp_path / "state.npz"
    )
    api.run(again, clients, 2)
    assert [bool(record.note) for record in records] == [False, True]
    assert "not finite" in records[1].note
    assert before
    assert same_memory(memory(again), before)


def failing(api, how: str):
    class Failing(api.flower.FedAvg):
        """Fails in the second round."""

        def aggregate_train(self, server_round, replies):
            result = super().aggregate_train(server_round, replies)
            return result if server_round != 2 else self._fail(result)

        def aggregate_fit(self, server_round, results, failures):
            result = super().aggregate_fit(server_round, results, failures)
            return result if server_round != 2 else self._fail(result)

        def _fail(self, result):
            if how == "raises":
                raise ZeroDivisionError("no")
            if how == "no model":
                return None, result[1]
            arrays, metrics = result
            if api.name == "older":
                from flwr.common import ndarrays_to_parameters

                return ndarrays_to_parameters([np.full(a.shape, np.nan, np.float32) for a in model()]), metrics
            from flwr.app import Array, ArrayRecord

            return ArrayRecord({name: Array(np.full(a.shape, np.nan)) for name, a in arrays.items()}), metrics

    return api.fedavg(Failing, fraction_evaluate=0.0)


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
@pytest.mark.parametrize("how", ["raises", "no model", "not finite"])
def test_a_round_that_the_inner_strategy_loses_does_not_move_the_memory(tmp_path, api, how):
    records: list = []
    path = tmp_path / "state.npz"
    strategy = make(api, "guard", inner=failing(api, how), rule=Diary(), on_round=records.append, state=path)
    api.run(strategy, CLIENTS, 2)
    assert [bool(record.note) for record in records] == [False, True]
    assert len(memory(strategy)["sizes"]) == 1
    assert len(load_state(path, strategy.server.writer).rule["sizes"]) == 1
    again = make(api, "guard", inner=failing(api, how), rule=Diary(), state=path)
    api.run(again, CLIENTS, 3)
    assert len(memory(again)["sizes"]) == 2


@pytest.mark.parametrize(("api", "kind"), STRATEGIES.values(), ids=STRATEGIES)
def test_a_round_that_is_skipped_does_not_move_the_memory(api, kind):
    def silent(number, server_round, sent) -> Answer:
        return Answer(sent, claim=-1)

    strategy = make(api, kind, rule=Diary())
    api.run(strategy, dict.fromkeys(range(1, 9), silent), 2)
    assert memory(strategy) == {}


@pytest.mark.parametrize(("api", "kind"), STRATEGIES.values(), ids=STRATEGIES)
def test_another_rules_memory_is_refused_and_a_stateless_rule_needs_none(tmp_path, api, kind):
    path = tmp_path / "state.npz"
    api.run(make(api, kind, rule=Diary(), state=path), CLIENTS, 2)
    with pytest.raises(ValueError, match="the memory of rule 'diary', this is 'other-diary'") as error:
        api.run(make(api, kind, rule=OtherDiary(), state=path), CLIENTS, 3)
    assert str(path) in str(error.value)
    if kind == "robust":
        with pytest.raises(ValueError, match="the memory of rule 'diary', this is 'centered-clipping'"):
            api.run(make(api, kind, rule="centered-clipping", state=path), CLIENTS, 3)
    strategy = make(api, kind, rule="fedra", state=path)
    api.run(strategy, CLIENTS, 3)
    assert load_state(path, strategy.server.writer).rule == {}


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
def test_a_rule_that_keeps_everybody_cannot_guard(api):
    with pytest.raises(ValueError, match="rule 'centered-clipping' does not select clients"):
        make(api, "guard", rule="centered-clipping")
