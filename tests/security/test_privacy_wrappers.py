"""Flower's privacy wrappers inside Guard: a client must not end the run, lose its rounds, or reset what was spent."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from flwr.server import strategy as legacy_flower
from flwr.serverapp.exception import PrivacyBudgetExhausted
from flwr.serverapp.strategy import (
    DifferentialPrivacyClientSideAdaptiveClipping,
    DifferentialPrivacyClientSideFixedClipping,
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
    FedAdam,
    FedAvg,
)
from flwr.supercore.privacy_accounting import NeighboringRelation, PrivacyConfig, PrivacySpent, SamplingMethod
from tests.flower.federation import MemoryGrid, arrays_of, federation, model, moved, record, reply_to
from tests.flower.test_legacy import fit_result, play
from tests.security.own_rules import KeepAll

from fedra.audit import read_trail
from fedra.flower import Guard
from fedra.flower.legacy import Guard as LegacyGuard

NODES = 7


class Accountant:
    """Flower's protocol with the simplest accounting there is: zero-concentrated privacy, rho added up."""

    def __init__(self, max_epsilon: float | None = None) -> None:
        self.config = PrivacyConfig(
            target_delta=1e-5,
            population_size=NODES,
            neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
            sampling_method=SamplingMethod.NO_AMPLIFICATION,
            max_epsilon=max_epsilon,
        )
        self.rho = 0.0
        self.num_releases = 0

    def compose(self, event, count=1):
        self.rho += count / (2 * event.noise_multiplier**2)
        self.num_releases += count

    def _epsilon(self, rho):
        return rho + 2 * math.sqrt(rho * math.log(1e5))

    def get_privacy_spent(self, delta=None):
        return PrivacySpent(self._epsilon(self.rho), 1e-5, self.num_releases, "zcdp")

    def would_exceed(self, event, max_epsilon=None, count=1):
        return self._epsilon(self.rho + count / (2 * event.noise_multiplier**2)) > self.config.max_epsilon

    def state_dict(self):
        return {"rho": self.rho, "releases": self.num_releases}

    def load_state_dict(self, state):
        self.rho, self.num_releases = state["rho"], state["releases"]


class Forgetful:
    """An accountant that cannot be saved."""

    config = Accountant().config

    def compose(self, event, count=1):
        return None

    def get_privacy_spent(self, delta=None):
        return PrivacySpent(0.0, 1e-5, 0, "none")


def accounted(accountant=None, *, inner=None, noise: float = 0.3, wrapper=DifferentialPrivacyServerSideFixedClipping):
    return wrapper(
        inner or FedAvg(fraction_evaluate=0.0),
        noise_multiplier=noise,
        clipping_norm=0.05,
        num_sampled_clients=NODES,
        accountant=accountant or Accountant(),
    )


def adaptive(wrapper=DifferentialPrivacyServerSideAdaptiveClipping, inner=None, norm: float = 0.1):
    return wrapper(
        inner or FedAvg(fraction_evaluate=0.0),
        noise_multiplier=0.0,
        num_sampled_clients=NODES,
        initial_clipping_norm=norm,
    )


def client(message):
    """An honest client that depends on its node and the round alone."""
    seed = 1000 * message.content["config"]["server-round"] + message.metadata.dst_node_id
    arrays = moved(message.content["arrays"], np.random.default_rng(seed))
    return reply_to(message, arrays, {"num-examples": 5, "norm_bit": 1})


def still(message):
    """A client that sends back what it was sent: Flower's clipping divides by the norm of its update."""
    return reply_to(message, message.content["arrays"], {"loss": 0.5, "num-examples": 20})


def barely(message):
    """An update that is not zero, but whose squares are, in float32."""
    arrays = {name: array.copy() for name, array in arrays_of(message.content["arrays"]).items()}
    for array in arrays.values():
        array.reshape(-1)[:] = np.where(array.reshape(-1) == 0, np.float32(1e-40), array.reshape(-1))
    return reply_to(message, arrays, {"loss": 0.5, "num-examples": 20})


def bad(message):
    arrays = {name: np.full_like(array, np.nan) for name, array in arrays_of(message.content["arrays"]).items()}
    return reply_to(message, arrays, {"loss": 0.5, "num-examples": 20})


GRID = MemoryGrid(dict.fromkeys(range(1, NODES + 1), client))


def test_a_round_that_the_accountant_does_not_release_is_on_record_as_skipped(tmp_path):
    path, accountant = tmp_path / "audit.jsonl", Accountant()
    strategy = Guard(accounted(accountant), rule=KeepAll(), audit=path)
    result = strategy.start(federation(NODES, node_2=bad), record(model()), num_rounds=3)
    assert [metrics["fedra-skipped"] for metrics in result.train_metrics_clientapp.values()] == [1, 1, 1]
    rounds = read_trail(path).rounds
    assert len(rounds) == 3
    assert all("returned no model from 6 kept replies" in entry["note"] for entry in rounds)
    assert all("privacy accountant" in entry["note"] for entry in rounds)
    assert all(not entry["kept"] and entry["weight"] == 0 for entry in read_trail(path).clients)
    assert accountant.num_releases == 0
    for name, array in model().items():
        np.testing.assert_array_equal(result.arrays[name].numpy(), array)


@pytest.mark.parametrize(
    "wrapper", [DifferentialPrivacyServerSideFixedClipping, DifferentialPrivacyClientSideFixedClipping]
)
def test_one_unequal_claim_does_not_end_an_accounted_run(tmp_path, wrapper):
    path, accountant = tmp_path / "audit.jsonl", Accountant()

    def claims_more(message):
        reply = client(message)
        reply.content["metrics"]["num-examples"] = 2**53
        return reply

    grid = MemoryGrid({**GRID.clients, 3: claims_more})
    strategy = Guard(accounted(accountant, wrapper=wrapper), rule=KeepAll(), audit=path)
    result = strategy.start(grid, record(model()), num_rounds=2)
    assert [metrics["fedra-skipped"] for metrics in result.train_metrics_clientapp.values()] == [0, 0]
    assert accountant.num_releases == 2
    weights = [entry["weight"] for entry in read_trail(path).clients]
    assert weights == pytest.approx([1 / NODES] * (2 * NODES))


WRAPPED = {
    "accountant": lambda: accounted(),
    "accountant, clipped by clients": lambda: accounted(wrapper=DifferentialPrivacyClientSideFixedClipping),
    "adaptive": lambda: adaptive(),
    "adaptive, clipped by clients": lambda: adaptive(DifferentialPrivacyClientSideAdaptiveClipping),
    "adaptive of FedAdam": lambda: adaptive(inner=FedAdam(fraction_evaluate=0.0)),
}


@pytest.mark.parametrize("make", WRAPPED.values(), ids=WRAPPED)
def test_a_restarted_server_remembers_the_privacy_spent_and_the_clipping_norm(tmp_path, make):
    def run(rounds: int, **options):
        inner = make()
        np.random.seed(0)  # noqa: NPY002, Flower's wrappers draw their noise from NumPy's global generator
        return inner, Guard(inner, rule=KeepAll(), **options).start(GRID, record(model()), num_rounds=rounds)

    through, whole = run(5)
    for rounds in (1, 3, 3, 5):
        inner, resumed = run(rounds, state=tmp_path / "state.npz")
    assert inner.clipping_norm.hex() == through.clipping_norm.hex()
    if "adaptive" in type(inner).__name__.lower():
        assert inner.clipping_norm != make().clipping_norm
        for name, array in arrays_of(whole.arrays).items():
            np.testing.assert_array_equal(resumed.arrays[name].numpy(), array)
    else:
        assert inner.accountant.rho.hex() == through.accountant.rho.hex()
        assert inner.privacy_spent() == through.privacy_spent()
        assert inner.privacy_spent().num_releases == 5


def test_a_restart_does_not_renew_the_privacy_budget(tmp_path):
    path = tmp_path / "state.npz"
    spent = Accountant()
    Guard(accounted(spent), rule=KeepAll(), state=path).start(GRID, record(model()), num_rounds=2)
    budget = spent.get_privacy_spent().epsilon
    again = Guard(accounted(Accountant(max_epsilon=budget)), rule=KeepAll(), state=path)
    with pytest.raises(PrivacyBudgetExhausted):
        again.start(GRID, record(model()), num_rounds=3)


def test_state_is_refused_where_spent_privacy_would_be_forgotten(tmp_path):
    with pytest.raises(ValueError, match=r"`accountant` has spent.*leave out state="):
        Guard(accounted(Forgetful()), rule=KeepAll(), state=tmp_path / "state.npz")
    path = tmp_path / "with.npz"
    Guard(accounted(), rule=KeepAll(), state=path).start(GRID, record(model()), num_rounds=1)
    bare = DifferentialPrivacyServerSideFixedClipping(FedAvg(fraction_evaluate=0.0), 0.3, 0.05, NODES)
    with pytest.raises(ValueError, match="holds the privacy spent"):
        Guard(bare, rule=KeepAll(), state=path).start(GRID, record(model()), num_rounds=2)
    path = tmp_path / "without.npz"
    Guard(bare, rule=KeepAll(), state=path).start(GRID, record(model()), num_rounds=1)
    with pytest.raises(ValueError, match="does not hold the privacy spent"):
        Guard(accounted(), rule=KeepAll(), state=path).start(GRID, record(model()), num_rounds=2)


def test_settings_are_the_callers_after_a_restart_too(tmp_path):
    path = tmp_path / "state.npz"
    Guard(adaptive(), rule=KeepAll(), state=path).start(GRID, record(model()), num_rounds=2)
    inner = adaptive(inner=FedAvg(fraction_evaluate=0.0, min_train_nodes=3))
    again = Guard(inner, rule=KeepAll(), state=path)
    inner.clip_norm_lr = 0.7
    again.start(GRID, record(model()), num_rounds=3)
    assert inner.clip_norm_lr == 0.7
    inner.clip_norm_lr = 0.4
    again.start(GRID, record(model()), num_rounds=3)
    assert inner.clip_norm_lr == 0.4
    assert inner.strategy.min_train_nodes == 3
    assert inner.clipping_norm != 0.1


def test_a_missing_norm_bit_does_not_end_the_run():
    """Clients without the clipping mod: Flower's wrapper raises, which is a round lost and not a run."""
    strategy = Guard(adaptive(DifferentialPrivacyClientSideAdaptiveClipping), rule=KeepAll())
    result = strategy.start(federation(NODES), record(model()), num_rounds=2)
    assert [metrics["fedra-skipped"] for metrics in result.train_metrics_clientapp.values()] == [1, 1]


@pytest.mark.parametrize("make", [accounted, adaptive], ids=["fixed", "adaptive"])
@pytest.mark.parametrize("lazy", [still, barely])
def test_a_client_that_sends_the_model_back_unchanged_loses_nobody_the_round(make, lazy):
    reports, sent = [], record(model() | {"conv.bias": np.zeros(3, np.float32)})
    inner = make()
    inner.accountant = None
    strategy = Guard(inner, rule=KeepAll(), on_round=reports.append)
    result = strategy.start(federation(NODES, node_4=lazy), sent, num_rounds=2)
    assert [metrics["fedra-skipped"] for metrics in result.train_metrics_clientapp.values()] == [0, 0]
    assert "its update is zero" in reports[0].clients[3]["reason"]
    assert reports[0].kept == NODES - 1


def test_a_client_that_sends_the_model_back_unchanged_in_the_older_api():
    reports = []
    for inner in (
        legacy_flower.DifferentialPrivacyServerSideFixedClipping(legacy_flower.FedAvg(), 0.0, 100.0, NODES),
        legacy_flower.DifferentialPrivacyServerSideAdaptiveClipping(legacy_flower.FedAvg(), 0.0, NODES, 100.0),
    ):
        answers = [fit_result(place, shift=0.0 if place == 2 else 0.01) for place in range(NODES)]
        _, parameters, metrics = play(LegacyGuard(inner, rule=KeepAll(), on_round=reports.append), answers)
        assert "its update is zero" in reports.pop().clients[2]["reason"]
        assert metrics["fedra-skipped"] == 0
        assert parameters is not None


@pytest.mark.parametrize("fault", ["none", "raises"])
def test_no_model_from_an_inner_strategy_of_the_older_api_is_a_skipped_round(tmp_path, fault):
    class Broken(legacy_flower.FedAvg):
        def aggregate_fit(self, server_round, results, failures):
            if fault == "raises":
                raise ZeroDivisionError("division by zero")
            return None, {}

    path = tmp_path / "audit.jsonl"
    strategy = LegacyGuard(Broken(), rule="krum", audit=path)
    _, parameters, metrics = play(strategy, [fit_result(place) for place in range(6)])
    assert parameters is None
    assert metrics["fedra-skipped"] == 1
    assert read_trail(path).rounds[0]["note"].startswith("the inner strategy r")


def test_what_is_saved_of_an_inner_strategy_is_plain_json(tmp_path):
    path = tmp_path / "state.npz"
    Guard(accounted(), rule=KeepAll(), state=path).start(GRID, record(model()), num_rounds=1)
    with np.load(path, allow_pickle=False) as contents:
        assert json.loads(contents["about"].tobytes())["numbers"]["accountants"]


def test_a_run_begins_with_a_word_on_what_selection_means_for_privacy(caplog):
    Guard(adaptive(), rule=KeepAll()).summary()
    assert "does not cover that a rule selects" in caplog.text
    caplog.clear()
    Guard(FedAvg(), rule=KeepAll()).summary()
    assert "select" not in caplog.text
