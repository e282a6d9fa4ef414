"""Quantity attacks: how many samples malicious clients claim to have."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedra import checks
from fedra.attacks.view import Knowledge, Matrix, WhiteBoxView
from fedra.cohort import Floats
from fedra.redteam import largest_passing_claim

Quantities = npt.NDArray[np.int64]


class QuantityAttack(ABC):
    """A quantity attack: a frozen dataclass with keyword-only parameters."""

    name: ClassVar[str]
    knowledge: ClassVar[Knowledge] = "own"

    @abstractmethod
    def claims(self, true_quantities: Quantities) -> Floats:
        """Return what each malicious client claims, from the true quantities of all of them."""

    def claims_in_round(self, view: Any, updates: Matrix, claims: Floats) -> Floats:
        """Return what the m malicious clients of a round claim, who send (m, d) `updates` and planned `claims`."""
        return claims


@dataclass(frozen=True, kw_only=True)
class HonestQuantity(QuantityAttack):
    """The truth."""

    name: ClassVar[str] = "honest"

    def claims(self, true_quantities: Quantities) -> Floats:
        """Claim what is true."""
        return true_quantities.astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class EnlargedQuantity(QuantityAttack):
    r"""The same for all, :math:`q_{mal} = \max(1, \lfloor \mu_q + \alpha_q \sigma_q \rfloor)`.

    Mean and deviation (ddof=1; one client: :math:`\sigma_q = 0`) are over the malicious clients' true quantities.
    """

    name: ClassVar[str] = "enlarged"

    alpha_q: float

    def __post_init__(self) -> None:
        checks.number("alpha_q", self.alpha_q, least=0)

    def claims(self, true_quantities: Quantities) -> Floats:
        """Claim more than the mean."""
        true = true_quantities.astype(np.float64)
        if not len(true):
            return true
        deviation = true.std(ddof=1) if len(true) > 1 else 0.0
        return np.full(len(true), max(1.0, float(math.floor(true.mean() + self.alpha_q * deviation))))


@dataclass(frozen=True, kw_only=True)
class OneNumber(QuantityAttack):
    """One number for all."""

    name: ClassVar[str] = "one-number"

    claimed_quantity: float

    def __post_init__(self) -> None:
        checks.number("claimed_quantity", self.claimed_quantity, least=1)

    def claims(self, true_quantities: Quantities) -> Floats:
        """Claim it."""
        return np.full(len(true_quantities), float(self.claimed_quantity))


@dataclass(frozen=True, kw_only=True)
class AsMuchAsPasses(QuantityAttack):
    """The largest claim that the rule still keeps with what is sent, up to a billion; the same for all, in each round.

    As many clients as are kept with the claim 1 must be kept with it. Where none is, they claim the truth.
    """

    name: ClassVar[str] = "as-much-as-passes"
    knowledge: ClassVar[Knowledge] = "rule"

    def claims(self, true_quantities: Quantities) -> Floats:
        """Plan to claim the truth."""
        return true_quantities.astype(np.float64)

    def claims_in_round(self, view: WhiteBoxView, updates: Matrix, claims: Floats) -> Floats:
        """Search by bisection, calling the rule."""
        claim = largest_passing_claim(view.judge, updates)
        return np.full(len(claims), claim) if claim is not None else claims


QUANTITY_ATTACKS: dict[str, type[QuantityAttack]] = {
    "honest": HonestQuantity,
    "enlarged": EnlargedQuantity,
    "one-number": OneNumber,
    "as-much-as-passes": AsMuchAsPasses,
}

# The settings that quantity attacks take, by the attack that each belongs to.
_SETTINGS = {"enlarged": "alpha_q", "one-number": "claimed_quantity"}


def quantity_attack_name(*, alpha_q: float | None = None, claimed_quantity: float | None = None) -> str:
    """Return the quantity attack that these settings stand for."""
    checks.at_most_one(alpha_q=alpha_q, claimed_quantity=claimed_quantity)
    given = {"alpha_q": alpha_q, "claimed_quantity": claimed_quantity}
    return next((name for name, setting in _SETTINGS.items() if given[setting] is not None), HonestQuantity.name)


def make_quantity_attack(
    name: str | None = None, *, alpha_q: float | None = None, claimed_quantity: float | None = None
) -> QuantityAttack:
    """Make a quantity attack by name, None: the one that the settings stand for; they must belong to it."""
    meant = quantity_attack_name(alpha_q=alpha_q, claimed_quantity=claimed_quantity)
    name = meant if name is None else checks.choice("quantity_attack", name, QUANTITY_ATTACKS)
    given = {"alpha_q": alpha_q, "claimed_quantity": claimed_quantity}
    for other, setting in _SETTINGS.items():
        if name == other and given[setting] is None:
            raise ValueError(f"quantity_attack={name!r} needs {setting}; give it a number")
        if name != other and given[setting] is not None:
            raise ValueError(f"quantity_attack={name!r} and {setting}={given[setting]!r}; give one of them")
    own = {setting: given[setting] for attack, setting in _SETTINGS.items() if attack == name}
    return QUANTITY_ATTACKS[name](**own)


def claimed_by_malicious(
    true_quantities: Quantities, *, alpha_q: float | None = None, claimed_quantity: float | None = None
) -> Floats:
    """Return what each of all M malicious clients claims: its true quantity, or one number for all of them."""
    return make_quantity_attack(alpha_q=alpha_q, claimed_quantity=claimed_quantity).claims(true_quantities)
