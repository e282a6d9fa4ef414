"""What is known of a federation, from a user's files: quantities, an audit trail, updates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from fedra.assess.federation import MOST_CLIENTS, MOST_SAMPLES, SAMPLES_EACH
from fedra.assess.rounds import LARGEST_ROUND, RealRounds
from fedra.audit.reading import check_trail, read_trail
from fedra.audit.summary import summarise
from fedra.cohort import Floats
from fedra.data.quantities import Stated, parse_quantities
from fedra.seeding import generator
from fedra.untrusted import MEBIBYTE, clipped, read_text
from fedra.updates import UpdateFiles, open_updates
from fedra.updates.quantities import claims_of, read_quantities
from fedra.updates.readers import Reader, TensorReader, UpdateReader

_MOST_BYTES = 16 * MEBIBYTE
_ENDINGS = (".txt", ".csv", ".json")
_FORM = (
    "write one number of at least 1 for each client, a line or a comma after each, or a name and a number in each line"
)
# Rules cost time in proportion; of longer updates so many values are looked at, drawn at random.
MOST_VALUES = 10_000
_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False, kw_only=True)
class Source:
    """What a file tells of a federation; None where it does not.

    Attributes:
        quantities: of the clients that it names.
        known: where they come from, as a sentence.
        num_clients: N.
        num_sampled: n.
        num_malicious: M.
        rounds: T.
    """

    quantities: Floats
    known: str
    num_clients: int | None = None
    num_sampled: int | None = None
    num_malicious: int | None = None
    rounds: int | None = None

    def filled(self, num_clients: int | None, seed: int) -> Source:
        """Return it with quantities of all N clients: those that it does not have are drawn from those it has."""
        number = self.num_clients if num_clients is None else num_clients
        missing = 0 if number is None else number - len(self.quantities)
        if missing <= 0:
            return self
        drawn = generator(seed, "assess/others").choice(self.quantities, missing)
        known = f"{self.known}; those of the other {missing:,} are drawn from them"
        quantities = np.concatenate([self.quantities, drawn])
        return replace(self, quantities=quantities, known=known)


def stated_quantities(text: str, *, num_clients: int | None, seed: int) -> Source:
    """Read quantities: a file, numbers with commas between, or a law such as "lognormal sigma=3" with N."""
    path = Path(text)
    if text.strip().lower().endswith(_ENDINGS) or path.is_file():
        return quantities_file(path)
    law = parse_quantities(text)
    if isinstance(law, Stated):
        return Source(quantities=np.array(law.counts, dtype=np.float64), known="quantities as given")
    if num_clients is None:
        raise ValueError(
            f"quantities={clipped(text, 80)!r} is a law, which needs the number of clients; give num_clients"
        )
    if num_clients > MOST_CLIENTS:
        raise ValueError(f"num_clients={num_clients}; give at most {MOST_CLIENTS:,}")
    held = law.quantities(SAMPLES_EACH * num_clients, num_clients=num_clients, seed=seed)
    return Source(
        quantities=held.astype(np.float64),
        known=f"quantities are drawn from a law, {law.text}, {SAMPLES_EACH} samples a client on average",
    )


def quantities_file(path: Path) -> Source:
    """Read a file with a number for each client, or a name and a number."""
    known = f"quantities are those of {clipped(path.name, 80)}"
    if path.is_file() and path.stat().st_size > _MOST_BYTES:
        raise ValueError(
            f"{path} has more than {_MOST_BYTES:,} bytes; give at most {MOST_CLIENTS:,} clients, a sample of them for "
            "instance"
        )
    if path.suffix.lower() == ".json":
        return Source(quantities=_numbers(list(read_quantities(path).values()), path), known=known)
    text = read_text(path, _MOST_BYTES, what="quantities", form=_FORM)
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise ValueError(f"{path} has no numbers; {_FORM}")
    if all(map(_is_numbers, lines)):
        cells = [line.rstrip(",").split(",") for line in lines]
        if len(lines) > 1 and all(len(row) == 2 for row in cells):
            raise ValueError(
                f"{path} has two numbers in each line; write one, or a first line client,quantity to say which is which"
            )
        return Source(quantities=_numbers([cell for row in cells for cell in row], path), known=known)
    if any("," in line or len(line.split()) > 1 for line in lines):
        return Source(quantities=_numbers(list(read_quantities(path).values()), path), known=known)
    return Source(quantities=_numbers(lines, path), known=known)


def _is_numbers(line: str) -> bool:
    return re.fullmatch(r"[-+0-9.eE,\s]+", line) is not None


def _numbers(entries: Sequence[object], path: Path) -> Floats:
    """Return numbers, each finite and at least 1; the first that is none is an error that names it."""
    if len(entries) > MOST_CLIENTS:
        raise ValueError(
            f"{path} has {len(entries):,} numbers; give at most {MOST_CLIENTS:,}, a sample of them for instance"
        )
    held = np.empty(len(entries))
    for place, entry in enumerate(entries):
        try:
            held[place] = float(entry) if isinstance(entry, str | int | float) else np.nan
        except (ValueError, OverflowError):
            held[place] = np.nan
        if not 1 <= held[place] < np.inf:
            raise ValueError(f"{path} has {clipped(entry, 40)!r} for client {place + 1} of {len(entries):,}; {_FORM}")
    return held


def audit_trail(path: Path) -> Source:
    """Read what clients claimed in the training rounds of an audit trail, the median of each."""
    trail = read_trail(path)
    check_trail(path, trail)
    claims = [each.median_claim for each in summarise(trail) if each.median_claim is not None]
    usable = np.array([claim for claim in claims if 1 <= claim <= MOST_SAMPLES])
    if not len(usable):
        raise ValueError(f"{path} has no claim of any client yet; assess it when rounds have ended, or give quantities")
    asked = Counter((record["run"], record["round"]) for record in trail.clients if record["phase"] == "train")
    return Source(
        quantities=usable,
        known=f"quantities are what {len(usable):,} clients claimed, as the trail {clipped(path.name, 80)} has it "
        f"(the median of "
        "each; a liar's claim is among them)",
        num_sampled=min(round(median(asked.values())), len(usable)),
    )


def real_rounds(
    paths: Sequence[Path], quantities: Path | None, *, base: Path | None = None, seed: int = 0
) -> RealRounds:
    """Read the updates of a round, which are taken to be honest; of long ones 10,000 values, drawn at random.

    Args:
        paths: one for each client, as `fedra.open_updates` takes them.
        quantities: a file of names and numbers, as `fedra aggregate` takes it; None: the same for all.
        base: the model that clients began with, where the files are models.
        seed: of what is drawn.
    """
    with open_updates(paths, base) as opened:
        for name, fault in zip(opened.client_ids, opened.faults, strict=True):
            if fault:
                raise ValueError(f"update of {clipped(name, 80)}: {fault}; leave it out, or put the right file there")
        chosen = list(range(len(opened)))
        if len(chosen) > LARGEST_ROUND:
            chosen = sorted(generator(seed, "assess/files").permutation(len(opened))[:LARGEST_ROUND].tolist())
        if quantities is None:
            held = np.full(len(opened), float(SAMPLES_EACH))
        else:
            held = _numbers(claims_of(opened.paths, read_quantities(quantities), quantities), quantities)
        values = np.arange(opened.form.dimension)
        note = ""
        if len(values) > MOST_VALUES:
            values = np.sort(generator(seed, "assess/values").choice(len(values), MOST_VALUES, replace=False))
            note = f"Of {opened.form.dimension:,} values of an update {MOST_VALUES:,} are looked at, drawn at random."
        rows = np.stack([_row(opened, place, values) for place in chosen])
    for place, row in zip(chosen, rows, strict=True):
        if not np.isfinite(row).all():
            raise ValueError(f"update of {clipped(opened.client_ids[place], 80)} holds values that are not finite")
    return RealRounds(updates=rows, quantities=held[chosen], note=note, seed=seed)


def _row(opened: UpdateFiles, place: int, values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
    contents = opened.contents_of(place)
    assert contents is not None
    row = TensorReader(contents, opened.form, place)
    base = None if opened.base is None else TensorReader(opened.base, opened.form, None)
    reader: Reader = row if base is None else UpdateReader(row, base)
    found = []
    for first in range(0, opened.form.dimension, _BLOCK):
        last = min(first + _BLOCK, opened.form.dimension)
        wanted = values[(values >= first) & (values < last)]
        if len(wanted):
            block = np.empty(last - first, dtype=opened.form.dtype)
            reader.read(first, last, block)
            found.append(block[wanted - first])
    return np.concatenate(found)
