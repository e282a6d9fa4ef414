"""Titles to token ids."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

PAD, UNKNOWN = 0, 1
TITLE_LENGTH = 30
_TOKEN = re.compile(r"\w+|[^\w\s]")


def tokenize(title: str) -> list[str]:
    """Lower-cased words, each punctuation mark a token of its own, as in GloVe's vocabulary."""
    return _TOKEN.findall(title.lower())


def build_vocabulary(titles: Iterable[Sequence[str]]) -> dict[str, int]:
    """Token ids from 2 on, the most frequent word first, equal counts in alphabetical order."""
    counts = Counter(word for title in titles for word in title)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: index for index, word in enumerate(ranked, start=UNKNOWN + 1)}


def encode_titles(
    titles: Sequence[Sequence[str]], vocabulary: Mapping[str, int], *, length: int = TITLE_LENGTH
) -> npt.NDArray[np.int64]:
    """Token ids (titles, length): cut at ``length``, padded with 0, words outside the vocabulary 1."""
    ids = np.full((len(titles), length), PAD, np.int64)
    for row, title in zip(ids, titles, strict=True):
        tokens = [vocabulary.get(word, UNKNOWN) for word in title[:length]]
        row[: len(tokens)] = tokens
    return ids
