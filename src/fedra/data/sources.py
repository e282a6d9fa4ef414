"""Where data sets can be downloaded, and what the files must hash to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fedra.data.cifar import BINARY_FOLDER
from fedra.data.idx import IDX_STEMS


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file on a mirror, its md5, and for an archive the md5 of each file that is taken out of it.

    Attributes:
        size: in bytes; None: not known, and then 2 GiB at most.
        unpacked: the most bytes that an archive may hold.
    """

    name: str
    md5: str
    size: int | None = None
    members: Mapping[str, str] = field(default_factory=dict)
    unpacked: int = 2**31


@dataclass(frozen=True, kw_only=True)
class Source:
    """The folder under the data directory, the mirrors (each a URL that a file name is appended to) and the files."""

    folder: str
    mirrors: tuple[str, ...]
    files: tuple[RemoteFile, ...]


def _idx_files(*known: tuple[str, int]) -> tuple[RemoteFile, ...]:
    return tuple(
        RemoteFile(name=f"{stem}.gz", md5=md5, size=size) for stem, (md5, size) in zip(IDX_STEMS, known, strict=True)
    )


SOURCES: dict[str, Source] = {
    "mnist": Source(
        folder="MNIST/raw",
        mirrors=(
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
        ),
        files=_idx_files(
            ("f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
            ("d53e105ee54ea40749a09fcbcd1e9432", 28_881),
            ("9fb629c4189551a2d022fa330f9573f3", 1_648_877),
            ("ec29112dd5afa0611ce80d1b7f02629c", 4_542),
        ),
    ),
    "fashion-mnist": Source(
        folder="FashionMNIST/raw",
        mirrors=(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        ),
        files=_idx_files(
            ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
            ("25c81989df183df01b3e8a0aad5dffbe", 29_515),
            ("bef4ecab320f06d8554ea6380940ec79", 4_422_102),
            ("bb300cfdad3c16e7a12a480ee83cd310", 5_148),
        ),
    ),
    # The binary version rather than the python one: it needs no pickle.
    "cifar10": Source(
        folder="",
        mirrors=("https://www.cs.toronto.edu/~kriz/",),
        files=(
            RemoteFile(
                name="cifar-10-binary.tar.gz",
                md5="c32a1d4ab5d03f1284b67883e8d87530",
                size=170_052_171,
                # Six batches of 30,730,000 bytes, and a few texts.
                unpacked=190_000_000,
                members={
                    f"{BINARY_FOLDER}/data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
                    f"{BINARY_FOLDER}/data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
                    f"{BINARY_FOLDER}/data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
                    f"{BINARY_FOLDER}/data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
                    f"{BINARY_FOLDER}/data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
                    f"{BINARY_FOLDER}/test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
                },
            ),
        ),
    ),
}
