"""Who holds each training sample where the data say so, and a file that says so."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedra.untrusted import MEBIBYTE, clipped, read_text

OWNER_FILE_ENDINGS = (".txt", ".csv")

_LARGEST_FILE = 64 * MEBIBYTE
_LONGEST_NAME = 100
_DIGITS = 16
_PINNED = re.compile(rf"(?P<path>.+)#(?P<digest>[0-9a-f]{{{_DIGITS}}})", re.DOTALL)
# What programs write where they have no value; no client is called so.
_NO_VALUE = ("", "nan", "null", "none", "na", "n/a", "<na>")
_FORM = "write the name or number of a client for each training sample, one a line"


@dataclass(frozen=True, kw_only=True, eq=False)
class Owners:
    """Training sample i belongs to client ``clients[i]``, called ``names[clients[i]]``; no client has nothing."""

    clients: npt.NDArray[np.int64]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.clients, np.ndarray) or self.clients.dtype != np.int64 or self.clients.ndim != 1:
            raise ValueError("clients of samples must be a one-dimensional NumPy array of int64")
        if not len(self.clients) or self.clients.min() < 0 or self.clients.max() >= len(self.names):
            raise ValueError(
                f"clients of {len(self.clients)} samples must be numbers of the {len(self.names)} names, from 0 to "
                f"{len(self.names) - 1}"
            )
        if (empty := np.flatnonzero(np.bincount(self.clients, minlength=len(self.names)) == 0)).size:
            raise ValueError(f"client {self.names[empty[0]]!r} holds no sample; leave it out")
        if len(set(self.names)) != len(self.names):
            raise ValueError("two clients have one name; give each its own")

    @classmethod
    def of(cls, held_by: npt.NDArray[np.str_] | list[str]) -> Owners:
        """Number the clients of samples, by number where all names are whole numbers, else in alphabetical order."""
        names, places = np.unique(np.asarray(held_by, dtype=np.str_), return_inverse=True)
        order = np.arange(len(names))
        if all(re.fullmatch(r"[0-9]{1,18}", name) for name in names.tolist()):
            order = np.argsort(np.array([int(name) for name in names.tolist()], dtype=np.int64), kind="stable")
        rank = np.empty(len(names), dtype=np.int64)
        rank[order] = np.arange(len(names))
        return cls(clients=rank[places.reshape(-1)], names=tuple(names[order].tolist()))


def is_owner_file(text: str) -> bool:
    """Whether the text of a partition names a file, with or without its checksum."""
    return _taken_apart(text)[0].lower().endswith(OWNER_FILE_ENDINGS)


def pinned_owner_file(text: str) -> str:
    """Return a file's path with a checksum of what it says, so that a run has one partition whatever becomes of it.

    The path is made absolute, so that the run can go on from another folder.
    """
    path, digest = _taken_apart(text)
    return text if digest else f"{Path(path).absolute()}#{_digest(_names_in(Path(path)))}"


def owner_file_path(text: str) -> Path:
    """Return the path of such a file, without its checksum."""
    return Path(_taken_apart(text)[0])


def owner_file_digest(text: str) -> str:
    """Return the checksum of a file that `pinned_owner_file` has pinned."""
    return _taken_apart(text)[1]


def read_owner_file(text: str, num_samples: int) -> Owners:
    """Read who holds each of so many training samples from a file, which must say what it said when it was pinned."""
    name, digest = _taken_apart(text)
    path = Path(name)
    names = _names_in(path)
    if digest and _digest(names) != digest:
        raise ValueError(
            f"{path} does not say what it said when the run was described (checksum {_digest(names)}, not {digest}); "
            "put the file back, or describe a new run with it"
        )
    if len(names) != num_samples:
        raise ValueError(
            f"{path} has the clients of {len(names):,} samples, but there are {num_samples:,} training samples; write "
            "one line for each, in the order of the training data"
        )
    return Owners.of(names)


def _taken_apart(text: str) -> tuple[str, str]:
    found = _PINNED.fullmatch(text)
    return (found["path"], found["digest"]) if found else (text, "")


def _digest(names: list[str]) -> str:
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:_DIGITS]


def _names_in(path: Path) -> list[str]:
    """Return the line of each sample; blank lines and those that begin with # are left out."""
    text = read_text(path, _LARGEST_FILE, what="the clients of samples", form=_FORM)
    # Only line feeds end lines: other characters that Python takes for line ends could hide a sample in a name.
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    names = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not names:
        raise ValueError(f"{path} has no clients; {_FORM}")
    # A name once, however many samples it has.
    for name in set(names):
        if name.lower() in _NO_VALUE or "," in name or len(name) > _LONGEST_NAME or not name.isprintable():
            raise ValueError(
                f"{path} has {clipped(name, 40)!r} for sample {names.index(name) + 1}; {_FORM}, up to {_LONGEST_NAME} "
                "characters and without commas"
            )
    return names
