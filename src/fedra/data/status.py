"""What is there of each data set, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fedra.data.registry import DATASETS, resolve_data_dir
from fedra.data.spec import DatasetSpec


@dataclass(frozen=True, kw_only=True)
class DatasetStatus:
    """The files of one data set: found with their sizes in bytes, missing, and the remedy where some are missing."""

    name: str
    summary: str
    found: tuple[tuple[Path, int], ...]
    missing: tuple[Path, ...]
    remedy: str
    note: str = ""

    @property
    def ready(self) -> bool:
        """Whether the data set can be loaded as far as its files go; their content is checked when it is."""
        return not self.missing

    @property
    def state(self) -> str:
        """ "ready", "partial" or "missing"."""
        return "ready" if self.ready else "partial" if self.found else "missing"

    @property
    def size(self) -> int:
        """Bytes found."""
        return sum(size for _, size in self.found)


def dataset_status(data_dir: str | Path | None = None) -> list[DatasetStatus]:
    """The state of every named data set under ``data_dir``, or else under FEDRA_DATA."""
    given = resolve_data_dir(data_dir)
    return [_status(spec, given) for spec in DATASETS.values()]


def missing_datasets(names: Iterable[str], data_dir: str | Path | None, hint: str = "") -> list[str]:
    """Return a sentence for each of these data sets that is not there, with the remedy; `hint` is one more."""
    wanted = set(names)
    return [
        f"{status.name} is {status.state}: {status.remedy}, and name that directory by --data-dir or FEDRA_DATA "
        f"(fedra data lists what is there{hint})"
        for status in dataset_status(data_dir)
        if status.name in wanted and not status.ready
    ]


def _status(spec: DatasetSpec, given: Path | None) -> DatasetStatus:
    data_dir = given or Path("DIR")
    expected = spec.files(data_dir)
    missing = tuple(path for path in expected if not path.is_file())
    return DatasetStatus(
        name=spec.name,
        summary=spec.summary,
        found=tuple((path, path.stat().st_size) for path in expected if path.is_file()),
        missing=missing,
        remedy=spec.remedy(given) if missing else "",
        note=spec.note(data_dir),
    )
