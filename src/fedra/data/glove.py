"""Word vectors from GloVe's original text format (Pennington et al. 2014)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedra.data.dataset import DatasetError
from fedra.data.tokens import PAD
from fedra.seeding import generator

RANDOM_DIMENSION = 100
_RANDOM_STD = 0.1
_PREFERRED = ("100d", "300d")


def find_glove(data_dir: Path) -> Path | None:
    """The file DIR/glove/*.txt to use: 100d before 300d before any other, then by name."""
    candidates = sorted(path for path in (data_dir / "glove").glob("*.txt") if path.is_file())
    for dimension in _PREFERRED:
        for path in candidates:
            if dimension in path.name.split("."):
                return path
    return candidates[0] if candidates else None


def word_vectors(vocabulary: Mapping[str, int], glove: Path | None) -> npt.NDArray[np.float32]:
    """Embeddings by token id: zeros for the padding, GloVe's where it knows the word, else N(0, 0.1^2) seeded."""
    known = read_glove(glove, vocabulary) if glove else {}
    dimension = len(next(iter(known.values()))) if known else RANDOM_DIMENSION
    rows = max(vocabulary.values(), default=1) + 1
    embeddings = generator(0, "text/vectors").normal(0.0, _RANDOM_STD, (rows, dimension)).astype(np.float32)
    embeddings[PAD] = 0.0
    for word, vector in known.items():
        embeddings[vocabulary[word]] = vector
    return embeddings


def read_glove(path: Path, vocabulary: Mapping[str, int]) -> dict[str, npt.NDArray[np.float32]]:
    """The vectors of the words in ``vocabulary``; every line's shape is checked, only the needed numbers are parsed."""
    wanted = {word.encode(): word for word in vocabulary}
    found: dict[str, npt.NDArray[np.float32]] = {}
    dimension = 0
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                fields = line.count(b" ") - line.endswith((b" \n", b" \r\n", b" "))
                if number == 1:
                    dimension = fields
                    if dimension < 2:
                        raise _bad_line(path, number, "no word followed by numbers (delete a word2vec header line)")
                if fields == dimension:
                    word, _, numbers = line.partition(b" ")
                    if word in wanted:
                        found.setdefault(wanted[word], _parse(path, number, numbers, dimension))
                elif fields < dimension or _all_numbers(line.split()[1:]):
                    raise _bad_line(path, number, f"{fields} numbers where the first line has {dimension}")
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror}); give the path of a GloVe .txt file") from error
    if not found:
        raise DatasetError(f"{path}: none of the {len(wanted)} words of the titles is in it; is it a GloVe file?")
    return found


def _parse(path: Path, number: int, numbers: bytes, dimension: int) -> npt.NDArray[np.float32]:
    vector = np.empty(0, np.float32)
    with contextlib.suppress(ValueError):
        vector = np.fromstring(numbers, dtype=np.float32, sep=" ")
    if vector.size != dimension or not np.isfinite(vector).all():
        raise _bad_line(path, number, f"not {dimension} finite numbers after the word")
    return vector


def _all_numbers(fields: list[bytes]) -> bool:
    # Some GloVe files hold entries with spaces, such as ". . .": longer than the rest, but not numbers throughout.
    try:
        [float(field) for field in fields]
    except ValueError:
        return False
    return True


def _bad_line(path: Path, number: int, problem: str) -> DatasetError:
    return DatasetError(
        f"{path}, line {number}: {problem}; unpack the file again from https://nlp.stanford.edu/projects/glove/"
    )
