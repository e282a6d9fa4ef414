from __future__ import annotations

from unittest.mock import MagicMock

import numpy as np
import pytest
from flwr.common import (
    Code,
    EvaluateRes,
    FitRes,
    Parameters,
    Status,
    ndarrays_to_parameters,
    parameters_to_ndarrays,
)
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import FedAdam, FedAvg

from fedra.flower.legacy import Guard, RobustStrategy

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
