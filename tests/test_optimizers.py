from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from fedra.optimizers import OPTIMIZERS, SGD, Adam, FedAdam, OptimizerState, make_optimizer


def run(optimizer: Any, weights: np.ndarray, gradients: np.ndarray) -> tuple[np.ndarray, OptimizerState]:
    state = optimizer.init(len(weights))
    for gradient in gradients:
        weights, state = optimizer.step(weights, gradient, state)
    return weights, state


@pytest.fixture
def gradients() -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.normal(size=(25, 40)) * 10.0 ** rng.uniform(-6, 2, size=40)


def test_adam_is_torchs_adam(gradients: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    start = np.random.default_rng(4).normal(size=40)
    parameter = torch.nn.Parameter(torch.from_numpy(start.copy()))
    reference = torch.optim.Adam([parameter], lr=0.01, betas=(0.9, 0.999), eps=1e-8)
    for gradient in gradients:
        parameter.grad = torch.from_numpy(gradient)
        reference.step()
    weights, state = run(Adam(lr=0.01), start, gradients)
    np.testing.assert_allclose(weights, parameter.detach().numpy(), rtol=1e-12, atol=1e-14)
    assert state.step == 25


def test_fedadam_follows_the_published_recursion(gradients: np.ndarray) -> None:
    weights = np.zeros(40)
    first, second = np.zeros(40), np.full(40, 1e-6)
    for gradient in gradients:
        first = 0.9 * first + 0.1 * gradient
        second = 0.99 * second + 0.01 * gradient**2
        weights = weights - 0.05 * first / (np.sqrt(second) + 1e-3)
    np.testing.assert_allclose(run(FedAdam(lr=0.05), np.zeros(40), gradients)[0], weights, rtol=1e-12)


def test_sgd_subtracts_the_scaled_aggregate() -> None:
    weights, state = SGD(lr=0.5).step(np.array([1.0, 2.0]), np.array([2.0, -4.0]), OptimizerState())
    np.testing.assert_array_equal(weights, [0.0, 4.0])
    assert state == OptimizerState(step=1)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_touches_neither_weights_nor_update_nor_state(name: str) -> None:
    optimizer = make_optimizer(name, lr=0.1)
    weights, update = np.ones(3, dtype=np.float32), np.full(3, 2.0, dtype=np.float32)
    _, state = optimizer.step(weights, update, optimizer.init(3))
    before = {key: moment.copy() for key, moment in state.moments.items()}
    new_weights, _ = optimizer.step(weights, update, state)
    assert (weights == 1).all()
    assert (update == 2).all()
    assert new_weights.dtype == np.float32
    assert (new_weights < 1).all()
    for key, moment in state.moments.items():
        assert moment.dtype == np.float64
        np.testing.assert_array_equal(moment, before[key])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_saved_state_continues_with_the_same_bits(name: str, gradients: np.ndarray) -> None:
    optimizer = make_optimizer(name)
    whole, _ = run(optimizer, np.zeros(40), gradients)
    weights, state = run(optimizer, np.zeros(40), gradients[:10])
    state = OptimizerState(step=state.step, moments={key: moment.copy() for key, moment in state.moments.items()})
    for gradient in gradients[10:]:
        weights, state = optimizer.step(weights, gradient, state)
    assert weights.tobytes() == whole.tobytes()


def test_unknown_names_and_parameters_are_told_with_the_valid_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown optimizer 'adma'.*'adam'.*adam, fedadam, sgd"):
        make_optimizer("adma")
    with pytest.raises(ValueError, match=r"'fedadam' has no parameter 'eps'.*lr, beta1, beta2, tau"):
        make_optimizer("fedadam", eps=1e-8)


@pytest.mark.parametrize(
    ("name", "params", "kind", "message"),
    [
        ("adam", {"lr": 0.0}, ValueError, r"lr=0\.0; give a finite number above 0"),
        ("adam", {"beta1": 1.0}, ValueError, r"beta1=1\.0; give a finite number of at least 0 below 1"),
        ("adam", {"eps": "1e-8"}, TypeError, "eps='1e-8'; give a finite number above 0"),
        ("fedadam", {"tau": float("nan")}, ValueError, "tau=nan; give a finite number"),
        ("fedadam", {"beta2": True}, TypeError, "beta2=True; give a finite number"),
        ("sgd", {"lr": float("inf")}, ValueError, "lr=inf; give a finite number"),
        ("sgd", {"lr": None}, TypeError, "lr=None; give a finite number"),
    ],
)
def test_wrong_parameters_are_rejected(name: str, params: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make_optimizer(name, **params)


def test_shapes_and_states_that_do_not_fit_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"update has shape \(4,\) but the weights have \(3,\)"):
        SGD().step(np.zeros(3), np.zeros(4), OptimizerState())
    with pytest.raises(ValueError, match="start from this optimizer's init"):
        Adam().step(np.zeros(3), np.zeros(3), OptimizerState())


def test_configurations_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Adam().lr = 1.0  # type: ignore[misc]
