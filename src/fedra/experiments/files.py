"""Files that appear whole or not at all, and run folders as one value to send over a network."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file beside its place and move it there in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    write(temporary)
    temporary.replace(path)


def packed(folder: Path) -> bytes:
    """Return a folder's files as a tar archive; a folder that is not there is an empty one."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not file.name.startswith("."):
                tar.add(file, arcname=str(file.relative_to(folder)))
    return archive.getvalue()


def unpack(archive: bytes, folder: Path) -> None:
    """Put an archive's files in the place of a folder."""
    beside = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(beside, filter="data")
    if folder.exists():
        shutil.rmtree(folder)
    beside.replace(folder)
