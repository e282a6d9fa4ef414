from __future__ import annotations

from unittest.mock import MagicMock

import numpy as np
import pytest
from flwr.common import (
    Code,
    EvaluateRes,
    FitRes,
    GetParametersRes,
    Parameters,
    Status,
    ndarrays_to_parameters,
    parameters_to_ndarrays,
)
from flwr.server import Server, SimpleClientManager
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import FedAdam, FedAvg
from tests.security.older import Proxy

from fedra.flower.legacy import Guard, RobustStrategy
from fedra.server.state import load_state

OK = Status(code=Code.OK, message="")


def model() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [(4, 3), (3,), ()]
    return [np.asarray(rng.standard_normal(shape), dtype=np.float32) for shape in shapes] + [np.asarray(5)]


def fit_result(place: int, *, shift: float = 0.01, claim: object = 20, status: Status = OK, **metrics) -> FitRes:
    rng = np.random.default_rng(place)
    arrays = [
        np.asarray(a + shift * (1 + 0.1 * rng.standard_normal(a.shape)), dtype=a.dtype) if a.dtype.kind == "f" else a
        for a in model()
    ]
    return FitRes(status, ndarrays_to_parameters(arrays), claim, {"loss": 0.5, **metrics})


def proxy(name: str) -> ClientProxy:
    made = MagicMock(spec=ClientProxy)
    made.cid = name
    return made


def play(strategy, answers: list[FitRes], failures=()):
    proxies = [proxy(str(place)) for place in range(len(answers))]
    manager = MagicMock()
    manager.num_available.return_value = len(proxies)
    manager.sample.return_value = proxies
    strategy.configure_fit(1, ndarrays_to_parameters(model()), manager)
    parameters, metrics = strategy.aggregate_fit(1, list(zip(proxies, answers, strict=True)), list(failures))
    return proxies, parameters, metrics


def bad_answers() -> dict[str, FitRes]:
    short = fit_result(1)
    short.parameters.tensors.pop()
    torn = fit_result(1)
    torn.parameters.tensors[0] = torn.parameters.tensors[0][:-3]
    missing = fit_result(1)
    missing.metrics.clear()
    return {
        "captured": fit_result(1, shift=-3.0, claim=10**9),
        "nan": fit_result(1, shift=float("nan")),
        "too few arrays": short,
        "torn": torn,
        "claim": fit_result(1, claim=-4),
        "text claim": fit_result(1, claim="many"),
        "metrics": missing,
        "extra metric": fit_result(1, evil=1.0),
        "nan metric": FitRes(OK, fit_result(1).parameters, 20, {"loss": float("nan")}),
        "status": fit_result(1, status=Status(code=Code.FIT_NOT_IMPLEMENTED, message="no")),
    }


MAKERS = {
    "robust": lambda **o: RobustStrategy(rule="fedra", server_optimizer="sgd", **o),
    "guard": lambda **o: Guard(FedAvg(), rule="fedra", **o),
    "guard fedadam": lambda **o: Guard(FedAdam(initial_parameters=ndarrays_to_parameters(model())), rule="fedra", **o),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("bad", bad_answers())
def test_one_bad_client_is_dropped(make, bad):
    reports = []
    answers = [bad_answers()[bad], *(fit_result(place) for place in range(1, 8))]
    _, parameters, metrics = play(make(on_round=reports.append), answers)
    assert not reports[0].clients[0]["kept"]
    assert reports[0].clients[0]["reason"]
    assert metrics["fedra-kept"] >= 5
    for before, after in zip(model()[:3], parameters_to_ndarrays(parameters)[:3], strict=True):
        assert np.isfinite(after).all()
        assert 0 < np.mean(after - before) < 0.2


def test_fedavg_is_flowers_fedavg():
    answers = [fit_result(place, claim=3 + place) for place in range(6)]
    _, ours, _ = play(RobustStrategy(rule="fedavg"), answers)
    _, theirs, _ = play(FedAvg(), answers)
    for mine, flowers in zip(parameters_to_ndarrays(ours)[:3], parameters_to_ndarrays(theirs)[:3], strict=True):
        assert mine.dtype == np.float32
        np.testing.assert_allclose(mine, flowers, rtol=3e-7, atol=1e-7)
    assert parameters_to_ndarrays(ours)[3] == 5


def test_too_few_clients_skip_the_round():
    _, parameters, metrics = play(RobustStrategy(rule="fedra"), [fit_result(place) for place in range(2)])
    assert parameters is None
    assert metrics["fedra-skipped"] == 1


def test_failures_are_on_record():
    reports = []
    strategy = RobustStrategy(rule="uniform", on_round=reports.append)
    failures = [ConnectionError("gone"), (proxy("77"), fit_result(1))]
    _, parameters, _ = play(strategy, [fit_result(place) for place in range(4)], failures)
    assert parameters is not None
    assert [entry["client"] for entry in reports[0].clients if not entry["usable"]] == ["unknown", "77"]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_evaluation_by_the_weights_of_training(make):
    strategy = make()
    proxies, *_ = play(strategy, [bad_answers()["captured"], *(fit_result(place) for place in range(1, 8))])
    results = [(p, EvaluateRes(OK, 0.5, 10, {})) for p in proxies]
    results[0] = (proxies[0], EvaluateRes(OK, 100.0, 10**9, {}))
    results[1] = (proxies[1], EvaluateRes(OK, float("inf"), 10, {}))
    results[2] = (proxies[2], EvaluateRes(OK, 1.0, 10**9, {}))
    loss, _ = strategy.aggregate_evaluate(1, results, [])
    assert 0.5 < loss < 0.65


def test_guard_passes_the_rest_on():
    inner = MagicMock(spec=FedAvg)
    guard = Guard(inner, rule="krum")
    assert guard.initialize_parameters(None) is inner.initialize_parameters.return_value
    assert guard.configure_evaluate(1, Parameters([], ""), None) is inner.configure_evaluate.return_value
    assert guard.evaluate(1, Parameters([], "")) is inner.evaluate.return_value
    with pytest.raises(ValueError, match="cannot guard"):
        Guard(FedAvg(), rule="median")
    with pytest.raises(TypeError, match="give a strategy"):
        Guard(3)


class Trainer(Proxy):
    """A client that depends on its name and the round alone, and takes notes of the rounds."""

    rounds: list[int]

    def get_parameters(self, ins, timeout, group_id) -> GetParametersRes:
        return GetParametersRes(OK, ndarrays_to_parameters(model()))

    def fit(self, ins, timeout, group_id) -> FitRes:
        number = ins.config["round"]
        self.rounds.append(number)
        rng = np.random.default_rng(1000 * number + int(self.cid))
        arrays = [
            np.asarray(a + 0.01 + 0.001 * rng.standard_normal(a.shape), dtype=a.dtype) if a.dtype.kind == "f" else a
            for a in parameters_to_ndarrays(ins.parameters)
        ]
        return FitRes(OK, ndarrays_to_parameters(arrays), 20, {})

    def evaluate(self, ins, timeout, group_id) -> EvaluateRes:
        return EvaluateRes(OK, 0.5, 10, {})


def serve(make, rounds: int, *, initial: bool = True, **options):
    """Run Flower's own server of the older API; return the strategy, the rounds trained, those evaluated, the model."""
    trained: list[int] = []
    evaluated: list[int] = []

    def evaluate(number, parameters, config):
        evaluated.append(number)
        return 0.5, {"number": number}

    manager = SimpleClientManager()
    for name in range(1, 8):
        client = Trainer(str(name))
        client.rounds = trained
        manager.register(client)
    sampling = {"on_fit_config_fn": lambda number: {"round": number}, "evaluate_fn": evaluate, "min_fit_clients": 7}
    if initial:
        sampling["initial_parameters"] = ndarrays_to_parameters(model())
    strategy = make(sampling, options)
    server = Server(client_manager=manager, strategy=strategy)
    server.fit(rounds, timeout=None)
    return strategy, trained, evaluated, server.parameters


SERVED = {
    "robust": lambda sampling, options: RobustStrategy(rule="centered-clipping", **sampling, **options),
    "guard": lambda sampling, options: Guard(FedAvg(**sampling), rule="fedra", **options),
}


@pytest.mark.parametrize("initial", [True, False], ids=["given model", "a client's model"])
@pytest.mark.parametrize("make", SERVED.values(), ids=SERVED)
def test_flowers_own_server_goes_on_where_it_was_stopped(tmp_path, make, initial):
    """It counts the rounds of each start from 1; the strategy adds those that were done before."""
    path = tmp_path / "state.npz"
    records: list = []
    _, trained, evaluated, first = serve(make, 2, initial=initial, state=path, on_round=records.append)
    assert (sorted(set(trained)), evaluated) == ([1, 2], [0, 1, 2])
    strategy, trained, evaluated, last = serve(make, 3, initial=initial, state=path, on_round=records.append)
    assert strategy.server.done == 2
    assert (sorted(set(trained)), evaluated) == ([3, 4, 5], [2, 3, 4, 5])
    assert [(record.phase, record.round) for record in records] == [
        (phase, number) for number in range(1, 6) for phase in ("train", "evaluate")
    ]
    state = load_state(path, strategy.server.writer)
    assert state.round == 5
    for saved, ours in zip(state.arrays.values(), parameters_to_ndarrays(last), strict=True):
        np.testing.assert_array_equal(saved, ours)
    moves = [
        np.mean(np.subtract(b, a)) for a, b in zip(parameters_to_ndarrays(first), state.arrays.values(), strict=True)
    ]
    assert moves[0] == pytest.approx(0.03, rel=0.2)


def test_a_state_of_another_model_is_refused(tmp_path):
    path = tmp_path / "state.npz"
    serve(SERVED["robust"], 1, state=path)
    strategy = RobustStrategy(
        rule="centered-clipping", state=path, initial_parameters=ndarrays_to_parameters([np.zeros(3, np.float32)])
    )
    with pytest.raises(ValueError, match="another model"):
        strategy.initialize_parameters(None)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_path_that_cannot_be_written_to_is_refused_before_the_first_round(tmp_path, make):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        make(state=tmp_path / "file" / "state.npz").initialize_parameters(MagicMock())


def test_metrics_that_an_inner_strategy_does_not_return():
    class Bare(FedAvg):
        def aggregate_evaluate(self, server_round, results, failures):
            return 0.25, None

    records: list = []
    strategy = Guard(Bare(), rule="krum", on_round=records.append)
    results = [(proxy(str(place)), EvaluateRes(OK, 0.5, 10, {})) for place in range(6)]
    assert strategy.aggregate_evaluate(1, results, []) == (0.25, None)
    assert records[0].metrics == {"loss": 0.25}


def test_options_are_told_apart():
    strategy = RobustStrategy(rule="median", threads=1, min_fit_clients=3)
    assert strategy.min_fit_clients == 3
    assert strategy.server.defence.threads == 1
    with pytest.raises(TypeError, match="unknown_option"):
        RobustStrategy(unknown_option=1)
    with pytest.raises(TypeError, match="unknown_option"):
        Guard(FedAvg(), unknown_option=1)
