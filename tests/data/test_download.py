"""Downloads against a local server that behaves in every way servers do."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fedra.data import DATASETS, DatasetError, RemoteFile, Source, download_dataset, load_dataset


def remote_files(name: str) -> tuple[RemoteFile, ...]:
    """The files of a data set that can be downloaded."""
    source = DATASETS[name].source
    assert source is not None
    return source.files


@dataclass
class Server:
    """Files by name, and the requests received as (path, Range header)."""

    files: dict[str, bytes]
    url: str = ""
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)


def handler_for(server: Server) -> type[BaseHTTPRequestHandler]:
    """A handler whose behaviour is the first part of the path."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """Serve a file in the way the path asks for."""
            asked = self.headers.get("Range")
            server.requests.append((self.path, asked))
            _, behaviour, name = self.path.split("/")
            body = server.files.get(name)
            earlier = sum(path == self.path for path, _ in server.requests) - 1
            if behaviour == "absent" or body is None:
                self.send_error(404)
            elif behaviour == "busy" and not earlier:
                self.send_error(503)
            else:
                if behaviour == "corrupt":
                    body = body[:-1] + bytes([body[-1] ^ 1])
                self.serve(behaviour, body, asked, earlier)

        def serve(self, behaviour: str, body: bytes, asked: str | None, earlier: int) -> None:
            """Answer 200, 206 or 416, whole or cut off."""
            start = 0
            if asked and behaviour != "no-range":
                start = int(asked.removeprefix("bytes=").removesuffix("-"))
                if start >= len(body):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(body)}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self.send_response(206)
                shift = 1 if behaviour == "wrong-range" else 0
                self.send_header("Content-Range", f"bytes {start + shift}-{len(body) - 1}/{len(body)}")
            else:
                self.send_response(200)
            rest = body[start:]
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            if behaviour == "stall":
                self.wfile.write(rest[:10])
                self.wfile.flush()
                server.closing.wait()
                return
            cut = behaviour == "cut-always" or (behaviour in ("cut", "no-range") and not earlier)
            self.wfile.write(rest[: len(rest) // 2] if cut else rest)
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    """A server on the loopback interface."""
    state = Server(files={})
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler_for(state))
    state.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    yield state
    state.closing.set()
    http.shutdown()
    http.server_close()
    thread.join()


@pytest.fixture(params=["generated", "real"])
def mnist(
    request: pytest.FixtureRequest,
    server: Server,
    tmp_path: Path,
    write_idx: Callable,
    monkeypatch: pytest.MonkeyPatch,
) -> Server:
    """A server of the real MNIST files with their published checksums, and of generated files with their own."""
    if request.param == "real":
        raw = request.getfixturevalue("real_data_dir") / "MNIST" / "raw"
        if not (raw / "train-images-idx3-ubyte.gz").is_file():
            pytest.skip("needs MNIST/raw/*.gz under FEDRA_DATA")
        server.files |= {file.name: (raw / file.name).read_bytes() for file in remote_files("mnist")}
        return server
    origin = tmp_path / "origin"
    write_idx(origin, num_train=300)
    server.files |= {path.name: path.read_bytes() for path in origin.iterdir()}
    files = tuple(
        RemoteFile(name=file.name, md5=hashlib.md5(server.files[file.name]).hexdigest())
        for file in remote_files("mnist")
    )
    source = Source(folder="MNIST/raw", mirrors=(), files=files)
    monkeypatch.setitem(DATASETS, "mnist", replace(DATASETS["mnist"], source=source))
    return server


IMAGES = "train-images-idx3-ubyte.gz"


def get(server: Server, data_dir: Path, *behaviours: str, **options: object) -> tuple[Path, ...]:
    """Download MNIST from the server's mirrors with these behaviours."""
    mirrors = [f"{server.url}/{behaviour}/" for behaviour in behaviours]
    options = {"retry_wait": 0.0, "timeout": 10.0} | options
    return download_dataset("mnist", data_dir, mirrors=mirrors, **options)  # type: ignore[arg-type]


def check_complete(server: Server, data_dir: Path) -> None:
    """All four files are there bit for bit, load, and nothing else is left behind."""
    raw = data_dir / "MNIST" / "raw"
    assert {path.name: path.read_bytes() for path in raw.iterdir()} == server.files
    assert len(load_dataset("mnist", data_dir).train_labels) > 0


def test_files_arrive_whole_with_progress(mnist: Server, tmp_path: Path) -> None:
    seen: dict[str, list[tuple[int, int | None]]] = {}
    paths = get(mnist, tmp_path, "good", progress=lambda name, *state: seen.setdefault(name, []).append(state))
    check_complete(mnist, tmp_path)
    assert sorted(path.name for path in paths) == sorted(mnist.files)
    for name, states in seen.items():
        size = len(mnist.files[name])
        assert states[0] == (0, size)
        assert states[-1] == (size, size)
        assert states == sorted(states)


def test_a_second_download_asks_for_nothing(mnist: Server, tmp_path: Path) -> None:
    get(mnist, tmp_path, "good")
    mnist.requests.clear()
    get(mnist, tmp_path, "good")
    assert mnist.requests == []


def test_a_damaged_file_is_replaced(mnist: Server, tmp_path: Path) -> None:
    get(mnist, tmp_path, "good")
    mnist.requests.clear()
    (tmp_path / "MNIST" / "raw" / IMAGES).write_bytes(b"damaged")
    get(mnist, tmp_path, "good")
    assert mnist.requests == [(f"/good/{IMAGES}", None)]
    check_complete(mnist, tmp_path)


def test_a_cut_connection_is_resumed_where_it_stopped(mnist: Server, tmp_path: Path) -> None:
    get(mnist, tmp_path, "cut")
    check_complete(mnist, tmp_path)
    half = len(mnist.files[IMAGES]) // 2
    assert mnist.requests[:2] == [(f"/cut/{IMAGES}", None), (f"/cut/{IMAGES}", f"bytes={half}-")]


def test_a_later_call_resumes_what_an_earlier_one_left(mnist: Server, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"ended after \d+ of \d+ bytes.* bytes are kept in .*call again to resume"):
        get(mnist, tmp_path, "cut-always")
    part = tmp_path / "MNIST" / "raw" / f"{IMAGES}.part"
    have = part.stat().st_size
    assert part.read_bytes() == mnist.files[IMAGES][:have]
    mnist.requests.clear()
    get(mnist, tmp_path, "good")
    assert mnist.requests[0] == (f"/good/{IMAGES}", f"bytes={have}-")
    check_complete(mnist, tmp_path)


def test_a_server_without_ranges_starts_over(mnist: Server, tmp_path: Path) -> None:
    get(mnist, tmp_path, "no-range")
    check_complete(mnist, tmp_path)
    assert mnist.requests[1][1] is not None


def test_a_corrupt_file_is_removed_and_told(mnist: Server, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"corrupt, md5 \w+ instead of \w+; the bad file was removed") as caught:
        get(mnist, tmp_path, "corrupt")
    assert str(tmp_path / "MNIST" / "raw" / IMAGES) in str(caught.value)
    assert list((tmp_path / "MNIST" / "raw").iterdir()) == []
    assert len(mnist.requests) == 1


@pytest.mark.parametrize("bad", ["corrupt", "absent", "cut-always"])
def test_the_next_mirror_takes_over(mnist: Server, tmp_path: Path, bad: str) -> None:
    get(mnist, tmp_path, bad, "good")
    check_complete(mnist, tmp_path)


def test_a_stale_partial_file_costs_one_more_try(mnist: Server, tmp_path: Path) -> None:
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / f"{IMAGES}.part").write_bytes(b"x" * 100)
    get(mnist, tmp_path, "good")
    assert mnist.requests[:2] == [(f"/good/{IMAGES}", "bytes=100-"), (f"/good/{IMAGES}", None)]
    check_complete(mnist, tmp_path)


@pytest.mark.parametrize("extra", [b"", b"too long"])
def test_a_partial_file_at_or_beyond_the_end(mnist: Server, tmp_path: Path, extra: bytes) -> None:
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / f"{IMAGES}.part").write_bytes(mnist.files[IMAGES] + extra)
    get(mnist, tmp_path, "good")
    check_complete(mnist, tmp_path)


def test_a_missing_file_is_told_and_asked_for_once(mnist: Server, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="HTTP 404"):
        get(mnist, tmp_path, "absent")
    assert len(mnist.requests) == 1


def test_a_busy_server_is_asked_again(mnist: Server, tmp_path: Path) -> None:
    get(mnist, tmp_path, "busy")
    check_complete(mnist, tmp_path)


def test_a_stalled_server_is_given_up_and_its_bytes_are_kept(mnist: Server, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"timed out.*20 bytes are kept"):
        get(mnist, tmp_path, "stall", timeout=0.3, attempts=2)


def test_a_server_that_sends_another_range_is_not_believed(mnist: Server, tmp_path: Path) -> None:
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / f"{IMAGES}.part").write_bytes(mnist.files[IMAGES][:50])
    with pytest.raises(DatasetError, match="asked for bytes from 50, got 'bytes 51-"):
        get(mnist, tmp_path, "wrong-range")


def test_a_host_that_is_not_there_is_told(mnist: Server, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"could not be downloaded .*refused"):
        download_dataset("mnist", tmp_path, mirrors=["http://127.0.0.1:9/"], attempts=2, retry_wait=0.0)


@pytest.mark.parametrize(
    ("name", "mirrors", "problem"),
    [
        ("minst", None, "unknown data set 'minst'; did you mean 'mnist'"),
        ("mind", None, "its licence must be accepted"),
        ("digits", None, "embedded in scikit-learn"),
        ("huffpost", None, "no public mirror"),
        ("mnist", ["file:///etc/"], "no http:// or https:// address"),
        ("mnist", [], "no mirror given"),
    ],
)
def test_what_cannot_be_downloaded_is_told(tmp_path: Path, name: str, mirrors: list[str] | None, problem: str) -> None:
    with pytest.raises(DatasetError, match=problem):
        download_dataset(name, tmp_path, mirrors=mirrors)


def test_a_data_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DatasetError, match="cannot be made"):
        download_dataset("mnist", tmp_path / "file", mirrors=[])


BATCHES = tuple(
    f"cifar-10-batches-bin/{name}.bin" for name in (*(f"data_batch_{n}" for n in range(1, 6)), "test_batch")
)


def archive_of(entries: dict[str, bytes | str]) -> bytes:
    """A tar.gz of files (bytes) and symbolic links (str)."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in entries.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def serve_archive(server: Server, monkeypatch: pytest.MonkeyPatch, data: bytes, members: dict[str, bytes]) -> None:
    """Offer the archive as CIFAR-10."""
    server.files["cifar.tar.gz"] = data
    file = RemoteFile(
        name="cifar.tar.gz",
        md5=hashlib.md5(data).hexdigest(),
        members={name: hashlib.md5(content).hexdigest() for name, content in members.items()},
    )
    source = Source(folder="", mirrors=(f"{server.url}/good/",), files=(file,))
    monkeypatch.setitem(DATASETS, "cifar10", replace(DATASETS["cifar10"], source=source))


def cifar_members() -> dict[str, bytes]:
    """Six small batches."""
    return {name: bytes([number]) + os.urandom(3072) for number, name in enumerate(BATCHES)}


def test_an_archive_is_unpacked_and_only_what_is_expected(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = cifar_members()
    data_dir = tmp_path / "data"
    serve_archive(server, monkeypatch, archive_of({**members, "../evil": b"x", "/tmp/evil": b"x"}), members)
    paths = download_dataset("cifar10", data_dir)
    assert {str(path.relative_to(data_dir)): path.read_bytes() for path in paths} == members
    assert [path.name for path in data_dir.iterdir()] == ["cifar-10-batches-bin"]
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert load_dataset("cifar10", data_dir).train_labels.tolist() == [0, 1, 2, 3, 4]
    server.requests.clear()
    download_dataset("cifar10", data_dir)
    assert server.requests == []


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ({BATCHES[5]: "/etc/hostname"}, "corrupt archive"),
        ({BATCHES[5]: b"other content"}, "does not have the md5"),
        ({}, "corrupt archive"),
    ],
)
def test_a_hostile_or_incomplete_archive_leaves_nothing_behind(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: dict[str, bytes | str], problem: str
) -> None:
    members = cifar_members()
    packed = {name: content for name, content in members.items() if name != BATCHES[5]} | entries
    serve_archive(server, monkeypatch, archive_of(packed), members)
    with pytest.raises(DatasetError, match=f"{problem}.*the bad file was removed"):
        download_dataset("cifar10", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_published_checksum_table_matches_the_real_files(real_data_dir: Path) -> None:
    folder = real_data_dir / "cifar-10-batches-bin"
    if not folder.is_dir():
        pytest.skip("needs cifar-10-batches-bin under FEDRA_DATA")
    for name, md5 in remote_files("cifar10")[0].members.items():
        assert hashlib.md5((real_data_dir / name).read_bytes()).hexdigest() == md5


def test_what_is_in_the_way_of_a_file_is_named(mnist: Server, tmp_path: Path) -> None:
    place = tmp_path / "MNIST" / "raw" / IMAGES
    place.mkdir(parents=True)
    with pytest.raises(DatasetError, match=r"is complete, and cannot be put in its place .*is a directory"):
        get(mnist, tmp_path, "good")
    assert place.is_dir()
