"""Warnings by themselves; what they find in rounds is in tests/security/test_nobody_warns.py."""

import numpy as np
import pytest

from fedra import WarningLimits
from fedra.alarms import Streaks, round_warnings


def warn(**given):
    count = len(given["kept"])
    whole = {
        "client_ids": list(range(count)),
        "quantities": np.full(count, 10.0),
        "weights": None,
        "implied": None,
        **given,
    }
    return round_warnings(**whole)


def test_one_client_in_command():
    kept = np.array([True, True, True])
    assert warn(kept=kept, weights=np.array([0.6, 0.2, 0.2])) == (
        "client 0 alone is 60% of this round's result, more than 50%",
    )
    assert warn(kept=kept, weights=np.array([0.5, 0.3, 0.2])) == ()
    assert warn(kept=kept, weights=np.array([0.6, 0.2, 0.2]), limits=WarningLimits(share=0.7)) == ()
    assert warn(kept=np.array([True]), weights=np.array([1.0])) == ()


def test_claims_that_do_not_fit_are_named_worst_first():
    kept = np.array([True] * 8 + [False])
    implied = np.array([10.0, 0.4, 0.3, 0.2, 0.1, 0.45, 0.35, np.inf, 0.01])
    (text,) = warn(kept=kept, implied=implied)
    assert text.startswith("6 kept clients claim more than 20 times as much data as the update supports: 4 claims 10 ")
    assert "and behaves like 0.1; 3 claims" in text
    assert text.endswith("; and 1 more")
    assert "8 claims" not in text


def test_identifiers_in_warnings_are_safe():
    (text,) = warn(kept=np.array([True, True]), weights=np.array([0.9, 0.1]), client_ids=["\x1b[2J" + "x" * 99, 1])
    assert text.isprintable()
    assert len(text) < 150
    (text,) = Streaks(WarningLimits(streak=1)).update(["a\nb"], [])
    assert text.startswith("left out in every one of its last rounds: a b (1);")


@pytest.mark.parametrize(
    ("limits", "error", "message"),
    [
        ({"share": -0.1}, ValueError, "share=-0.1; give a finite number of at least 0"),
        ({"excess": 0.5}, ValueError, "excess=0.5; give a finite number of at least 1"),
        ({"streak": 0}, ValueError, "streak=0; give a finite number of at least 1"),
        ({"share": float("nan")}, ValueError, "share=nan"),
        ({"streak": "5"}, TypeError, "streak='5'; give a finite number"),
        ({"share": True}, TypeError, "share=True"),
    ],
)
def test_limits_that_make_no_sense_are_refused(limits, error, message):
    with pytest.raises(error, match=message):
        WarningLimits(**limits)
