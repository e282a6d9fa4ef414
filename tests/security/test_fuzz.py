"""An attacker sends replies that are wrong in any way: nothing raises, all stays finite, honest replies count.

A few thousand mutated replies; `make fuzz` plays 100,000 for each target. FEDRA_FUZZ_COUNT and FEDRA_FUZZ_SEED choose
others here too.
"""

from __future__ import annotations

import logging
import os
import warnings

import pytest
from tests.flower.conftest import _task_identity  # noqa: F401
from tests.security.fuzz.run import episode
from tests.security.fuzz.targets import TARGETS

COUNT = int(os.environ.get("FEDRA_FUZZ_COUNT", "1000"))
SEED = int(os.environ.get("FEDRA_FUZZ_SEED", "1"))


@pytest.fixture(autouse=True, scope="module")
def _quiet():
    logger = logging.getLogger("flwr")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


@pytest.mark.parametrize("target", TARGETS)
def test_mutated_replies(target):
    played = number = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while played < COUNT:
            try:
                played += episode(target, SEED, number)
            except Exception as error:
                again = f"python -m tests.security.fuzz --target {target} --seed {SEED} --episode {number}"
                raise AssertionError(f"{type(error).__name__}: {error}; play it again: {again}") from error
            number += 1
