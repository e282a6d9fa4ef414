"""How many samples malicious clients claim to have."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from fedra import checks


def claimed_by_malicious(
    true_quantities: npt.NDArray[np.int64], *, alpha_q: float | None = None, claimed_quantity: float | None = None
) -> npt.NDArray[np.float64]:
    r"""Return what each of all M malicious clients claims: its true quantity, or one number for all of them.

    With `alpha_q` that is :math:`q_{mal} = \max(1, \lfloor \mu_q + \alpha_q \sigma_q \rfloor)` over the malicious
    clients' true quantities (ddof=1; one client: :math:`\sigma_q = 0`), with `claimed_quantity` the number itself.
    """
    checks.at_most_one(alpha_q=alpha_q, claimed_quantity=claimed_quantity)
    true = true_quantities.astype(np.float64)
    if claimed_quantity is not None:
        return np.full(len(true), checks.number("claimed_quantity", claimed_quantity, least=1))
    if alpha_q is None:
        return true
    checks.number("alpha_q", alpha_q, least=0)
    if not len(true):
        return true
    deviation = true.std(ddof=1) if len(true) > 1 else 0.0
    return np.full(len(true), max(1.0, float(math.floor(true.mean() + alpha_q * deviation))))
