"""Files that fedra writes: whole or not at all, and never outside the folder that they belong to.

A folder may come from somebody else, with links where files and folders are expected. A link in the place of a file is
replaced by the file; one in the place of a folder, of a lock, or of a file that is appended to, is an error that names
it. The folder that the caller names may itself be a link. Whoever can change the folder meanwhile is not held off.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

LOCK = ".lock"

# Of files that are being written; a killed process leaves one.
_FRESH = ".fedra-{}.new"
# Should something else take a file's place after the look at it: no link is followed, no pipe waited for.
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_KINDS = {stat.S_IFREG: "a file", stat.S_IFDIR: "a directory", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


def inside(root: Path, *names: str) -> Path:
    """Return a path below `root`, having checked that no link on the way leads elsewhere."""
    path = root
    for name in names:
        if name in ("", ".", "..") or Path(name).name != name:
            raise ValueError(f"{name!r} is not the name of one file or folder in {path}")
        path = path / name
        if path.is_symlink():
            raise OSError(
                f"{path} is a link to {os.readlink(path)!r}, and nothing outside {root} is written or removed; "
                "put a folder in its place"
            )
    return path


def folder_inside(root: Path, *names: str) -> Path:
    """Return a folder below `root`, made where it is not there."""
    path = inside(root, *names)
    path.mkdir(parents=True, exist_ok=True)
    return path


def remove_folder(root: Path, *names: str) -> None:
    """Remove a folder below `root` with all that can be removed in it; links in it are not followed."""
    shutil.rmtree(inside(root, *names), ignore_errors=True)


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file beside its place, bring it to disk, and move it there in one step.

    Args:
        path: where it goes; its folder is there, and is one to write into (see `folder_inside`).
        write: called with an empty file of a name that nobody knew before.
    """
    _check_kind(path, stat.S_IFREG, stat.S_IFLNK)
    fresh = path.with_name(_FRESH.format(secrets.token_hex(4)))
    os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, 0o666))
    try:
        write(fresh)
        move_whole(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def move_whole(finished: Path, path: Path) -> None:
    """Bring a finished file to disk and move it to its place in one step, on the same file system."""
    _check_kind(path, stat.S_IFREG, stat.S_IFLNK)
    with open_plain(finished, "rb") as written:
        os.fsync(written.fileno())
    finished.replace(path)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file as `write_whole` does."""
    write_whole(path, lambda fresh: fresh.write_bytes(content))


def write_text(path: Path, text: str, errors: str = "strict") -> None:
    """Write a text as `write_whole` does, in UTF-8."""
    write_bytes(path, text.encode("utf-8", errors))


def write_at(path: Path, content: bytes) -> None:
    """Write a file to a place that a user named; a link there is not replaced, since it may be meant."""
    _check_kind(path, stat.S_IFREG)
    write_bytes(path, content)


def open_plain(path: Path, mode: str, buffering: int = -1) -> IO[bytes]:
    """Open a file in binary; what is there and is no file, such as a link or a pipe, is an error that names it."""
    _check_kind(path, stat.S_IFREG)
    return open(path, mode, buffering, opener=lambda name, flags: os.open(name, flags | _PLAIN, 0o666))


@contextmanager
def locked(folder: Path, in_use: str) -> Iterator[None]:
    """Hold a folder by a file that nothing is written to; ValueError(in_use) where somebody else holds it.

    What a killed process was writing is removed.
    """
    import fcntl  # Not on every system, unlike the rest of this file.

    with open_plain(folder / LOCK, "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(in_use) from None
        for leftover in folder.glob(_FRESH.format("*")):
            if leftover.is_symlink() or not leftover.is_dir():
                leftover.unlink()
        yield


def _check_kind(path: Path, *kinds: int) -> None:
    """Raise where something of another kind is at a path itself, wherever a link there leads."""
    try:
        kind = stat.S_IFMT(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if kind not in kinds:
        found = f"a link to {os.readlink(path)!r}" if kind == stat.S_IFLNK else _KINDS.get(kind, "a device")
        raise OSError(f"{path} is {found}, where a file belongs; move it away, or name another place")
