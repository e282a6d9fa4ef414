"""How many samples malicious clients claim to have."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def claimed_by_malicious(
    true_quantities: npt.NDArray[np.int64], *, alpha_q: float | None = None, claimed_quantity: float | None = None
) -> npt.NDArray[np.float64]:
    r"""Return what each of all M malicious clients claims: its true quantity, or one number for all of them.

    With `alpha_q` that is :math:`q_{mal} = \max(1, \lfloor \mu_q + \alpha_q \sigma_q \rfloor)` over the malicious
    clients' true quantities (ddof=1; one client: :math:`\sigma_q = 0`), with `claimed_quantity` the number itself.
    """
    if alpha_q is not None and claimed_quantity is not None:
        raise ValueError(f"alpha_q={alpha_q} and claimed_quantity={claimed_quantity}; give one of them")
    true = true_quantities.astype(np.float64)
    if claimed_quantity is not None:
        if not (math.isfinite(claimed_quantity) and claimed_quantity >= 1):
            raise ValueError(f"claimed_quantity={claimed_quantity}; give a finite number of at least 1")
        return np.full(len(true), float(claimed_quantity))
    if alpha_q is None or not len(true):
        return true
    if not (math.isfinite(alpha_q) and alpha_q >= 0):
        raise ValueError(f"alpha_q={alpha_q}; give a finite number of at least 0")
    deviation = true.std(ddof=1) if len(true) > 1 else 0.0
    return np.full(len(true), max(1.0, float(math.floor(true.mean() + alpha_q * deviation))))
