"""Outcomes of rounds that tests decide on."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from fedra import FedAvg
from fedra.simulation import RoundOutcome

MALICIOUS = np.array([True, True, False, False])


def outcome(number: int, kept: list[bool], *, accuracy: float | None = None, **given: Any) -> RoundOutcome:
    """A round whose verdict is a rule's, but for what is decided here."""
    quantities = np.array([50.0, 50.0, 2.0, 3.0])
    decided: dict[str, Any] = {
        "kept": np.array(kept),
        "weights": np.array(kept) / max(sum(kept), 1),
        "scores": np.array([4.0, 3.0, 2.0, np.nan]),
        "num_malicious": 1,
        "reasons": tuple("" if stays else "left out" for stays in kept),
    }
    verdict = FedAvg()(np.ones((4, 2)), quantities, [5, 7, 8, 9])
    return RoundOutcome(
        round=number,
        clients=np.array([5, 7, 8, 9]),
        malicious=MALICIOUS,
        true_quantities=np.array([1, 4, 2, 3]),
        claims=quantities,
        verdict=dataclasses.replace(verdict, **{**decided, **given}),
        accuracy=accuracy,
    )
