"""One HTTP transfer into a .part file, resumed where an earlier one stopped."""

from __future__ import annotations

import http.client
import re
import ssl
import stat
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO

from fedra.data.dataset import DatasetError
from fedra.data.pace import Pace
from fedra.files import open_plain
from fedra.untrusted import clipped

Progress = Callable[[str, int, int | None], None]
_BLOCK = 1 << 16
# Slower than the slowest line in use, and too fast for a file to take days.
_LEAST_PER_SECOND = 1000
_NETWORK_ERRORS = (urllib.error.URLError, http.client.HTTPException, ssl.SSLError, TimeoutError, ConnectionError)


class TransferError(Exception):
    """A transfer that failed; ``retry`` says whether the same address is worth another try."""

    def __init__(self, problem: str, *, retry: bool) -> None:
        """Keep the problem in words and the verdict."""
        super().__init__(problem)
        self.retry = retry


def transfer(url: str, part: Path, *, most: int, timeout: float, progress: Callable[[int, int | None], None]) -> bool:
    """Fetch ``url`` into ``part``, going on from the bytes it holds; returns whether any of those were used.

    More than ``most`` bytes, ``timeout`` seconds without any, and less than 1,000 a second over twice that time end it.
    """
    have = _kept(part)
    if have > most:
        part.unlink()
        have = 0
    seconds = 2 * timeout
    with Pace(seconds=seconds, least=int(seconds * _LEAST_PER_SECOND)) as pace:
        try:
            return _fetch(url, part, have, most, timeout, progress, pace)
        except TransferError:
            if pace.missed:
                raise TransferError(
                    f"{url}: too slow, less than {pace.least:,} bytes in {seconds:g} s", retry=True
                ) from None
            raise


def _fetch(
    url: str,
    part: Path,
    have: int,
    most: int,
    timeout: float,
    progress: Callable[[int, int | None], None],
    pace: Pace,
) -> bool:
    headers = {"User-Agent": "fedra", "Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        with pace.opener().open(urllib.request.Request(url, headers=headers), timeout=timeout) as response:
            # A server that does not know Range answers 200 and starts at the beginning, and so does the file then.
            start = _range_start(url, response.headers.get("Content-Range"), have) if response.status == 206 else 0
            length = response.headers.get("Content-Length")
            total = start + int(length) if length and re.fullmatch("[0-9]{1,18}", length) else None
            if total is not None and total > most:
                raise TransferError(f"{url}: announces {total:,} bytes, the file has at most {most:,}", retry=False)
            _copy(response, url, part, start, total, most, progress, pace)
    except urllib.error.HTTPError as error:
        return _answer_to_error(url, error, part, have)
    except _NETWORK_ERRORS as error:
        reason = clipped(getattr(error, "reason", None) or repr(error))
        raise TransferError(f"{url}: {reason}", retry=True) from error
    except ValueError as error:
        # Such as a redirection to what is no address.
        if isinstance(error, DatasetError):
            raise
        raise TransferError(f"{url}: {clipped(error)}", retry=False) from error
    return start > 0


def _kept(part: Path) -> int:
    """Return the size of an earlier transfer's file; what else is in its place, or also has another name, goes."""
    try:
        found = part.lstat()
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
            return found.st_size
        part.unlink()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise DatasetError(f"{part}: is in the way ({error.strerror}); move it away") from error
    return 0


def _range_start(url: str, content_range: str | None, have: int) -> int:
    match = re.match("bytes ([0-9]{1,18})-", content_range or "")
    if not match or int(match[1]) != have:
        raise TransferError(f"{url}: asked for bytes from {have}, got {clipped(repr(content_range))}", retry=False)
    return have


def _copy(
    response: http.client.HTTPResponse,
    url: str,
    part: Path,
    start: int,
    total: int | None,
    most: int,
    progress: Callable[[int, int | None], None],
    pace: Pace,
) -> None:
    done = start
    progress(done, total)
    with _open_part(part, append=start > 0) as out:
        # read1 hands over what has arrived, so that a stall loses nothing.
        while block := response.read1(_BLOCK):
            pace.arrived(len(block))
            done += len(block)
            if done > most:
                break
            _write(out, block, part)
            progress(done, total)
    if done > most:
        part.unlink()
        raise TransferError(f"{url}: sends more than the {most:,} bytes of the file; it was removed", retry=False)
    if pace.missed or (total is not None and done < total):
        raise TransferError(f"the connection ended after {done} of {total} bytes", retry=True)


def _open_part(part: Path, *, append: bool) -> IO[bytes]:
    try:
        return open_plain(part, "ab" if append else "wb")
    except OSError as error:
        raise DatasetError(f"{part}: cannot be written ({error}); choose another --data-dir") from error


def _write(out: IO[bytes], block: bytes, part: Path) -> None:
    try:
        out.write(block)
    except OSError as error:
        raise DatasetError(f"{part}: cannot be written ({error.strerror}); free some space and try again") from error


def _answer_to_error(url: str, error: urllib.error.HTTPError, part: Path, have: int) -> bool:
    if error.code != 416:
        raise TransferError(f"{url}: HTTP {error.code} {clipped(error.reason)}", retry=error.code >= 500) from error
    # 416: there is nothing beyond the bytes we hold. Either they are the whole file, or they are of another one.
    if error.headers.get("Content-Range") == f"bytes */{have}":
        return True
    part.unlink()
    raise TransferError(f"{url}: the partial file did not fit and was removed", retry=True) from error
