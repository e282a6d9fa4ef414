"""What is there of each data set, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fedra.data.cifar import batch_paths
from fedra.data.files import get_command
from fedra.data.glove import find_glove
from fedra.data.idx import IDX_STEMS, find_idx
from fedra.data.news import NEWS_PLACES, news_path, news_remedy
from fedra.data.registry import DATASETS, resolve_data_dir
from fedra.data.sources import SOURCES


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
    return [_status(name, given) for name in DATASETS]


def _status(name: str, given: Path | None) -> DatasetStatus:
    data_dir = given or Path("DIR")
    expected = _expected_files(name, data_dir)
    found = tuple((path, path.stat().st_size) for path in expected if path.is_file())
    missing = tuple(path for path in expected if not path.is_file())
    note = ""
    if name in NEWS_PLACES:
        glove = find_glove(data_dir)
        note = f"word vectors: {glove}" if glove else f"word vectors: random, no {data_dir / 'glove'}/*.txt"
    if name == "digits":
        note = "embedded"
    remedy = get_command(name, given) if name in SOURCES else news_remedy(given, name) if name in NEWS_PLACES else ""
    return DatasetStatus(
        name=name,
        summary=DATASETS[name].summary,
        found=found,
        missing=missing,
        remedy=remedy if missing else "",
        note=note,
    )


def _expected_files(name: str, data_dir: Path) -> tuple[Path, ...]:
    if name == "digits":
        return ()
    if name in NEWS_PLACES:
        return (news_path(data_dir, name),)
    if name == "cifar10":
        return batch_paths(data_dir)
    raw = data_dir / SOURCES[name].folder
    return tuple(find_idx(raw, stem) or raw / f"{stem}.gz" for stem in IDX_STEMS)
