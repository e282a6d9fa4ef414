"""A mirror sends more than the file has, sends it forever, a byte at a time, or an archive that unpacks without end.

A download ends in finite time and space, with an error that says why, and what is right of a file is gone on with.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import socketserver
import tarfile
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from tests.data.conftest import STEMS, idx_bytes
from tests.security.mutations import within

from fedra.data import DATASETS, DatasetError, RemoteFile, Source, download_dataset, raw_files
from fedra.data.raw_files import read_bytes

CONTENT = bytes(range(256)) * 40
FAST = {"retry_wait": 0.0, "timeout": 0.5, "attempts": 2}


@contextmanager
def mirror(*answers):
    """A server that sends these one after the other, the last again and again; a generator is sent piece by piece."""
    asked: list[bytes] = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            request = b""
            while b"\r\n\r\n" not in request:
                request += self.request.recv(65536)
            asked.append(request)
            answer = answers[min(len(asked), len(answers)) - 1]
            try:
                for piece in [answer] if isinstance(answer, bytes) else answer():
                    self.request.sendall(piece)
            except OSError:
                return

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address, daemon_threads, block_on_close = True, True, False

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/", asked
        server.shutdown()
        thread.join()


def head(*lines, status="200 OK"):
    return "\r\n".join([f"HTTP/1.1 {status}", "Connection: close", *lines, "", ""]).encode("latin1")


def whole(content=CONTENT):
    return head(f"Content-Length: {len(content)}") + content


def source(monkeypatch, content=CONTENT, *, size=True, **options):
    """Make MNIST one file of this content."""
    file = RemoteFile(
        name="file.gz", md5=hashlib.md5(content).hexdigest(), size=len(content) if size else None, **options
    )
    source = Source(folder="raw", mirrors=(), files=(file,))
    monkeypatch.setitem(DATASETS, "mnist", replace(DATASETS["mnist"], source=source))


def get(url, data_dir, **options):
    with within(60):
        return download_dataset("mnist", data_dir, mirrors=[url], **{**FAST, **options})


def forever():
    yield head()
    while True:
        yield bytes(65536)


def chunks_forever():
    yield head("Transfer-Encoding: chunked")
    while True:
        yield b"10000\r\n" + bytes(65536) + b"\r\n"


@pytest.mark.parametrize("answer", [forever, chunks_forever], ids=["a stream", "chunks"])
@pytest.mark.parametrize("size", [True, False], ids=["size known", "size unknown"])
def test_more_than_the_file_has_is_not_taken(tmp_path, monkeypatch, answer, size):
    source(monkeypatch, size=size)
    monkeypatch.setattr("fedra.data.download._MOST_BYTES", 100_000, raising=False)
    most = len(CONTENT) if size else 100_000
    with (
        mirror(answer) as (url, _),
        pytest.raises(DatasetError, match=rf"raw/file.gz: .*sends more than the {most:,} bytes"),
    ):
        get(url, tmp_path)
    assert list((tmp_path / "raw").iterdir()) == []


def test_more_than_the_file_has_is_not_begun(tmp_path, monkeypatch):
    source(monkeypatch)
    with (
        mirror(head("Content-Length: 999999999999") + CONTENT) as (url, _),
        pytest.raises(DatasetError, match="announces 999,999,999,999 bytes, the file has at most 10,240"),
    ):
        get(url, tmp_path)


def drop_by_drop(*begin):
    def answer():
        yield from begin
        while True:
            time.sleep(0.1)
            yield b"x"

    return answer


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(drop_by_drop(head(f"Content-Length: {len(CONTENT)}")), id="the content"),
        pytest.param(drop_by_drop(head()), id="content without a length"),
        pytest.param(drop_by_drop(b"HTTP/1.1 200 OK\r\nX-Waiting: "), id="the head"),
        pytest.param(drop_by_drop(head("Transfer-Encoding: chunked") + b"1;"), id="a chunk's head"),
    ],
)
def test_a_byte_now_and_then_is_given_up(tmp_path, monkeypatch, answer):
    source(monkeypatch)
    with (
        mirror(answer) as (url, _),
        pytest.raises(DatasetError, match=r"too slow, less than 1,000 bytes in 1 s"),
    ):
        get(url, tmp_path)


def test_what_came_drop_by_drop_is_gone_on_with(tmp_path, monkeypatch):
    source(monkeypatch)

    def drops():
        yield head(f"Content-Length: {len(CONTENT)}") + CONTENT[:3000]
        for at in range(3000, len(CONTENT)):
            time.sleep(0.1)
            yield CONTENT[at : at + 1]

    with mirror(drops) as (url, _), pytest.raises(DatasetError, match=r"too slow.*bytes are kept in"):
        get(url, tmp_path, attempts=1)
    have = (tmp_path / "raw" / "file.gz.part").stat().st_size
    assert 3000 <= have < 3200
    rest = head(
        f"Content-Length: {len(CONTENT) - have}",
        f"Content-Range: bytes {have}-{len(CONTENT) - 1}/{len(CONTENT)}",
        status="206 Partial Content",
    )
    with mirror(rest + CONTENT[have:]) as (url, asked):
        (path,) = get(url, tmp_path)
    assert path.read_bytes() == CONTENT
    assert f"Range: bytes={have}-".encode() in asked[0]


def test_a_partial_file_that_is_too_long_is_begun_anew(tmp_path, monkeypatch):
    source(monkeypatch)
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "file.gz.part").write_bytes(bytes(50_000))
    with mirror(whole()) as (url, asked):
        (path,) = get(url, tmp_path)
    assert path.read_bytes() == CONTENT
    assert b"Range" not in asked[0]


ODD = {
    "a length in other digits": head("Content-Length: \xb2") + CONTENT,
    "a length of thousands of digits": head("Content-Length: " + "9" * 5000) + CONTENT,
    "a range of thousands of digits": head("Content-Range: bytes " + "9" * 5000 + "-", status="206 Partial Content"),
    "a redirection to nowhere": head("Location: http://[", status="302 Found"),
    "a redirection to a long name": head(f"Location: http://{'x' * 300}.invalid/", status="302 Found"),
    "a reason that paints": head(status="404 \x1b[31mred"),
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD)
def test_odd_answers_are_told_or_overcome(tmp_path, monkeypatch, answer):
    source(monkeypatch)
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "file.gz.part").write_bytes(CONTENT[:5])
    with mirror(answer) as (url, _):
        try:
            (path,) = get(url, tmp_path)
        except DatasetError as error:
            told = str(error)
        else:
            told = ""
            assert path.read_bytes() == CONTENT
    assert "\x1b" not in told


def packed(*members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, size in members:
            info = tarfile.TarInfo(name)
            info.size = size
            tar.addfile(info, io.BytesIO(bytes(size)))
    return stream.getvalue()


@pytest.mark.parametrize("members", [[("a", 5_000_000)], [("other", 5_000_000), ("a", 10)]], ids=["wanted", "before"])
def test_an_archive_that_unpacks_to_too_much_leaves_nothing(tmp_path, monkeypatch, members):
    content = packed(*members)
    assert len(content) < 10_000
    source(monkeypatch, content, unpacked=100_000, members={"a": hashlib.md5(bytes(10)).hexdigest()})
    with (
        mirror(whole(content)) as (url, _),
        pytest.raises(DatasetError, match=r"corrupt archive \(.*(more than it should|5,000,000 bytes)\); the bad"),
    ):
        get(url, tmp_path)
    assert list((tmp_path / "raw").iterdir()) == []


def test_a_packed_file_of_too_much_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_files, "MOST_BYTES", 1_000_000, raising=False)
    (tmp_path / "x.gz").write_bytes(gzip.compress(bytes(2_000_000)))
    with pytest.raises(DatasetError, match=r"x\.gz: holds more than 1,000,000 bytes; get it again"):
        read_bytes(tmp_path / "x.gz", "get it again")


def test_a_pipe_for_a_data_file_is_told(tmp_path):
    os.mkfifo(tmp_path / "x.gz")
    with within(20), pytest.raises(DatasetError, match="is a pipe or a device, not a file;"):
        read_bytes(tmp_path / "x.gz", "get it again")


def test_sizes_are_known_for_all_that_is_downloaded():
    known = [file for spec in DATASETS.values() if spec.source for file in spec.source.files]
    assert all(file.size and file.size < 2**28 for file in known)
    values = np.zeros((60_000, 28, 28), np.uint8)
    assert len(idx_bytes(values)) < raw_files.MOST_BYTES
    assert {file.name for file in DATASETS["mnist"].source.files} == {f"{stem}.gz" for stem in STEMS}
