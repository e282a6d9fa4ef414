"""Hypothesis profiles: the same examples every time by default; HYPOTHESIS_PROFILE=thorough searches wider."""

import gc
import os
import signal

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
    gc.collect()
    gc.freeze()
