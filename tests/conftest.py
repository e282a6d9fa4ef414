"""Hypothesis profiles: the same examples every time by default; HYPOTHESIS_PROFILE=thorough searches wider."""

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci",
    derandomize=True,
    max_examples=60,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.register_profile("thorough", parent=settings.get_profile("ci"), derandomize=False, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# A shell starts background jobs with Ctrl-C ignored, and processes inherit that: those that tests stop would go on.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Leave what imports made out of later collections: some of Flower's strategies collect once for every reply."""
    _set_aside()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """The same after each module, whose tests import more."""
    if nextitem is not None and nextitem.path != item.path:
        _set_aside()


def _set_aside() -> None:
    gc.collect()
    gc.freeze()
