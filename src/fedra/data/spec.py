"""What fedra knows of a data set: its files and where they come from, how to load it, and how runs on it are set up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fedra.data.dataset import Dataset, DatasetError

# Stands for the data directory in instructions, and is replaced by the one that a user named.
_PLACE = "{data_dir}"


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file on a mirror, its md5, and for an archive the md5 of each file that is taken out of it.

    Attributes:
        size: in bytes; None: not known, and then 2 GiB at most.
        unpacked: the most bytes that an archive may hold.
    """

    name: str
    md5: str
    size: int | None = None
    members: Mapping[str, str] = field(default_factory=dict)
    unpacked: int = 2**31


@dataclass(frozen=True, kw_only=True)
class Source:
    """The folder under the data directory, the mirrors (each a URL that a file name is appended to) and the files."""

    folder: str
    mirrors: tuple[str, ...]
    files: tuple[RemoteFile, ...]


def _no_files(data_dir: Path) -> tuple[Path, ...]:
    return ()


def _no_note(data_dir: Path) -> str:
    return ""


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """All facts of a data set; the defaults are those of a data set that fedra does not know.

    Attributes:
        name: what it is called on the command line and in files.
        label: what people call it.
        summary: one line about it.
        load: makes it from the data directory, or None; further keyword arguments are its options.
        files: the files that it needs under a data directory.
        note: what else there is to say of it with this data directory.
        source: where it is downloaded from; None: it is not.
        not_downloaded: the reason where there is no source.
        instructions: what to do about missing or damaged files where there is no source; {data_dir} is the directory.
        model: a name of `fedra.models.MODELS`; None: text-cnn for token ids, else logistic.
        learning_rate: of the server.
        partition_seed: draws quantities and cuts; None: the seed of the run.
        client_keys: by what the data say who holds what, for the natural partition; the keys of `Dataset.owners`.
    """

    name: str
    label: str
    summary: str
    load: Callable[..., Dataset]
    files: Callable[[Path], tuple[Path, ...]] = _no_files
    note: Callable[[Path], str] = _no_note
    source: Source | None = None
    not_downloaded: str = "it has no public mirror"
    instructions: str = ""
    model: str | None = None
    learning_rate: float = 1e-3
    partition_seed: int | None = None
    client_keys: tuple[str, ...] = ()

    def remedy(self, data_dir: Path | None) -> str:
        """Return what to do about missing or damaged files."""
        place = str(data_dir or "DIR")
        if self.source is not None:
            return f"get it with: fedra data get {self.name} --data-dir {place}"
        return self.instructions.replace(_PLACE, place)

    def require_dir(self, data_dir: Path | None) -> Path:
        """Return the data directory; an error where there is none."""
        if data_dir is None:
            raise DatasetError(
                f"{self.name}: no data directory; give --data-dir or set FEDRA_DATA, or {self.remedy(data_dir)}"
            )
        return data_dir
