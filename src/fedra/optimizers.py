"""Server optimizers: what the server does with the aggregate that a rule returns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fedra import checks
from fedra.names import nearest

FloatArray = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True)
class OptimizerState:
    """What an optimizer remembers between rounds: the number of steps done, and its float64 moments by name."""

    step: int = 0
    moments: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)


class ServerOptimizer(Protocol):
    """Turns a round's aggregate into new weights; everything it remembers is in the state."""

    def init(self, num_parameters: int) -> OptimizerState:
        """Return the state before the first round."""
        ...

    def step(self, weights: FloatArray, update: FloatArray, state: OptimizerState) -> tuple[FloatArray, OptimizerState]:
        """Return the new weights, in the dtype of the old ones, and the new state; the arguments stay untouched."""
        ...


@dataclass(frozen=True, kw_only=True)
class SGD:
    """Gradient descent on the aggregate g: w - lr g."""

    lr: float = 1.0

    def __post_init__(self) -> None:
        """Reject values outside their range."""
        checks.number("lr", self.lr, above=0)

    def init(self, num_parameters: int) -> OptimizerState:
        """Return the empty state: plain descent remembers nothing but the step."""
        return OptimizerState()

    def step(self, weights: FloatArray, update: FloatArray, state: OptimizerState) -> tuple[FloatArray, OptimizerState]:
        """Return w - lr g."""
        gradient = _as_gradient(weights, update)
        return _descend(weights, self.lr * gradient), OptimizerState(step=state.step + 1)


@dataclass(frozen=True, kw_only=True)
class Adam:
    """Adam on the aggregate g, bias-corrected: w - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps).

    Kingma and Ba, ICLR 2015.
    """

    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    def __post_init__(self) -> None:
        """Reject values outside their range."""
        checks.number("lr", self.lr, above=0)
        checks.number("eps", self.eps, above=0)
        checks.number("beta1", self.beta1, least=0, below=1)
        checks.number("beta2", self.beta2, least=0, below=1)

    def init(self, num_parameters: int) -> OptimizerState:
        """Return both moments at zero."""
        return OptimizerState(moments={"first": np.zeros(num_parameters), "second": np.zeros(num_parameters)})

    def step(self, weights: FloatArray, update: FloatArray, state: OptimizerState) -> tuple[FloatArray, OptimizerState]:
        """Return the weights and moments after one bias-corrected step."""
        first, second = _decayed_moments(weights, update, state, self.beta1, self.beta2)
        step = state.step + 1
        scale = np.sqrt(second)
        scale *= 1.0 / math.sqrt(1.0 - self.beta2**step)
        scale += self.eps
        change = first / scale
        change *= self.lr / (1.0 - self.beta1**step)
        return _descend(weights, change), OptimizerState(step=step, moments={"first": first, "second": second})


@dataclass(frozen=True, kw_only=True)
class FedAdam:
    """Adaptive federated Adam, without bias correction: w - lr m / (sqrt(v) + tau), v starting at tau^2.

    Reddi et al., "Adaptive Federated Optimization", ICLR 2021, algorithm 2.
    """

    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3

    def __post_init__(self) -> None:
        """Reject values outside their range."""
        checks.number("lr", self.lr, above=0)
        checks.number("tau", self.tau, above=0)
        checks.number("beta1", self.beta1, least=0, below=1)
        checks.number("beta2", self.beta2, least=0, below=1)

    def init(self, num_parameters: int) -> OptimizerState:
        """Return the first moment at zero and the second at tau^2, the least the algorithm allows."""
        second = np.full(num_parameters, self.tau**2)
        return OptimizerState(moments={"first": np.zeros(num_parameters), "second": second})

    def step(self, weights: FloatArray, update: FloatArray, state: OptimizerState) -> tuple[FloatArray, OptimizerState]:
        """Return the weights and moments after one step."""
        first, second = _decayed_moments(weights, update, state, self.beta1, self.beta2)
        scale = np.sqrt(second)
        scale += self.tau
        change = first / scale
        change *= self.lr
        moments = {"first": first, "second": second}
        return _descend(weights, change), OptimizerState(step=state.step + 1, moments=moments)


OPTIMIZERS: dict[str, type[SGD] | type[Adam] | type[FedAdam]] = {"adam": Adam, "fedadam": FedAdam, "sgd": SGD}


def make_optimizer(name: str, **params: float) -> ServerOptimizer:
    """Build the optimizer of that name, or say which names and parameters there are."""
    if name not in OPTIMIZERS:
        raise ValueError(f"unknown optimizer {name!r}{nearest(name, OPTIMIZERS)}")
    optimizer = OPTIMIZERS[name]
    valid = [parameter.name for parameter in fields(optimizer)]
    for key in params:
        if key not in valid:
            raise ValueError(f"optimizer {name!r} has no parameter {key!r}{nearest(key, valid)}")
    return optimizer(**params)


def _as_gradient(weights: FloatArray, update: FloatArray) -> npt.NDArray[np.float64]:
    if weights.shape != update.shape:
        raise ValueError(
            f"the update has shape {update.shape} but the weights have {weights.shape}; they must be equal"
        )
    return np.asarray(update, dtype=np.float64)


def _decayed_moments(
    weights: FloatArray, update: FloatArray, state: OptimizerState, beta1: float, beta2: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    gradient = _as_gradient(weights, update)
    if set(state.moments) != {"first", "second"}:
        raise ValueError(
            f"the state has moments {sorted(state.moments)}, not first and second; start from this optimizer's init()"
        )
    first = beta1 * state.moments["first"]
    first += (1.0 - beta1) * gradient
    second = beta2 * state.moments["second"]
    second += (1.0 - beta2) * np.square(gradient)
    return first, second


def _descend(weights: FloatArray, change: npt.NDArray[np.float64]) -> FloatArray:
    return (weights - change).astype(weights.dtype, copy=False)
