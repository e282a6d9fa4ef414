"""An attacker puts NaN, or values that overflow, where nobody looks, so that a strategy remembers them for good."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord
from flwr.common import FitRes, ndarrays_to_parameters
from flwr.server import strategy as older
from flwr.serverapp.strategy import (
    DifferentialPrivacyServerSideFixedClipping,
    FedAdagrad,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedYogi,
)
from hypothesis import given
from hypothesis import strategies as st
from tests.flower.conftest import _task_identity  # noqa: F401
from tests.flower.federation import MemoryGrid, arrays_of, federation, model, moved, one_round, record, reply_to
from tests.security.headers import saved
from tests.security.older import OK, older_round

from fedra import FedRA
from fedra.flower import Guard, legacy
from fedra.flower.inner import inner_memory
from fedra.flower.npy import npy_model_form as model_form
from fedra.flower.npy import view_npy
from fedra.server.faults import Unusable

INNER = {
    "FedAvg": FedAvg,
    "FedAdam": FedAdam,
    "FedYogi": FedYogi,
    "FedAdagrad": FedAdagrad,
    "FedAvgM": lambda: FedAvgM(server_momentum=0.9),
    "FedAdam with noise": lambda: DifferentialPrivacyServerSideFixedClipping(
        FedAdam(), noise_multiplier=1e-6, clipping_norm=10.0, num_sampled_clients=8
    ),
}
NORMED = model() | {"norm.num_batches_tracked": np.asarray(4, dtype=np.int64)}


def trains(message):
    """As PyTorch does: a counter goes on being an integer, whatever the server made of it."""
    arrays = moved(message.content["arrays"], np.random.default_rng(message.metadata.dst_node_id))
    arrays["norm.num_batches_tracked"] = np.asarray(9, dtype=np.int64)
    return reply_to(message, arrays, {"loss": 0.5, "num-examples": 20})


def poisons(value):
    """Sends a value that is not finite as the counter, in the type that the server has it in, and as a float."""

    def client(message):
        reply = trains(message)
        sent = message.content["arrays"]["norm.num_batches_tracked"].numpy().dtype
        dtype = sent if sent.kind == "f" else np.dtype(np.float64)
        reply.content["arrays"]["norm.num_batches_tracked"] = Array(np.asarray(value, dtype=dtype))
        return reply

    return client


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("make", INNER.values(), ids=INNER)
def test_nan_in_a_counter_costs_its_sender_alone(make, value, tmp_path):
    clients = dict.fromkeys(range(1, 9), trains) | {3: poisons(value)}
    for rounds in (3, 5):
        reports = []
        strategy = Guard(make(), rule=FedRA(num_malicious=1), on_round=reports.append, state=tmp_path / "state.npz")
        result = strategy.start(MemoryGrid(clients), record(NORMED), num_rounds=rounds)
        training = [report for report in reports if report.phase == "train"]
        assert len(training) == (3 if rounds == 3 else 2)
        for report in training:
            assert not report.skipped
            assert [entry["client"] for entry in report.clients if not entry["usable"]] == [3]
        assert all(np.isfinite(array).all() for array in arrays_of(result.arrays).values())
        assert all(np.isfinite(array).all() for array in inner_memory(strategy.inner).values())
        assert np.mean(result.arrays["fc.weight"].numpy() - NORMED["fc.weight"]) > 0


@given(
    st.sampled_from([np.float16, np.float32, np.float64]),
    st.sampled_from([np.int64, np.int8, np.bool_, np.float32]),
    st.lists(st.floats(width=16), min_size=1, max_size=5),
)
def test_every_float_is_looked_at(now, first, values):
    """Whatever an entry was at first: where floats arrive, a reply with one that is not finite is refused."""
    shape = (len(values),)
    before = model_form({"w": saved(np.zeros(shape, first))})
    form = model_form({"w": saved(np.zeros(shape, now))}, before)
    sent = np.asarray(values, dtype=now)
    flat = np.empty(form.dimension, dtype=form.dtype)
    try:
        form.flatten(form.read({"w": saved(sent)}, view_npy), flat)
        passed = bool(np.isfinite(flat).all())
    except Unusable:
        passed = False
    assert passed == bool(np.isfinite(sent).all())


class Once:
    """A client whose first answer is far off, and all others honest."""

    def __init__(self, value: float) -> None:
        self.value, self.count = value, 0

    def __call__(self, message):
        self.count += 1
        arrays = moved(message.content["arrays"], np.random.default_rng(message.metadata.dst_node_id))
        if self.count == 1:
            arrays = {name: np.full_like(array, self.value) for name, array in arrays.items()}
        return reply_to(message, arrays, {"num-examples": 20})


@pytest.mark.parametrize("value", [1e25, 3e38])
@pytest.mark.parametrize("make", INNER.values(), ids=INNER)
def test_a_square_that_overflows_is_not_remembered(make, value):
    """FedAdam's result is finite where its second moment is infinite, and stays so for ever."""
    strategy = Guard(make(), rule=FedRA(num_malicious=1))
    sent = record(model())
    grid = MemoryGrid({node: Once(value) for node in range(1, 9)})
    arrays, _ = one_round(strategy, grid, sent, 1)
    assert arrays is None or all(np.isfinite(array).all() for array in arrays_of(arrays).values())
    assert all(np.isfinite(array).all() for array in inner_memory(strategy.inner).values())


class Remembers(FedAdam):
    """Returns NaN in round 2, after FedAdam has moved on."""

    def aggregate_train(self, server_round, replies):
        arrays, metrics = super().aggregate_train(server_round, replies)
        if server_round == 2:
            self.m_t["scale"][...] = np.nan
            arrays = ArrayRecord({name: Array(np.full(array.shape, np.nan)) for name, array in arrays.items()})
        return arrays, metrics


def test_memory_is_put_back_when_the_result_is_rejected():
    """A round that does not count leaves the strategy as if it had not been."""
    one, other = Guard(Remembers(), rule="krum"), Guard(FedAdam(), rule="krum")
    sent = record(model())
    first, _ = one_round(one, federation(8), sent, 1)
    same, _ = one_round(other, federation(8), sent, 1)
    before = {name: array.copy() for name, array in inner_memory(one.inner).items() if "current" not in name}
    nothing, metrics = one_round(one, federation(8), first, 2)
    assert nothing is None
    assert metrics["fedra-skipped"] == 1
    after = inner_memory(one.inner)
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)
    third, _ = one_round(one, federation(8), first, 3)
    expected, _ = one_round(other, federation(8), same, 3)
    for name in sent:
        np.testing.assert_array_equal(third[name].numpy(), expected[name].numpy())


OLDER = {
    "FedAvg": older.FedAvg,
    "FedAdam": lambda: older.FedAdam(initial_parameters=ndarrays_to_parameters(PARTS)),
    "FedYogi": lambda: older.FedYogi(initial_parameters=ndarrays_to_parameters(PARTS)),
}
PARTS = [np.zeros((4, 3), np.float32), np.asarray(5)]


def older_result(place: int, *, value: float = 0.01, counter: object = 7) -> FitRes:
    rng = np.random.default_rng(place)
    arrays = [(PARTS[0] + value * (1 + 0.1 * rng.standard_normal((4, 3)))).astype(np.float32), np.asarray(counter)]
    return FitRes(OK, ndarrays_to_parameters(arrays), 20, {"loss": 0.5})


@pytest.mark.parametrize("make", OLDER.values(), ids=OLDER)
def test_nan_in_a_counter_does_not_enter_the_older_api(make):
    strategy = legacy.Guard(make(), rule=FedRA(num_malicious=1))
    sent = list(PARTS)
    for _ in range(3):
        answers = [older_result(place) for place in range(7)] + [older_result(8, counter=np.nan)]
        sent, metrics = older_round(strategy, answers, sent)
        assert metrics["fedra-skipped"] == 0
        assert metrics["fedra-rejected"] >= 1
        assert all(np.isfinite(array).all() for array in sent)


@pytest.mark.parametrize("make", OLDER.values(), ids=OLDER)
def test_a_result_of_the_older_api_is_finite_or_not_used(make):
    """Sums of values near the largest float overflow in the inner strategy."""
    strategy = legacy.Guard(make(), rule=FedRA(num_malicious=1))
    answers = [older_result(place, value=2.5e38) for place in range(8)]
    arrays, metrics = older_round(strategy, answers, list(PARTS))
    assert (arrays is None) == bool(metrics["fedra-skipped"])
    assert arrays is None or all(np.isfinite(array).all() for array in arrays)
    answers = [older_result(place) for place in range(8)]
    arrays, metrics = older_round(strategy, answers, list(PARTS))
    assert metrics["fedra-skipped"] == 0
    assert all(np.isfinite(array).all() for array in arrays)
    assert np.mean(arrays[0]) > 0


def test_what_an_older_strategy_raises_is_a_skipped_round():
    class Fails(older.FedAvg):
        calls = 0

        def aggregate_fit(self, *args):
            self.calls += 1
            raise ZeroDivisionError("no")

        def aggregate_evaluate(self, *args):
            self.calls += 1
            raise ZeroDivisionError("no")

    reports = []
    strategy = legacy.Guard(Fails(), rule="krum", on_round=reports.append)
    arrays, metrics = older_round(strategy, [older_result(place) for place in range(8)], list(PARTS))
    assert arrays is None
    assert metrics["fedra-skipped"] == 1
    assert strategy.aggregate_evaluate(1, [], []) == (None, {})
    assert strategy.inner.calls == 0
    assert ["ZeroDivisionError" in report.note for report in reports] == [True, True]
