"""One transfer against a server that answers from a script; whole downloads are in test_download.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.security.test_hostile_mirrors import CONTENT, head, mirror, whole

from fedra.data.transfer import TransferError, transfer

HALF = len(CONTENT) // 2


def fetch(url: str, part: Path, most: int = len(CONTENT)) -> tuple[bool, list[tuple[int, int | None]]]:
    """Return whether earlier bytes were used, and what was told on the way."""
    steps: list[tuple[int, int | None]] = []
    used = transfer(f"{url}file", part, most=most, timeout=5.0, progress=lambda done, of: steps.append((done, of)))
    return used, steps


def test_a_file_arrives_and_progress_is_counted(tmp_path: Path) -> None:
    with mirror(whole()) as (url, asked):
        used, steps = fetch(url, tmp_path / "x.part")
    assert not used
    assert (tmp_path / "x.part").read_bytes() == CONTENT
    assert (steps[0], steps[-1]) == ((0, len(CONTENT)), (len(CONTENT), len(CONTENT)))
    assert b"Range" not in asked[0]
    assert b"User-Agent: fedra" in asked[0]


def test_it_goes_on_from_the_bytes_there_are(tmp_path: Path) -> None:
    part = tmp_path / "x.part"
    part.write_bytes(CONTENT[:HALF])
    rest = CONTENT[HALF:]
    ranged = head(
        f"Content-Range: bytes {HALF}-{len(CONTENT) - 1}/{len(CONTENT)}",
        f"Content-Length: {len(rest)}",
        status="206 Partial Content",
    )
    with mirror(ranged + rest) as (url, asked):
        used, steps = fetch(url, part)
    assert used
    assert part.read_bytes() == CONTENT
    assert steps[0] == (HALF, len(CONTENT))
    assert f"Range: bytes={HALF}-".encode() in asked[0]


def test_a_server_without_ranges_begins_anew(tmp_path: Path) -> None:
    part = tmp_path / "x.part"
    part.write_bytes(b"old")
    with mirror(whole()) as (url, _):
        used, _ = fetch(url, part)
    assert not used
    assert part.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("answer", "problem", "retry"),
    [
        (head("Content-Length: 0", status="404 Not Found"), "HTTP 404 Not Found", False),
        (head("Content-Length: 0", status="503 Busy"), "HTTP 503 Busy", True),
        (head(f"Content-Length: {len(CONTENT)}") + CONTENT[:9], f"after 9 of {len(CONTENT)} bytes", True),
        (head("Content-Length: 99999999"), "announces 99,999,999 bytes", False),
        (head() + CONTENT + b"x", "sends more than", False),
        (b"", "closed connection without response", True),
    ],
)
def test_a_failure_says_whether_to_try_again(tmp_path: Path, answer: bytes, problem: str, retry: bool) -> None:
    with mirror(answer) as (url, _), pytest.raises(TransferError, match=problem) as caught:
        fetch(url, tmp_path / "x.part")
    assert caught.value.retry == retry


def test_what_is_no_file_of_its_own_is_not_gone_on_with(tmp_path: Path) -> None:
    """Bytes appended to a second name of a file, or through a link, would end up in that file."""
    other = tmp_path / "other"
    other.write_bytes(b"precious")
    part = tmp_path / "x.part"
    for make in (part.symlink_to, part.hardlink_to):
        part.unlink(missing_ok=True)
        make(other)
        with mirror(whole()) as (url, asked):
            fetch(url, part)
        assert b"Range" not in asked[0]
        assert part.read_bytes() == CONTENT
        assert other.read_bytes() == b"precious"
