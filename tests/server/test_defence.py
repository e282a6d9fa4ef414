from __future__ import annotations

import numpy as np
import pytest
from tests.security.own_rules import GivenWeights
from tests.server.rounds import MODEL, client_reply, honest, read
from tests.server.stateful_rules import Diary, OtherDiary, Scribbles, Spoilt

from fedra import CenteredClipping, FedRA, WarningLimits
from fedra.server.defence import Defence
from fedra.server.records import LEFT_OUT
from fedra.server.replies import Reply


def judge(defence: Defence, replies: list[Reply], number: int = 1, known: int = 0):
    vectors = [np.concatenate(reply.views) for reply in replies if not reply.fault]
    return defence.judge(number, replies, vectors=vectors, known=known)


def spoilt(client) -> Reply:
    return Reply(client=client, message=None, fault="cannot be read")


def test_records_are_in_the_order_of_the_replies():
    first, second, *rest = honest(MODEL, 1)
    outcome = judge(Defence(rule="fedavg", run="r"), [first, spoilt(99), second, *rest])
    record = outcome.record
    assert [client["client"] for client in record.clients] == [1, 99, 2, 3, 4, 5, 6, 7]
    assert record.clients[1] == {
        "client": 99, "claimed_quantity": None, "implied_quantity": None, "score": None, "cut": None,
        "kept": False, "weight": 0.0, "reason": "cannot be read", "usable": False,
    }  # fmt: skip
    assert (record.run, record.round, record.phase, record.rule, record.kept) == ("r", 1, "train", "fedavg", 7)
    assert [reply.client for reply in outcome.kept] == [1, 2, 3, 4, 5, 6, 7]
    assert sum(outcome.weights) == pytest.approx(1)


def test_nobody_replied():
    outcome = judge(Defence(rule="fedavg"), [])
    assert outcome.record.note == "nobody replied"
    assert outcome.verdict.update is None


def test_what_screening_refuses_is_on_record_as_unusable():
    replies = [*honest(MODEL, 1), *read([client_reply(8, {**MODEL, "w": np.full((2, 3), np.nan, np.float32)})])]
    record = judge(Defence(rule="fedavg"), replies).record
    assert (record.clients[7]["usable"], record.clients[7]["kept"]) == (False, False)
    assert "not finite" in record.clients[7]["reason"]


def test_evaluation_weighs_as_training_did():
    defence = Defence(rule="fedavg")
    judge(defence, [*honest(MODEL, 1, clients=(1, 2)), spoilt(3)])
    asked = [client_reply(client, None, claim=2**53) for client in (1, 2, 3, 4)]
    kept, weights, record = defence.judge_evaluation(1, asked)
    assert [reply.client for reply in kept] == [1, 2, 4]
    assert weights == pytest.approx([11 / 23, 12 / 23, 0.5])
    assert record.phase == "evaluate"
    assert record.clients[2]["reason"] == LEFT_OUT
    assert sum(client["weight"] for client in record.clients) == pytest.approx(1)


def test_a_skipped_round_says_nothing_about_anybody():
    defence = Defence(rule=FedRA(num_malicious=1))
    judge(defence, honest(MODEL, 1))
    skipped = judge(defence, honest(MODEL, 2, clients=(1, 2)), 2)
    assert skipped.record.skipped
    kept, weights, _ = defence.judge_evaluation(2, [client_reply(client, None) for client in (1, 5)])
    assert len(kept) == 2
    assert weights == [1.0, 1.0]


def test_an_evaluation_without_anybody_says_so():
    _, _, record = Defence(rule="fedavg").judge_evaluation(1, [spoilt(1)])
    assert record.note == "nobody was left"


def test_weighed_as_the_inner_strategy_will():
    defence = Defence(rule=GivenWeights(weights=(3.0, 1.0)))
    outcome = defence.weighed(judge(defence, honest(MODEL, 1, clients=(1, 2))))
    a, b = outcome.claims
    assert a == pytest.approx(3 * b, rel=1e-5)
    assert outcome.weights == [a / (a + b), b / (a + b)]
    assert [client["weight"] for client in outcome.record.clients] == outcome.weights
    _, weights, _ = defence.judge_evaluation(1, [client_reply(client, None) for client in (1, 2)])
    assert weights == outcome.weights
    equal = defence.weighed(judge(defence, honest(MODEL, 1, clients=(1, 2))), equal=True)
    assert equal.weights == [0.5, 0.5]


@pytest.mark.parametrize("weights", [(-1.0, 2.0), (float("nan"), 1.0), (0.0, 0.0)])
def test_weights_that_cannot_be_used_keep_nobody(weights):
    defence = Defence(rule=GivenWeights(weights=weights))
    outcome = defence.weighed(judge(defence, honest(MODEL, 1, clients=(1, 2))))
    assert (outcome.kept, outcome.record.kept) == ([], 0)
    assert "negative, not finite, or all zero" in outcome.record.note


def test_memory_moves_on_only_with_an_accepted_round():
    defence = Defence(rule=Diary())
    outcome = judge(defence, honest(MODEL, 1))
    assert defence.rule_state is None
    defence.accept(outcome)
    assert defence.rule_state["sizes"].tolist() == [7]
    judge(defence, honest(MODEL, 2), 2)
    assert defence.rule_state["sizes"].tolist() == [7]


def test_memory_that_is_not_finite_costs_the_round():
    defence = Defence(rule=Spoilt())
    defence.accept(judge(defence, honest(MODEL, 1)))
    outcome = judge(defence, honest(MODEL, 2), 2)
    assert outcome.verdict.update is None
    assert outcome.kept == []
    assert outcome.record.note == "the rule would remember values that are not finite"
    assert (outcome.record.kept, outcome.record.rejected) == (0, 7)


@pytest.mark.parametrize("kept", [3, np.array(["a"]), np.array([None])], ids=["int", "text", "objects"])
def test_memory_that_no_file_can_hold_is_the_rules_fault(kept):
    with pytest.raises(TypeError, match=r"rule 'scribbles' would remember 'sizes' as .*; use NumPy arrays of numbers"):
        judge(Defence(rule=Scribbles(kept=kept)), honest(MODEL, 1))


def test_memory_is_taken_back_or_refused():
    state = {"centre": np.arange(8.0)}
    defence = Defence(rule=CenteredClipping())
    defence.recall(state, 8, owner="centered-clipping")
    assert defence.rule_state["centre"].tolist() == state["centre"].tolist()
    for bad, dimension in ((state, 9), ({"centre": np.full(8, np.nan)}, 8), ({"other": np.zeros(8)}, 8)):
        with pytest.raises(ValueError, match=r"centre|centered-clipping"):
            defence.recall(bad, dimension)
    defence.recall({}, 8)
    assert defence.rule_state is None


def test_the_memory_of_another_rule_is_refused_even_where_it_fits():
    state = Diary().init(8)
    with pytest.raises(ValueError, match="the memory of rule 'diary', this is 'other-diary'"):
        Defence(rule=OtherDiary()).recall(state, 8, owner="diary")


def test_memory_that_the_rule_does_not_check_must_be_finite_all_the_same():
    state = {"means": np.full((1, 8), np.inf), "sizes": np.ones(1, np.int64)}
    with pytest.raises(ValueError, match="not finite"):
        Defence(rule=Diary()).recall(state, 8)


def test_a_rule_without_memory_ignores_what_another_left():
    defence = Defence(rule="fedavg")
    defence.recall({"centre": np.zeros(8)}, 8, owner="centered-clipping")
    assert defence.rule_state is None


def test_the_rule_is_told_how_many_clients_are_known():
    defence = Defence(rule=FedRA(malicious_ratio=0.1, setting="fixed"))
    assert judge(defence, honest(MODEL, 1), known=70).record.num_malicious == 1
    assert judge(defence, honest(MODEL, 1, clients=range(1, 8)), known=14).record.num_malicious == 1


def test_warnings_are_by_the_limits_given():
    replies = honest(MODEL, 1, clients=(1, 2))
    assert judge(Defence(rule="fedavg"), replies).record.warnings
    quiet = Defence(rule="fedavg", warn_at=WarningLimits(share=0.99))
    assert not judge(quiet, honest(MODEL, 1, clients=(1, 2))).record.warnings


def test_callers_mistakes():
    with pytest.raises(TypeError, match=r"warn_at=0.5; give fedra.WarningLimits"):
        Defence(rule="fedavg", warn_at=0.5)
    with pytest.raises(TypeError, match="rule=3; give a rule"):
        Defence(rule=3)


@pytest.mark.parametrize("rule", ["fedra", "centered-clipping", Diary(), Spoilt(), FedRA(num_clients=4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_warming_up_leaves_nothing_behind(rule, dtype):
    defence = Defence(rule=rule)
    defence.warm_up(np.dtype(dtype))
    assert defence.rule_state is None
