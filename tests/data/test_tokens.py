"""Titles to token ids."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedra.data.tokens import PAD, UNKNOWN, build_vocabulary, encode_titles, tokenize


def test_words_are_lower_cased_and_punctuation_stands_alone() -> None:
    assert tokenize("Dega's BIG day: Café, No. 1!") == [
        "dega",
        "'",
        "s",
        "big",
        "day",
        ":",
        "café",
        ",",
        "no",
        ".",
        "1",
        "!",
    ]


def test_vocabulary_ranks_by_frequency_then_alphabet() -> None:
    assert build_vocabulary([["b", "a"], ["c", "b"]]) == {"b": 2, "a": 3, "c": 4}


@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", "zz"]), max_size=40), max_size=5))
def test_encoding_pads_cuts_and_marks_unknown_words(titles: list[list[str]]) -> None:
    vocabulary = {"a": 2, "b": 3, "c": 4}
    ids = encode_titles(titles, vocabulary)
    assert ids.shape == (len(titles), 30)
    for row, title in zip(ids.tolist(), titles, strict=True):
        words = title[:30]
        assert row[: len(words)] == [vocabulary.get(word, UNKNOWN) for word in words]
        assert row[len(words) :] == [PAD] * (30 - len(words))


def test_a_title_may_be_shorter_or_longer_than_the_ids() -> None:
    ids = encode_titles([["a"], ["a", "b", "a"], []], {"a": 2, "b": 3}, length=2)
    assert ids.dtype == np.int64
    assert ids.tolist() == [[2, PAD], [2, 3], [PAD, PAD]]
