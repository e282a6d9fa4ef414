"""MIND and HuffPost: titles and categories from a news.tsv (Wu et al. 2020; Misra 2022)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from fedra.data.dataset import Dataset, DatasetError
from fedra.data.glove import find_glove, word_vectors
from fedra.data.raw_files import read_bytes
from fedra.data.spec import DatasetSpec
from fedra.data.tokens import build_vocabulary, encode_titles, tokenize
from fedra.seeding import generator

_CATEGORY, _TITLE, _COLUMNS = 1, 3, 4


def load_mind(data_dir: Path | None, *, glove: str | Path | None = None) -> Dataset:
    """MIND: news title -> category."""
    return _load(data_dir, MIND, glove)


def load_huffpost(data_dir: Path | None, *, glove: str | Path | None = None) -> Dataset:
    """HuffPost headlines: title -> category."""
    return _load(data_dir, HUFFPOST, glove)


def read_news(path: Path, remedy: str) -> tuple[list[str], list[str]]:
    """Categories and titles of a news.tsv; quotes are ordinary characters in it."""
    data = read_bytes(path, remedy)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DatasetError(f"{path}, line {line}: not UTF-8 ({error.reason}); {remedy}") from error
    categories, titles = [], []
    for number, line_text in enumerate(text.removesuffix("\n").split("\n"), start=1):
        columns = line_text.removesuffix("\r").split("\t")
        if len(columns) < _COLUMNS:
            raise DatasetError(
                f"{path}, line {number}: {len(columns)} tab-separated columns, expected at least {_COLUMNS} "
                f"(id, category, subcategory, title); {remedy}"
            )
        if not columns[_CATEGORY]:
            raise DatasetError(f"{path}, line {number}: the category is empty; {remedy}")
        categories.append(columns[_CATEGORY])
        titles.append(columns[_TITLE])
    return categories, titles


def _load(data_dir: Path | None, spec: DatasetSpec, glove: str | Path | None) -> Dataset:
    remedy = spec.remedy(data_dir)
    data_dir = spec.require_dir(data_dir)
    (path,) = spec.files(data_dir)
    categories, titles = read_news(path, remedy)
    if len(titles) < 10 or len(set(categories)) < 2:
        raise DatasetError(
            f"{path}: {len(titles)} rows of {len(set(categories))} categories; the split 7:1:2 needs at least 10 rows "
            f"and 2 categories; {remedy}"
        )
    class_names = tuple(sorted(set(categories)))
    class_index = {category: index for index, category in enumerate(class_names)}
    labels = np.array([class_index[category] for category in categories], np.int64)
    # 7:1:2; the tenth between the two is a validation part, which neither training nor testing touches.
    order = generator(0, "news/split").permutation(len(titles))
    train, test = order[: 7 * len(titles) // 10], order[7 * len(titles) // 10 + len(titles) // 10 :]
    train_words, test_words = ([tokenize(titles[row]) for row in rows] for rows in (train, test))
    vocabulary = build_vocabulary(train_words)
    vectors_path = _glove_path(data_dir, glove)
    return Dataset(
        name=spec.name,
        train_inputs=encode_titles(train_words, vocabulary),
        train_labels=labels[train],
        test_inputs=encode_titles(test_words, vocabulary),
        test_labels=labels[test],
        num_classes=len(class_names),
        class_names=class_names,
        embeddings=word_vectors(vocabulary, vectors_path),
        embeddings_source=vectors_path.name if vectors_path else "random",
    )


def _glove_path(data_dir: Path, glove: str | Path | None) -> Path | None:
    if glove is None:
        return find_glove(data_dir)
    return None if glove == "none" else Path(glove)


def _first_found(places: tuple[str, ...], data_dir: Path) -> tuple[Path, ...]:
    """Return the first of the known places where the file is, or the place where it should be."""
    paths = [data_dir / place for place in places]
    return (next((path for path in paths if path.is_file()), paths[0]),)


def _vectors_note(data_dir: Path) -> str:
    glove = find_glove(data_dir)
    return f"word vectors: {glove}" if glove else f"word vectors: random, no {data_dir / 'glove'}/*.txt"


MIND = DatasetSpec(
    name="mind",
    label="MIND",
    summary="MIND news titles, 18 categories",
    load=load_mind,
    files=partial(
        _first_found, ("MIND/news.tsv", "MIND/MINDlarge_train/news.tsv", "MINDlarge_train/news.tsv", "news.tsv")
    ),
    note=_vectors_note,
    not_downloaded="its licence must be accepted at https://msnews.github.io",
    instructions="get MINDlarge_train.zip from https://msnews.github.io and unpack its news.tsv to "
    "{data_dir}/MIND/news.tsv",
    model="text-cnn",
    learning_rate=1e-4,
    # 2,912 clients, standard deviation 292, maximum 9,471: within 5% of the paper's Table 1.
    partition_seed=492,
)

HUFFPOST = DatasetSpec(
    name="huffpost",
    label="HuffPost",
    summary="HuffPost headlines, 41 categories",
    load=load_huffpost,
    files=partial(_first_found, ("huffpost/news.tsv",)),
    note=_vectors_note,
    not_downloaded="it has no public mirror in this layout",
    instructions="lay out the HuffPost News Category Dataset like MIND's news.tsv (id, category, subcategory, title) "
    "in {data_dir}/huffpost/news.tsv",
    model="text-cnn",
    learning_rate=1e-4,
    # 1,291 clients, a mean of 20.
    partition_seed=988,
)
