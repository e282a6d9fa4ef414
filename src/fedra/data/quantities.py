"""How many samples each client holds: laws by name, numbers that are stated, and a file of them."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedra import checks
from fedra.names import nearest, parse_spec
from fedra.seeding import generator
from fedra.untrusted import MEBIBYTE, clipped, read_text

LOGNORMAL_SIGMA = 3.0
LOGNORMAL_MEAN = 20.0
LOGNORMAL_MU = math.log(LOGNORMAL_MEAN) - 4.5

# Purposes and seeds define the partitions that results were computed with, so neither may change.
_PURPOSE = "partition/quantities"
_BLOCK = 4096

# A configuration holds the numbers, and has to stay small enough for the tables of grids.
_LONGEST = 32_768
_LARGEST_FILE = MEBIBYTE
_LONGEST_LAW = 200
_LARGEST_NUMBER = 10**12 - 1
_FILE_ENDINGS = (".txt", ".csv")
_FORM = 'give "lognormal sigma=3", "zipf s=1.2", "equal", numbers separated by commas, or a .txt or .csv file of them'

Counts = npt.NDArray[np.int64]


class QuantityLaw(ABC):
    """A law of the clients' quantities."""

    name: ClassVar[str]

    @property
    def text(self) -> str:
        """The one way in which a configuration writes this law."""
        stated = asdict(self)  # type: ignore[call-overload]
        return " ".join([self.name, *(f"{key}={str(value).removesuffix('.0')}" for key, value in stated.items())])

    @abstractmethod
    def sizes(self, num_clients: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        """Return a number in [0, 1] for each client, the largest 1, to which its quantity is in proportion."""

    def number(self, num_clients: int | None) -> int | None:
        """Return N, which is given or follows from the law; None: only the data can tell."""
        if num_clients is None:
            raise ValueError(f"quantities={self.text!r} needs the number of clients; give num_clients")
        return num_clients

    def quantities(self, num_samples: int, *, num_clients: int | None, seed: int) -> Counts:
        """Return how many of all samples each client holds."""
        number = self.number(num_clients)
        if number is None or number > num_samples:
            raise ValueError(
                f"num_clients={number}, but there are {num_samples} training samples and each client holds at least "
                f"one; give at most {num_samples}"
            )
        return apportioned(num_samples, self.sizes(number, generator(seed, _PURPOSE)))


@dataclass(frozen=True, kw_only=True)
class Lognormal(QuantityLaw):
    r""":math:`\ln q \sim N(\ln 20 - \sigma^2/2, \sigma^2)`: mean 20, if clients come until the data are used up."""

    name: ClassVar[str] = "lognormal"

    sigma: float = LOGNORMAL_SIGMA

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", _parameter("sigma", self.sigma))

    def sizes(self, num_clients: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        """Draw them."""
        drawn = self.sigma * rng.standard_normal(num_clients)
        # Less the largest first, so that no law is too wide for a float.
        return np.asarray(np.exp(drawn - drawn.max()))

    def number(self, num_clients: int | None) -> int | None:
        """Return N, where it is given."""
        return num_clients

    def quantities(self, num_samples: int, *, num_clients: int | None, seed: int) -> Counts:
        """Return how many of all samples each client holds, client after client where their number is not given."""
        if num_clients is None:
            mu = math.log(LOGNORMAL_MEAN) - self.sigma**2 / 2
            return lognormal_quantities(num_samples, sigma=self.sigma, mu=mu, seed=seed)
        return super().quantities(num_samples, num_clients=num_clients, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Zipf(QuantityLaw):
    r"""The r-th largest client has :math:`r^{-s}` of the largest; who has which rank is drawn."""

    name: ClassVar[str] = "zipf"

    s: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "s", _parameter("s", self.s))

    def sizes(self, num_clients: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        """Draw the ranks."""
        return np.asarray((1.0 + rng.permutation(num_clients)) ** -self.s)


@dataclass(frozen=True, kw_only=True)
class Equal(QuantityLaw):
    """All the same, but for one sample where the data cannot be cut evenly."""

    name: ClassVar[str] = "equal"

    def sizes(self, num_clients: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        """Nothing is drawn."""
        return np.ones(num_clients)


@dataclass(frozen=True)
class Stated(QuantityLaw):
    """A number for each client; data that are left over belong to nobody."""

    name: ClassVar[str] = "stated"

    counts: tuple[int, ...]

    @property
    def text(self) -> str:
        """The numbers, separated by commas."""
        return ",".join(map(str, self.counts))

    def sizes(self, num_clients: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        """In proportion to the numbers."""
        return np.array(self.counts) / max(self.counts)

    def number(self, num_clients: int | None) -> int | None:
        """Return how many numbers there are."""
        if num_clients is not None and num_clients != len(self.counts):
            raise ValueError(
                f"num_clients={num_clients}, but quantities has {len(self.counts)} numbers; give a number for each "
                "client, or leave num_clients out"
            )
        return len(self.counts)

    def quantities(self, num_samples: int, *, num_clients: int | None, seed: int) -> Counts:
        """Return the numbers, where there are data for them."""
        self.number(num_clients)
        if (total := sum(self.counts)) > num_samples:
            raise ValueError(
                f"quantities add up to {total}, but there are {num_samples} training samples; give smaller ones"
            )
        return np.array(self.counts, dtype=np.int64)


QUANTITY_LAWS: dict[str, type[QuantityLaw]] = {"lognormal": Lognormal, "zipf": Zipf, "equal": Equal}


def parse_quantities(text: str) -> QuantityLaw:
    """Read a law from its name and parameters, numbers separated by commas, or the path of a .txt or .csv file."""
    if _names_file(text):
        return _short_enough(_file_counts(Path(text.strip())), text.strip())
    if states_numbers(text):
        return _short_enough(_counts(text.split(","), "quantities"), "quantities")
    if len(text) > _LONGEST_LAW:
        raise ValueError(f"quantities={clipped(text, 80)!r} is no list of numbers, and too long for a law; {_FORM}")
    name, parameters = parse_spec(text, "quantities", _FORM)
    if name not in QUANTITY_LAWS:
        raise ValueError(f"quantities={clipped(text, 80)!r}{nearest(name, QUANTITY_LAWS)}; {_FORM}")
    law = QUANTITY_LAWS[name]
    valid = [known.name for known in fields(law)]  # type: ignore[arg-type]
    for key in parameters:
        if key not in valid:
            raise ValueError(f"quantities {name!r} has no parameter {key!r}{nearest(key, valid)}")
    return law(**parameters)


def quantities_text(value: Any) -> str:
    """Return quantities as the text that a configuration has: a list of numbers becomes one with commas."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        numbers = [checks.whole("a number of quantities", number, 1, _LARGEST_NUMBER) for number in value]
        if not numbers:
            raise ValueError(checks.wrong("quantities", value, "a whole number of at least 1 for each client"))
        return ",".join(map(str, numbers))
    return checks.text("quantities", value, "a law, a list of numbers, or the path of a .txt or .csv file of them")


def states_numbers(value: Any) -> bool:
    """Whether quantities are a number for each client, so that the number of clients follows from them."""
    if not isinstance(value, str):
        return isinstance(value, Sequence)
    return _names_file(value) or (
        re.fullmatch(r"[\s0-9,+-]*", value) is not None and re.search("[0-9]", value) is not None
    )


def client_quantities(
    num_samples: int, *, num_clients: int | None = None, quantities: str | None = None, seed: int
) -> Counts:
    """Return how many samples each client holds.

    Args:
        num_samples: how many there are.
        num_clients: N; None: as many as the law comes to.
        quantities: the law, see `parse_quantities`; None: the log-normal one of the paper.
        seed: of what is drawn.
    """
    checks.whole("num_samples", num_samples, 1)
    if num_clients is not None:
        checks.whole("num_clients", num_clients, 1)
    law = Lognormal() if quantities is None else parse_quantities(checks.text("quantities", quantities))
    return law.quantities(num_samples, num_clients=num_clients, seed=seed)


def apportioned(num_samples: int, sizes: npt.NDArray[np.float64]) -> Counts:
    """Share the samples out: one for each client, the rest in proportion to the sizes, by largest remainders."""
    rest = num_samples - len(sizes)
    # Whole numbers, so that no rounding can add or lose a sample.
    parts = [int(size) for size in np.floor(sizes * 2.0**53)]
    total = sum(parts)
    counts = np.array([1 + rest * part // total for part in parts], dtype=np.int64)
    remainders = [rest * part % total for part in parts]
    first = sorted(range(len(parts)), key=lambda client: -remainders[client])
    counts[first[: num_samples - int(counts.sum())]] += 1
    return counts


def lognormal_quantities(
    num_samples: int, *, sigma: float = LOGNORMAL_SIGMA, mu: float = LOGNORMAL_MU, seed: int
) -> Counts:
    """q = max(1, floor(exp(mu + sigma z))) client after client until the samples are used up, the last cut to fit."""
    checks.whole("num_samples", num_samples, 1)
    checks.number("sigma", sigma, least=0)
    checks.number("mu", mu)
    rng = generator(seed, _PURPOSE)
    blocks: list[npt.NDArray[np.int64]] = []
    left = num_samples
    while left > 0:
        # Capped before the cast, because a wide log-normal exceeds int64; a client can't hold more than all.
        drawn = np.clip(np.floor(rng.lognormal(mu, sigma, _BLOCK)), 1, num_samples).astype(np.int64)
        totals = np.cumsum(drawn)
        if totals[-1] >= left:
            last = int(np.searchsorted(totals, left))
            drawn = drawn[: last + 1]
            drawn[last] -= totals[last] - left
        blocks.append(drawn)
        left -= int(drawn.sum())
    return np.concatenate(blocks)


def _file_counts(path: Path) -> tuple[int, ...]:
    """Read a whole number for each client, a line or a comma after each; lines that begin with # are left out."""
    text = read_text(path, _LARGEST_FILE, what="quantities", form=_FORM)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return _counts([entry for line in lines for entry in line.rstrip().removesuffix(",").split(",")], str(path))


def _names_file(text: str) -> bool:
    return text.strip().lower().endswith(_FILE_ENDINGS)


def _short_enough(counts: tuple[int, ...], where: str) -> Stated:
    law = Stated(counts)
    if len(law.text) > _LONGEST:
        raise ValueError(
            f"{where} has {len(counts):,} numbers in {len(law.text):,} characters, {_LONGEST:,} at most; give a law "
            "and num_clients, or as partition a file with the client of each sample"
        )
    return law


def _parameter(name: str, value: Any) -> float:
    # Zero has one sign, so that a law has one text.
    return checks.number(f"{name} of quantities", value, least=0, most=100) + 0.0


def _counts(entries: list[str], where: str) -> tuple[int, ...]:
    if not entries:
        raise ValueError(f"{where} has no numbers; write a whole number for each client")
    for place, entry in enumerate(entries, start=1):
        if not re.fullmatch(r"\s*[1-9][0-9]{0,11}\s*", entry):
            raise ValueError(
                f"{where} has {clipped(entry, 40)!r} for client {place} of {len(entries)}; write a whole number of at "
                "least 1 for each client, a line or a comma after each"
            )
    return tuple(int(entry) for entry in entries)
