"""What is there and what is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fedra.data import DATASETS, DatasetStatus, dataset_status


def by_name(data_dir: Path | None) -> dict[str, DatasetStatus]:
    """The states by name."""
    return {status.name: status for status in dataset_status(data_dir)}


def test_an_empty_directory_has_only_the_embedded_set(tmp_path: Path) -> None:
    states = by_name(tmp_path)
    assert list(states) == list(DATASETS)
    assert {name: status.state for name, status in states.items()} == {
        name: "ready" if name in ("digits", "flights") else "missing" for name in DATASETS
    }
    assert states["cifar10"].remedy == f"get it with: fedra data get cifar10 --data-dir {tmp_path}"
    assert str(tmp_path / "MIND/news.tsv") in states["mind"].remedy
    assert states["digits"].remedy == ""


def test_without_a_directory_nothing_is_found() -> None:
    assert by_name(None)["mnist"].state == "missing"
    assert "--data-dir DIR" in by_name(None)["mnist"].remedy


def test_sizes_and_missing_files(tmp_path: Path, write_idx: Callable, write_news: Callable) -> None:
    write_idx(tmp_path / "MNIST" / "raw")
    write_idx(tmp_path / "FashionMNIST" / "raw", packed=False)
    lost = tmp_path / "FashionMNIST" / "raw" / "t10k-labels-idx1-ubyte"
    lost.unlink()
    news = write_news(tmp_path / "huffpost" / "news.tsv", [("a", "b")])
    states = by_name(tmp_path)
    raw = tmp_path / "MNIST" / "raw"
    assert states["mnist"].state == "ready"
    assert states["mnist"].size == sum(path.stat().st_size for path in raw.iterdir())
    assert states["fashion-mnist"].state == "partial"
    assert states["fashion-mnist"].missing == (lost.with_name(f"{lost.name}.gz"),)
    assert len(states["fashion-mnist"].found) == 3
    assert states["huffpost"].found == ((news, news.stat().st_size),)
    assert "random" in states["huffpost"].note
    (tmp_path / "glove").mkdir()
    (tmp_path / "glove" / "glove.6B.100d.txt").write_text("the 1 2\n")
    assert "glove.6B.100d.txt" in by_name(tmp_path)["huffpost"].note
