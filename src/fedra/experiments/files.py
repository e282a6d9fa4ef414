"""Run folders as one value to send over a network."""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

from fedra.files import inside


def packed(folder: Path) -> bytes:
    """Return a folder's files as a tar archive; a folder that is not there is an empty one, and links are left out."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not file.is_symlink() and not file.name.startswith("."):
                tar.add(file, arcname=str(file.relative_to(folder)))
    return archive.getvalue()


def unpack(archive: bytes, folder: Path) -> None:
    """Put an archive's files in the place of a folder."""
    inside(folder.parent, folder.name)
    beside = folder.with_name(f".{folder.name}.new")
    if beside.is_symlink():
        beside.unlink()
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(beside, filter="data")
    if folder.exists():
        shutil.rmtree(folder)
    beside.replace(folder)
