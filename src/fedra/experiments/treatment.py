"""How a run's clients were treated: what attackers got and what honest clients lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.checks import is_number

TREATMENT_TYPES = {
    "malicious_weight": "float64",
    "honest_dropped": "float64",
    "honest_data_dropped": "float64",
    "honest_silenced": "float64",
}
TREATMENT_COLUMNS = ("round", "malicious", "true_quantity", "kept", "weight")
# A client that has less than this of what FedAvg would give it among the honest ones has nothing to say.
SILENCED_BELOW = 0.1

_share = partial(is_number, least=0, most=1)
TREATMENT_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    name: lambda value: value is None or _share(value) for name in TREATMENT_TYPES
}


def treatment(clients: Mapping[str, npt.NDArray[Any]]) -> dict[str, float]:
    r"""Return shares from 0 to 1 over a whole run; NaN where there was nobody, or the rule gives no weights.

    `malicious_weight` is the mean over rounds of the weight of malicious clients, of all weight in the round;
    `honest_dropped` and `honest_data_dropped` are the honest clients, and their true quantities, that were not kept;
    `honest_silenced` are the honest clients that were not kept or have

    .. math:: w_i < 0.1 \, W_h \, q_i / \sum_{j \in h} q_j, \qquad W_h = \sum_{j \in h} w_j,

    or no weight at all, h being the honest clients of the round.
    """
    rounds, place = np.unique(clients["round"], return_inverse=True)
    honest = ~clients["malicious"].astype(bool)
    quantities = clients["true_quantity"].astype(np.float64)
    dropped = honest & ~clients["kept"].astype(bool)
    weights = np.abs(clients["weight"].astype(np.float64))
    weighed = np.isfinite(weights)
    weights = np.where(weighed, weights, 0.0)

    def by_round(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        return np.bincount(place, weights=values.astype(np.float64), minlength=len(rounds)).astype(np.float64)

    total, of_honest = by_round(weights), by_round(weights * honest)
    shares = _quotient(total - of_honest, total)
    attacked = bool((~honest).any()) and bool((total > 0).any())
    fair = of_honest[place] * _quotient(quantities, by_round(quantities * honest)[place])
    silenced = dropped | (honest & weighed & ((weights <= 0) | (weights < SILENCED_BELOW * fair)))
    return {
        "malicious_weight": float(np.clip(shares[total > 0].mean(), 0, 1)) if attacked else np.nan,
        "honest_dropped": _share_of(dropped, honest),
        "honest_data_dropped": _share_of(quantities * dropped, quantities * honest),
        "honest_silenced": _share_of(silenced, honest) if weighed.any() else np.nan,
    }


def _quotient(part: npt.NDArray[Any], whole: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return np.asarray(np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0))


def _share_of(part: npt.NDArray[Any], whole: npt.NDArray[Any]) -> float:
    return float(part.sum() / whole.sum()) if whole.sum() > 0 else np.nan
