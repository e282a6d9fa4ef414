"""Word vectors in GloVe's text format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedra.data import DatasetError, load_dataset
from fedra.data.glove import find_glove, read_glove, word_vectors

VOCABULARY = {"the": 2, "día": 3, ",": 4, "absent": 5}


def write(path: Path, text: str) -> Path:
    """Write a vector file."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


@pytest.mark.parametrize("ending", ["\n", "\r\n", " \n"])
def test_known_words_get_their_vectors_and_absent_ones_small_random_ones(tmp_path: Path, ending: str) -> None:
    lines = ["other 9 9 9", "the 0.5 -1e-2 3", "día 1 2 3", ", 4 5 6"]
    path = write(tmp_path / "v.txt", ending.join(lines) + ending)
    vectors = word_vectors(VOCABULARY, path)
    assert vectors.shape == (6, 3)
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(
        vectors[[0, 2, 3, 4]], np.array([[0, 0, 0], [0.5, -0.01, 3], [1, 2, 3], [4, 5, 6]], np.float32)
    )
    assert vectors[5].any()
    assert np.abs(vectors[[1, 5]]).max() < 1
    np.testing.assert_array_equal(vectors, word_vectors(VOCABULARY, path))


def test_entries_with_spaces_are_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path / "v.txt", "the 1 2 3\n. . . 7 8 9\nthe name@example.org 4 5 6\n")
    assert {word: vector.tolist() for word, vector in read_glove(path, VOCABULARY).items()} == {"the": [1, 2, 3]}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("the 1 2", "2 numbers where the first line has 3"),
        ("other 1 2", "2 numbers where the first line has 3"),
        ("", "0 numbers"),
        ("the 1 2 x", "not 3 finite numbers"),
        ("the 1 2 nan", "not 3 finite numbers"),
        ("the 1 2 1e99", "not 3 finite numbers"),
        ("the 1 2 3 4", "4 numbers where the first line has 3"),
    ],
)
def test_a_bad_line_is_told_by_file_and_number(tmp_path: Path, line: str, problem: str) -> None:
    path = write(tmp_path / "v.txt", f"first 1 2 3\n{line}\nlast 1 2 3\n")
    with pytest.raises(DatasetError, match=problem) as caught:
        read_glove(path, VOCABULARY)
    assert f"{path}, line 2" in str(caught.value)


def test_files_that_are_no_glove_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="word2vec header"):
        read_glove(write(tmp_path / "w2v.txt", "400000 3\nthe 1 2 3\n"), VOCABULARY)
    with pytest.raises(DatasetError, match="none of the 4 words"):
        read_glove(write(tmp_path / "alien.txt", "le 1 2 3\n"), VOCABULARY)
    with pytest.raises(DatasetError, match="none of the 4 words"):
        read_glove(write(tmp_path / "empty.txt", ""), VOCABULARY)
    with pytest.raises(DatasetError, match=r"absent\.txt: cannot be read"):
        read_glove(tmp_path / "absent.txt", VOCABULARY)


def test_the_preferred_file_is_found(tmp_path: Path) -> None:
    assert find_glove(tmp_path) is None
    for name, expected in (
        ("zzz.txt", "zzz.txt"),
        ("glove.6B.300d.txt", "glove.6B.300d.txt"),
        ("glove.6B.50d.txt", "glove.6B.300d.txt"),
        ("glove.6B.100d.txt", "glove.6B.100d.txt"),
    ):
        write(tmp_path / "glove" / name, "the 1 2 3\n")
        found = find_glove(tmp_path)
        assert found is not None
        assert found.name == expected


def test_the_glove_option_of_the_loader(tmp_path: Path, write_news: Callable) -> None:
    write_news(tmp_path / "MIND/news.tsv", [("ab"[number % 2], "the title") for number in range(20)])
    write(tmp_path / "glove/glove.100d.txt", "the 1 2 3\n")
    own = write(tmp_path / "own.txt", "title 1 2 3 4\n")
    found, given, none = (
        load_dataset("mind", tmp_path, **options) for options in ({}, {"glove": own}, {"glove": "none"})
    )
    assert (found.embeddings_source, given.embeddings_source, none.embeddings_source) == (
        "glove.100d.txt",
        "own.txt",
        "random",
    )
    shapes = [dataset.embeddings.shape for dataset in (found, given, none) if dataset.embeddings is not None]
    assert shapes == [(4, 3), (4, 4), (4, 100)]
