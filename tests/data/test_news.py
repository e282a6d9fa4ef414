"""MIND and HuffPost from news.tsv."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedra.data import DatasetError, load_dataset
from fedra.data.tokens import PAD, UNKNOWN

ROWS = [(("sports", "news", "tv")[number % 3], f"Title {number}, the big day") for number in range(40)]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("mind", "MIND/news.tsv"),
        ("mind", "news.tsv"),
        ("mind", "MINDlarge_train/news.tsv"),
        ("huffpost", "huffpost/news.tsv"),
    ],
)
def test_titles_are_split_seven_one_two(tmp_path: Path, write_news: Callable, name: str, place: str) -> None:
    write_news(tmp_path / place, ROWS)
    dataset = load_dataset(name, tmp_path)
    assert dataset.train_inputs.shape == (28, 30)
    assert dataset.test_inputs.shape == (8, 30)
    assert dataset.class_names == ("news", "sports", "tv")
    assert dataset.embeddings is not None
    assert dataset.embeddings_source == "random"
    assert dataset.train_inputs.max() == len(dataset.embeddings) - 1
    assert not dataset.embeddings[PAD].any()
    again = load_dataset(name, tmp_path)
    np.testing.assert_array_equal(again.train_inputs, dataset.train_inputs)
    np.testing.assert_array_equal(again.embeddings, dataset.embeddings)


def test_the_split_of_the_paper_has_its_sizes(tmp_path: Path, write_news: Callable) -> None:
    write_news(tmp_path / "MIND/news.tsv", [("ab"[number % 2], "x") for number in range(101_527)])
    dataset = load_dataset("mind", tmp_path)
    assert (len(dataset.train_labels), len(dataset.test_labels)) == (71_068, 20_307)


def test_labels_stay_with_their_titles(tmp_path: Path, write_news: Callable) -> None:
    write_news(
        tmp_path / "MIND/news.tsv",
        [("even" if number % 2 == 0 else "odd", "w" * (1 + number % 2)) for number in range(50)],
    )
    dataset = load_dataset("mind", tmp_path)
    for inputs, labels in (
        (dataset.train_inputs, dataset.train_labels),
        (dataset.test_inputs, dataset.test_labels),
    ):
        tokens = {(int(row[0]), int(label)) for row, label in zip(inputs, labels, strict=True)}
        assert len(tokens) == 2
        assert {label for _, label in tokens} == {0, 1}


def test_words_only_in_test_titles_are_unknown(tmp_path: Path, write_news: Callable) -> None:
    write_news(tmp_path / "MIND/news.tsv", [("ab"[number % 2], f"common unique{number}") for number in range(50)])
    dataset = load_dataset("mind", tmp_path)
    assert (dataset.test_inputs[:, 1] == UNKNOWN).all()
    assert (dataset.train_inputs[:, 1] > UNKNOWN).all()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_quotes_and_odd_separators_are_ordinary_characters(tmp_path: Path, newline: str) -> None:
    (tmp_path / "MIND").mkdir()
    line = 'N1\t{}\tsub\t"It\u2028s" \x85a "test'
    text = newline.join(line.format("ab"[number % 2]) for number in range(20)) + newline
    (tmp_path / "MIND/news.tsv").write_bytes(text.encode())
    dataset = load_dataset("mind", tmp_path)
    assert len(dataset.train_labels) + len(dataset.test_labels) == 18


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda lines: [*lines[:6], b"N6\tnews\tsub", *lines[7:]], "line 7: 3 tab-separated columns"),
        (lambda lines: [*lines[:6], b"", *lines[7:]], "line 7: 1 tab-separated columns"),
        (lambda lines: [*lines[:6], b"N6\t\tsub\ttitle", *lines[7:]], "line 7: the category is empty"),
        (lambda lines: [*lines[:6], b"N6\tnews\tsub\t\xff\xfe", *lines[7:]], "line 7: not UTF-8"),
        (lambda lines: lines[:9], "9 rows of 3 categories"),
        (lambda lines: lines[::3], "14 rows of 1 categories"),
        (lambda lines: [], "line 1: 1 tab-separated columns"),
    ],
)
def test_damage_is_told_with_the_line(
    tmp_path: Path, write_news: Callable, damage: Callable[[list[bytes]], list[bytes]], problem: str
) -> None:
    path = write_news(tmp_path / "MIND/news.tsv", ROWS)
    path.write_bytes(b"\n".join(damage(path.read_bytes().splitlines())))
    with pytest.raises(DatasetError, match=problem) as caught:
        load_dataset("mind", tmp_path)
    assert str(path) in str(caught.value)
    assert "https://msnews.github.io" in str(caught.value)


def test_a_missing_file_is_told_with_the_place_it_belongs_to(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no such file") as caught:
        load_dataset("huffpost", tmp_path)
    assert str(tmp_path / "huffpost/news.tsv") in str(caught.value)


@pytest.mark.parametrize(("name", "classes", "train"), [("mind", 15, 1400), ("huffpost", 41, 25830)])
def test_real_titles(real_data_dir: Path, name: str, classes: int, train: int) -> None:
    path = real_data_dir / {"mind": "MIND", "huffpost": "huffpost"}[name] / "news.tsv"
    if not path.is_file() or not (real_data_dir / "glove").is_dir():
        pytest.skip(f"needs {name}'s news.tsv and glove/*.txt under FEDRA_DATA")
    dataset = load_dataset(name, real_data_dir)
    assert dataset.num_classes >= classes
    assert len(dataset.train_labels) >= train
    assert dataset.embeddings_source != "random"
    assert (dataset.train_inputs == UNKNOWN).sum() == 0
