"""The assumed number of malicious clients m~ in a round, for the rules that need one."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from fedra import checks
from fedra.rules.base import Rule


def exact(ratio: float) -> Fraction:
    """Return a ratio as the decimal it was written as: 0.1 is one tenth, not the float just above it."""
    return Fraction(repr(float(ratio)))


@dataclass(frozen=True, kw_only=True)
class AssumesMalicious(Rule):
    """A rule that assumes m~ malicious clients: ``m~ = ceil(n * malicious_ratio)``, or `num_malicious` as given.

    Where n clients are too few for m~ the rule refuses; with `clamp` it takes the largest m~ that n allows instead.
    `condition` says what n it needs, in terms of m, as error messages call m~.
    """

    condition: ClassVar[str]

    malicious_ratio: float = 0.1
    num_malicious: int | None = None
    clamp: bool = False

    def __post_init__(self) -> None:
        checks.ratio(self.malicious_ratio)
        if self.num_malicious is not None:
            checks.whole("num_malicious", self.num_malicious)
        checks.switch("clamp", self.clamp)

    def for_federation(
        self, *, num_clients: int | None = None, malicious_ratio: float | None = None, setting: str | None = None
    ) -> Self:
        """Assume the ratio of the federation, where that is known."""
        return self if malicious_ratio is None else dataclasses.replace(self, malicious_ratio=malicious_ratio)

    @abstractmethod
    def most_malicious(self, num_sampled: int) -> int:
        """Return the largest m~ for which `condition` holds with n clients; negative where none does."""

    def expected_malicious(self, num_sampled: int) -> int:
        """Return m~ before any clamping."""
        if self.num_malicious is not None:
            return int(self.num_malicious)
        return math.ceil(num_sampled * exact(self.malicious_ratio))

    def assumed_malicious(self, num_sampled: int) -> int:
        """Return the m~ to work with for n clients."""
        expected = self.expected_malicious(num_sampled)
        return min(expected, max(0, self.most_malicious(num_sampled))) if self.clamp else expected

    def refusal(self, num_sampled: int) -> str:
        """Say by how much `condition` fails, and what can be done."""
        assumed = self.assumed_malicious(num_sampled)
        if assumed <= self.most_malicious(num_sampled):
            return ""
        remedy = "" if self.clamp else ", assume fewer malicious ones, or pass clamp=True"
        return (
            f"{self.name} needs {self.condition} for m assumed malicious clients, but has n = {num_sampled} and "
            f"m = {assumed}; sample more clients{remedy}"
        )
