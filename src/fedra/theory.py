r"""The paper's bounds as numbers: how far benign updates scatter, and what one round of FedRA can be made to return.

Symbols: n clients of which m are malicious, quantities :math:`q^i`, updates :math:`g^i` with mean :math:`\mu`, and
:math:`\sigma` the standard deviation of each coordinate of one sample's gradient (Yi et al., KDD 2023).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra import checks
from fedra.cohort import Flags, Floats

_PAIR = math.sqrt(2 * math.log(2))
# Sums are taken of q / 2^64: exact for q >= 1, and far from overflow for any number of clients.
_SHIFT = 64
_LAST_ODD = 2.0**53


@dataclass(frozen=True, kw_only=True)
class QuantityCondition:
    r"""Whether :math:`\max_{\text{malicious}} q < \sum_{\mathcal B} q`, without which Proposition 1 promises nothing.

    Attributes:
        holds: whether the condition holds.
        largest_malicious: the largest quantity a malicious client claims; 0 where there is none.
        sum_smallest: the sum over B, the n-m-2 benign clients of smallest quantity; infinite where it leaves float64.
        margin: `sum_smallest` less `largest_malicious`.
        largest_claim: the largest whole number of samples an attacker may claim before the guarantee lapses.
    """

    holds: bool
    largest_malicious: float
    sum_smallest: float
    margin: float
    largest_claim: float


@dataclass(frozen=True, kw_only=True)
class SelectionBounds:
    r"""Bounds on the client of least score at :math:`\gamma = 0.5`: its update g, its claim q.

    Attributes:
        count_factor: :math:`A_{n,m}`.
        quantity_factor: :math:`B_q`.
        offset: :math:`C_{n,m}`.
        to_neighbours: bound on :math:`E[\sqrt q\,\|g - \bar g\|_1]`, the distance from its benign neighbours' mean.
        to_mean: bound on :math:`E[\sqrt q\,\|g - \mu\|_1]`; infinite where the bound's condition fails.
    """

    count_factor: float
    quantity_factor: float
    offset: float
    to_neighbours: float
    to_mean: float


def distance_bound(first_quantity: float, second_quantity: float, *, sigma: npt.ArrayLike) -> float:
    r"""Return Lemma 1's bound on the distance of two benign updates.

    .. math:: E\,\|g^i - g^j\|_1 \le \sqrt{2 \ln 2}\,\sqrt{1/q^i + 1/q^j}\;\|\sigma\|_1

    `sigma` is the vector of standard deviations, or its sum.
    """
    first = _checked_quantity("first_quantity", first_quantity)
    second = _checked_quantity("second_quantity", second_quantity)
    return _PAIR * math.sqrt(1 / first + 1 / second) * _l1(sigma)


def error_bound(*, sigma: npt.ArrayLike) -> float:
    r"""Return Lemma 2's bound on a benign update's quantity-aware error, whatever its quantity.

    .. math:: E[\sqrt{q^i}\,\|g^i - \mu\|_1] \le \sqrt{2 \ln 2}\;\|\sigma\|_1
    """
    return _PAIR * _l1(sigma)


def largest_error_bound(num_clients: int, quantity: float, *, sigma: npt.ArrayLike) -> float:
    r"""Return Lemma 3's bound on the worst of n benign updates of equal quantity.

    .. math:: E[\max_i \|g^i - \mu\|_1] \le \sqrt{2 \ln(2n)}\;\|\sigma\|_1 / \sqrt q
    """
    clients = checks.whole("num_clients", num_clients, 1)
    return _largest(clients) / math.sqrt(_checked_quantity("quantity", quantity)) * _l1(sigma)


def quantity_condition(
    quantities: Iterable[Any],
    *,
    malicious: Sequence[Any] | npt.NDArray[Any] | None = None,
    num_malicious: int | None = None,
) -> QuantityCondition:
    r"""Check :math:`\max_{\text{malicious}} q < \sum_{\mathcal B} q` for one round, where 2m+2 < n.

    `malicious` gives indices or a mask. With `num_malicious` alone the m largest claims are taken to be the malicious
    ones; if the condition holds for these it holds whichever m clients lie.
    """
    claims = _checked_quantities(quantities)
    if malicious is not None and num_malicious is None:
        mask, count = _checked_malicious(malicious, len(claims))
    elif num_malicious is not None and malicious is None:
        count = checks.whole("num_malicious", num_malicious, 0)
        mask = np.zeros(len(claims), dtype=bool)
        mask[np.argsort(claims, kind="stable")[max(0, len(claims) - count) :]] = True
    else:
        raise TypeError(
            f"malicious={malicious!r} and num_malicious={num_malicious!r}; "
            "give one of them: who is malicious (indices or a mask), or how many"
        )
    _require_majority(len(claims), count)
    return _condition(claims, mask)


def selection_bounds(
    quantities: Iterable[Any], malicious: Sequence[Any] | npt.NDArray[Any], *, sigma: npt.ArrayLike
) -> SelectionBounds:
    r"""Return Proposition 1, as printed.

    .. math:: A = \sqrt{2 \ln 2}\,(n-m) + m \sqrt{2 \ln 2(n-m)}, \quad
              B_q = \frac{\max_{\text{benign}}(q+1)\,\min_{\text{benign}}\sqrt q}{\sum_{\mathcal B} q}, \quad
              C = \sqrt{2 \ln 2(n-m)} + \sqrt{2 \ln 2}

    `to_neighbours` is :math:`A B_q \|\sigma\|_1` and `to_mean` :math:`(A B_q + C)\|\sigma\|_1`, with B the n-m-2 benign
    clients of smallest quantity. Colluders can exceed it, see `collusion_bounds`.
    """
    claims = _checked_quantities(quantities)
    mask, count = _checked_malicious(malicious, len(claims))
    _require_majority(len(claims), count)
    benign = len(claims) - count
    condition = _condition(claims, mask)
    return _bounds(
        claims[~mask], count, neighbours=benign - 2, offset=_largest(benign) + _PAIR, sigma=sigma, holds=condition.holds
    )


def collusion_bounds(
    quantities: Iterable[Any], malicious: Sequence[Any] | npt.NDArray[Any], *, sigma: npt.ArrayLike
) -> SelectionBounds:
    r"""Return Proposition 1 with room for malicious clients that are one another's neighbours.

    .. math:: C = \sqrt{2 \ln 2(n-m)}\,\max(1, \sqrt{|\mathcal B|\,\max_{\text{malicious}} q / \sum_{\mathcal B} q})

    The client of least score may have only n-2m-2 benign neighbours, and the data choose which: B is the n-2m-2 benign
    clients of smallest quantity, and no condition on the claims is needed. Not in the paper; docs/theory.md derives it.
    """
    claims = _checked_quantities(quantities)
    mask, count = _checked_malicious(malicious, len(claims))
    _require_majority(len(claims), count)
    benign = claims[~mask]
    neighbours = len(claims) - 2 * count - 2
    mean_smallest = _scaled_sum(_smallest(benign, neighbours)) / neighbours
    excess = math.sqrt(math.ldexp(_most(claims[mask]), -_SHIFT) / mean_smallest)
    offset = _largest(len(benign)) * max(1.0, excess)
    return _bounds(benign, count, neighbours=neighbours, offset=offset, sigma=sigma, holds=True)


def gradient_bound(*, smoothness: float, initial_gap: float, round_errors: npt.ArrayLike) -> float:
    r"""Return Theorem 1's bound on the smallest expected squared gradient norm over T rounds of step :math:`1/L_F`.

    .. math:: \min_t E\,\|\nabla F(w_t)\|_2^2 \le \frac{2 L_F}{T} E[F(w_0) - F(w^*)] + \frac1T \sum_{t=0}^{T-1} e_t^2

    `round_errors` holds each round's :math:`e_t = (A B_q + C)\|\sigma\|_1`, which is `SelectionBounds.to_mean`. This is
    the theorem as printed; its proof divides each :math:`e_t^2` by the quantity of the client selected in round t.
    """
    curvature = checks.number("smoothness", smoothness, least=0)
    gap = checks.number("initial_gap", initial_gap, least=0)
    errors = np.asarray(round_errors, dtype=np.float64)
    if errors.ndim != 1 or not errors.size:
        raise ValueError(f"round_errors have shape {errors.shape}; give one number for each of T >= 1 rounds")
    if not (errors >= 0).all():
        raise ValueError(f"round_errors hold {errors[~(errors >= 0)][0]}; give numbers >= 0, one for each round")
    # Divided before they are squared and added, so that only a mean beyond float64 becomes infinite.
    with np.errstate(over="ignore"):
        noise = float(np.square(errors / math.sqrt(errors.size)).sum())
    return 2 / errors.size * (curvature * gap) + noise


def _bounds(
    benign: Floats, num_malicious: int, *, neighbours: int, offset: float, sigma: npt.ArrayLike, holds: bool
) -> SelectionBounds:
    count_factor = _PAIR * len(benign) + num_malicious * _largest(len(benign))
    smallest = _smallest(benign, neighbours)
    # Relative to the largest of B the sum is between 1 and |B|, and no product on the way leaves float64.
    unit = float(smallest[-1])
    spread = (float(benign.max()) + 1) / unit
    quantity_factor = spread / math.fsum(smallest / unit) * math.sqrt(float(benign.min()))
    scale = _l1(sigma)
    to_neighbours = count_factor * (quantity_factor * scale)
    return SelectionBounds(
        count_factor=count_factor,
        quantity_factor=quantity_factor,
        offset=offset,
        to_neighbours=to_neighbours,
        to_mean=to_neighbours + offset * scale if holds else math.inf,
    )


def _condition(claims: Floats, mask: Flags) -> QuantityCondition:
    benign = claims[~mask]
    largest = _most(claims[mask])
    scaled = _scaled_sum(_smallest(benign, len(benign) - 2))
    with np.errstate(over="ignore"):
        total = float(np.ldexp(scaled, _SHIFT))
    return QuantityCondition(
        holds=math.ldexp(largest, -_SHIFT) < scaled,
        largest_malicious=largest,
        sum_smallest=total,
        margin=total - largest,
        largest_claim=float(math.ceil(total) - 1) if total <= _LAST_ODD else math.nextafter(total, 0),
    )


def _largest(count: int) -> float:
    return math.sqrt(2 * math.log(2 * count))


def _most(claims: Floats) -> float:
    return float(claims.max(initial=0.0))


def _smallest(benign: Floats, count: int) -> Floats:
    return np.sort(benign)[:count]


def _scaled_sum(quantities: Floats) -> float:
    return math.fsum(np.ldexp(quantities, -_SHIFT))


def _require_majority(num_sampled: int, num_malicious: int) -> None:
    if not 2 * num_malicious + 2 < num_sampled:
        raise ValueError(
            f"the theory needs 2m+2 < n, but n = {num_sampled} and m = {num_malicious}; "
            "give more clients, or fewer malicious ones"
        )


def _checked_malicious(malicious: Sequence[Any] | npt.NDArray[Any], num_sampled: int) -> tuple[Flags, int]:
    given = np.asarray(malicious)
    if given.ndim != 1:
        raise ValueError(f"malicious has shape {given.shape}; give indices, or a mask of n = {num_sampled} values")
    if given.dtype == bool:
        if len(given) != num_sampled:
            raise ValueError(
                f"malicious is a mask of {len(given)} values for n = {num_sampled} quantities; give one each"
            )
        return given, int(given.sum())
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(f"malicious holds {given.dtype} values; give whole-number indices, or a mask of booleans")
    mask = np.zeros(num_sampled, dtype=bool)
    for index in given:
        if not 0 <= index < num_sampled:
            raise ValueError(f"malicious holds index {index}, but n = {num_sampled}; give indices from 0 to n-1")
        if mask[index]:
            raise ValueError(f"malicious holds index {index} twice; name each client once")
        mask[index] = True
    return mask, given.size


def _checked_quantities(quantities: Iterable[Any]) -> Floats:
    return np.array([_checked_quantity(f"quantities[{i}]", q) for i, q in enumerate(quantities)], dtype=np.float64)


def _checked_quantity(name: str, quantity: Any) -> float:
    return checks.number(name, quantity, least=1, wanted="a finite number of samples, 1 or more")


def _l1(sigma: npt.ArrayLike) -> float:
    deviations = np.asarray(sigma, dtype=np.float64)
    if deviations.ndim > 1:
        raise ValueError(f"sigma has shape {deviations.shape}; give a vector of standard deviations, or their sum")
    wrong = deviations[~(np.isfinite(deviations) & (deviations >= 0))]
    if wrong.size:
        raise ValueError(f"sigma holds {wrong[0]}; give finite standard deviations of at least 0")
    with np.errstate(over="ignore"):
        return float(deviations.sum())
