"""Attacks that go wrong, named ``tests.experiments.own:...`` in grids."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import torch

from fedra.attacks import AttackerView


def raising(view: AttackerView, rng: np.random.Generator, *, at_round: int = 0) -> np.ndarray:
    if view.round >= at_round:
        raise ArithmeticError(f"went wrong in round {view.round}")
    return view.own_gradients


def deadly(view: AttackerView, rng: np.random.Generator) -> np.ndarray:
    os.kill(os.getpid(), signal.SIGKILL)
    return view.own_gradients


def slow(view: AttackerView, rng: np.random.Generator, *, seconds: float = 0.05) -> np.ndarray:
    time.sleep(seconds)
    return -view.own_gradients


def told_threads(view: AttackerView, rng: np.random.Generator) -> np.ndarray:
    raise ArithmeticError(f"OMP_NUM_THREADS={os.environ['OMP_NUM_THREADS']} torch={torch.get_num_threads()}")


def scaled(view: AttackerView, rng: np.random.Generator, *, factor: float = 1.0) -> np.ndarray:
    return factor * view.own_gradients
