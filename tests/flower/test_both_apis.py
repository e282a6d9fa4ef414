"""What one API refuses, weighs and makes of a round, the other does too: they share the server core."""

from __future__ import annotations

import numpy as np
import pytest
from tests.flower.both import APIS, Accountant, Answer, federation, honest, make, model, same
from tests.server.stateful_rules import Diary

from fedra import RULES, FedRA, make_rule


def changed(**changes):
    """A client that is honest but for these; functions are called with what they replace."""

    def client(number, server_round, sent) -> Answer:
        answer = honest(number, server_round, sent)
        for name, value in changes.items():
            setattr(answer, name, value(getattr(answer, name)) if callable(value) else value)
        return answer

    return client


def spoilt(place: int, change):
    """A client with the bytes of one array changed."""

    def client(number, server_round, sent) -> Answer:
        answer = honest(number, server_round, sent)
        answer.tensors = answer.parameters().tensors
        answer.tensors[place] = change(answer.tensors[place])
        return answer

    return client


def liar(number, server_round, sent) -> Answer:
    return Answer([(array - 3).astype(array.dtype) for array in sent], claim=10**9)


def put(place: int, value: float):
    def change(arrays):
        arrays = [np.array(array) for array in arrays]
        arrays[place].reshape(-1)[-1] = value
        return arrays

    return change


BAD = {
    "nan": changed(arrays=put(0, np.nan)),
    "inf in a scalar": changed(arrays=put(2, -np.inf)),
    "other shape": changed(arrays=lambda a: [a[0].T, *a[1:]]),
    "other type": changed(arrays=lambda a: [a[0].astype(np.float64), *a[1:]]),
    "objects": spoilt(0, lambda data: data.replace(b"<f4", b"|O8")),
    "torn": spoilt(1, lambda data: data[:-3]),
    "no bytes": spoilt(1, lambda data: b""),
    "claim below 1": changed(claim=0),
    "negative claim": changed(claim=-4),
    "claim is a list": changed(claim=[20]),
    "claim is text": changed(claim="many"),
    "claim is not finite": changed(claim=float("inf")),
    "claim beyond 2**53": changed(claim=2**60),
    "metric is not finite": changed(metrics={"loss": float("nan")}),
    "metric is beyond floats": changed(metrics={"loss": 10**400}),
    "metric is missing": changed(metrics={}),
    "metric is extra": changed(metrics={"loss": 0.5, "evil": 1.0}),
    "metric is a list": changed(metrics={"loss": [0.5]}),
    "metric is nothing": changed(metrics={"loss": None}),
    "too many numbers": changed(metrics={"loss": [0.5] * 100_001}),
}


def played(api, kind: str, clients, rounds: int = 1, **options):
    """Run; return the model and the records, with clients named alike."""
    records: list = []
    strategy = make(api, kind, on_round=records.append, **options)
    arrays = api.run(strategy, clients, rounds)
    return (
        arrays,
        [[{**client, "client": int(client["client"])} for client in record.clients] for record in records],
        records,
    )


def worded(reason: str) -> str:
    return reason.replace("num_examples", "num-examples")


@pytest.mark.parametrize("kind", ["robust", "guard"])
@pytest.mark.parametrize("bad", BAD)
def test_the_same_replies_are_refused_for_the_same_reasons(kind, bad):
    clients = federation(8, client_3=BAD[bad])
    found = {name: played(api, kind, clients, rule=FedRA(num_malicious=1))[1][0] for name, api in APIS.items()}
    reasons = {name: [worded(client["reason"]) for client in record] for name, record in found.items()}
    assert reasons["message"] == reasons["older"]
    assert reasons["message"][2]
    for record in found.values():
        assert not record[2]["kept"]
        assert sum(client["kept"] for client in record) >= 5
    assert [client["weight"] for client in found["message"]] == [client["weight"] for client in found["older"]]


@pytest.mark.parametrize("rule", [*sorted(RULES), Diary()], ids=[*sorted(RULES), "diary"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_the_same_replies_make_the_same_model_bit_for_bit(rule, optimizer):
    clients = federation(9, client_2=liar, client_5=BAD["nan"])
    models, weights = {}, {}
    for name, api in APIS.items():
        models[name], records, _ = played(api, "robust", clients, 3, rule=rule, server_optimizer=optimizer)
        weights[name] = [[client["weight"] for client in record] for record in records]
    assert same(models["message"], models["older"])
    assert weights["message"] == weights["older"]
    assert not same(models["message"], model())


@pytest.mark.parametrize("rule", [*(name for name, rule in RULES.items() if rule.scored), Diary()])
def test_the_same_replies_are_weighed_alike_by_guard(rule):
    clients = federation(9, client_2=liar, client_5=BAD["nan"])
    rule = rule if isinstance(rule, Diary) else make_rule(rule)
    found = {}
    for name, api in APIS.items():
        _, records, _ = played(api, "guard", clients, 1, rule=rule)
        found[name] = [(client["kept"], client["weight"], worded(client["reason"])) for client in records[0]]
    assert found["message"] == found["older"]


def loss_weighing(api):
    class LossWeighing(api.flower.FedAvg):
        """As q-FedAvg, which the older API has without a key for the loss."""

        train_loss_key = "loss"

    return api.fedavg(LossWeighing, fraction_evaluate=0.0)


def accounting(api):
    inner = api.fedavg(fraction_evaluate=0.0)
    inner.accountant = Accountant()
    return inner


def wrapped(wrapper: str, *settings):
    return lambda api: getattr(api.flower, wrapper)(api.fedavg(fraction_evaluate=0.0), *settings)


def norm_bit(number, server_round, sent) -> Answer:
    answer = honest(number, server_round, sent)
    answer.metrics = {"norm_bit": 1, f"only-{number % 3}": 1.0}
    return answer


DEMANDS = {
    "a negative loss": (loss_weighing, honest, changed(metrics={"loss": -1.0}), "is not negative"),
    "a loss far beyond": (loss_weighing, honest, changed(metrics={"loss": 1e9}), "far beyond most clients'"),
    "a clipping client that does not say so": (
        wrapped("DifferentialPrivacyClientSideAdaptiveClipping", 0.0, 8),
        norm_bit,
        changed(metrics={"only-0": 1.0}),
        "lacks metric 'norm_bit'",
    ),
    "no update under fixed clipping": (
        wrapped("DifferentialPrivacyServerSideFixedClipping", 0.0, 100.0, 8),
        honest,
        lambda number, server_round, sent: Answer(sent),
        "its update is zero",
    ),
    "no update under adaptive clipping": (
        wrapped("DifferentialPrivacyServerSideAdaptiveClipping", 0.0, 8),
        honest,
        lambda number, server_round, sent: Answer(sent),
        "its update is zero",
    ),
}


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
@pytest.mark.parametrize("demand", DEMANDS)
def test_what_an_inner_strategy_cannot_compute_with_is_refused_in_both(api, demand):
    inner, usual, odd, reason = DEMANDS[demand]
    clients = {**dict.fromkeys(range(1, 9), usual), 3: odd}
    _, records, rounds = played(api, "guard", clients, inner=inner(api), rule=FedRA(num_malicious=1))
    assert reason in records[0][2]["reason"]
    assert not records[0][2]["usable"]
    assert not rounds[0].skipped, rounds[0].note
    assert rounds[0].kept >= 5


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
def test_a_loss_near_zero_counts_as_a_tenth_of_the_median_in_both(api):
    seen: list[float] = []

    class Seeing(api.flower.FedAvg):
        train_loss_key = "loss"

        def aggregate_train(self, server_round, replies):
            replies = list(replies)
            seen.extend(reply.content["metrics"]["loss"] for reply in replies)
            return super().aggregate_train(server_round, replies)

        def aggregate_fit(self, server_round, results, failures):
            seen.extend(result.metrics["loss"] for _, result in results)
            return super().aggregate_fit(server_round, results, failures)

    clients = federation(7, client_3=changed(metrics={"loss": 0.0}))
    inner = api.fedavg(Seeing, fraction_evaluate=0.0)
    played(api, "guard", clients, inner=inner, rule=FedRA(num_malicious=1))
    assert min(seen) > 0.01


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
def test_an_accountant_wants_all_weighed_alike_in_both(api):
    clients = federation(8, client_3=changed(claim=2**50))
    _, records, _ = played(api, "guard", clients, inner=accounting(api), rule=FedRA(num_malicious=1))
    weights = [client["weight"] for client in records[0] if client["kept"]]
    assert len(weights) >= 6
    assert weights == pytest.approx([1 / len(weights)] * len(weights))


class Forgetful:
    """An accountant that cannot be saved."""

    compose = Accountant.compose
    get_privacy_spent = Accountant.get_privacy_spent


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
def test_an_accountant_that_cannot_be_saved_is_refused_with_state_in_both(api, tmp_path):
    inner = accounting(api)
    inner.accountant = Forgetful()
    with pytest.raises(ValueError, match="`accountant` has spent"):
        make(api, "guard", inner=inner, state=tmp_path / "state.npz")
