"""Downloads with checksums: resumed after a break, tried on every mirror, in place only when complete and right."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tarfile
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

from fedra.data.dataset import DatasetError
from fedra.data.registry import DATASETS
from fedra.data.spec import RemoteFile, Source
from fedra.data.transfer import Progress, TransferError, transfer
from fedra.files import folder_inside, move_whole
from fedra.names import nearest

# For a file whose size is not known.
_MOST_BYTES = 2**31


def download_dataset(
    name: str,
    data_dir: str | Path,
    *,
    mirrors: Sequence[str] | None = None,
    progress: Progress | None = None,
    timeout: float = 30.0,
    attempts: int = 3,
    retry_wait: float = 1.0,
) -> tuple[Path, ...]:
    """Put the data set's files under ``data_dir`` and return their paths; files that are there and right stay.

    ``progress(file name, bytes done, bytes in all or None)`` is called as bytes arrive. Each mirror is tried up to
    ``attempts`` times, ``retry_wait`` seconds apart, and every try goes on where the last one stopped. A try ends after
    ``timeout`` seconds without a byte, or twice that with less than 1,000 bytes a second.
    """
    source = _source(name)
    addresses = tuple(mirrors) if mirrors is not None else source.mirrors
    for address in addresses:
        if not address.startswith(("http://", "https://")):
            raise DatasetError(f"mirror {address!r} is no http:// or https:// address")
    root = Path(data_dir).expanduser()
    folder = root / source.folder
    paths: list[Path] = []
    for file in source.files:
        wanted = dict(file.members) or {file.name: file.md5}
        paths += (folder / relative for relative in wanted)
        if all(_md5(folder / relative) == md5 for relative, md5 in wanted.items()):
            continue
        _make_folder(root, source.folder)
        if _md5(folder / file.name) != file.md5:
            _download_file(file, folder, addresses, progress or _silent, timeout, attempts, retry_wait)
        if file.members:
            _extract(file, folder)
    return tuple(paths)


class _Bounded(gzip.GzipFile):
    """What an archive unpacks to, as long as that is not more than it should be."""

    def __init__(self, path: Path, most: int) -> None:
        super().__init__(path)
        self._most = most

    def read(self, size: int | None = -1) -> bytes:
        block = super().read(size)
        self._most -= len(block)
        if self._most < 0:
            raise tarfile.ReadError("it unpacks to more than it should")
        return block


def _check_member(member: tarfile.TarInfo, most: int) -> None:
    # A file with holes says that it is larger than what is stored of it.
    if not member.isreg() or member.size > most:
        raise tarfile.ReadError(f"{member.name} in it is no file, or one of {member.size:,} bytes")


def _source(name: str) -> Source:
    downloadable = {known: spec.source for known, spec in DATASETS.items() if spec.source is not None}
    if name in downloadable:
        return downloadable[name]
    if name in DATASETS:
        reason = DATASETS[name].not_downloaded
        raise DatasetError(f"{name} is not downloaded: {reason}; downloadable: {', '.join(sorted(downloadable))}")
    raise DatasetError(f"unknown data set {name!r}{nearest(name, downloadable)}")


def _make_folder(root: Path, relative: str) -> Path:
    try:
        return folder_inside(root, *Path(relative).parts)
    except OSError as error:
        raise DatasetError(f"{root / relative}: cannot be made ({error}); choose another --data-dir") from error


def _silent(name: str, done: int, total: int | None) -> None:
    pass


def _download_file(
    file: RemoteFile,
    folder: Path,
    mirrors: Sequence[str],
    progress: Progress,
    timeout: float,
    attempts: int,
    retry_wait: float,
) -> None:
    part = folder / f"{file.name}.part"
    failures: list[str] = []
    usable = list(mirrors)
    for attempt in range(attempts):
        if attempt and usable:
            time.sleep(retry_wait)
        for mirror in tuple(usable):
            url = mirror.rstrip("/") + "/" + file.name
            try:
                resumed = transfer(
                    url,
                    part,
                    most=_MOST_BYTES if file.size is None else file.size,
                    timeout=timeout,
                    progress=lambda done, total: progress(file.name, done, total),
                )
                _check(url, part, file.md5, resumed=resumed)
            except TransferError as error:
                failures.append(str(error))
                if not error.retry:
                    usable.remove(mirror)
                continue
            _put(part, folder / file.name)
            return
    kept = f"; {part.stat().st_size} bytes are kept in {part}, call again to resume" if part.exists() else ""
    reasons = "; ".join(dict.fromkeys(failures)) or "no mirror given"
    raise DatasetError(f"{folder / file.name}: could not be downloaded ({reasons}){kept}")


def _put(part: Path, place: Path) -> None:
    try:
        move_whole(part, place)
    except OSError as error:
        raise DatasetError(f"{part}: is complete, and cannot be put in its place ({error})") from error


def _check(url: str, part: Path, md5: str, *, resumed: bool) -> None:
    found = _md5(part)
    if found != md5:
        part.unlink()
        # A resumed file may be wrong because of its old first half, so the mirror deserves a try from the start.
        raise TransferError(f"{url}: corrupt, md5 {found} instead of {md5}; the bad file was removed", retry=resumed)


def _md5(path: Path) -> str | None:
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _extract(file: RemoteFile, folder: Path) -> None:
    archive = folder / file.name
    temporary = Path(tempfile.mkdtemp(prefix=f".{file.name}.", dir=folder))
    try:
        with _Bounded(archive, file.unpacked) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as tar:
            for member in tar:
                if member.name in file.members:
                    _check_member(member, file.unpacked)
                    tar.extract(member, temporary, filter="data")
        for name, md5 in file.members.items():
            if _md5(temporary / name) != md5:
                raise tarfile.TarError(f"{name} in it does not have the md5 {md5}")
        for name in file.members:
            folder_inside(folder, *Path(name).parent.parts)
            move_whole(temporary / name, folder / name)
    except (tarfile.TarError, KeyError, EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        archive.unlink()
        raise DatasetError(
            f"{archive}: corrupt archive ({error}); the bad file was removed, download it again"
        ) from error
    except OSError as error:
        raise DatasetError(f"{archive}: cannot be unpacked ({error}); free some space and call again") from error
    finally:
        shutil.rmtree(temporary)
    archive.unlink()
