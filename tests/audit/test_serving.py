"""The page of a running deployment: what a browser gets, and what strangers on this machine do not."""

from __future__ import annotations

import http.client
import socket
import threading

import pytest
from tests.audit.records import round_record

from fedra.audit import AuditLog
from fedra.audit.serving import LOOPBACK, serve


@pytest.fixture
def log(tmp_path):
    log = AuditLog(tmp_path / "a.jsonl")
    log.round(round_record(1))
    return log


@pytest.fixture
def server(log):
    with serve(log.path) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def ask(server, path="/", *, method="GET", **headers):
    port = server.server_address[1]
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=30)
    connection.putrequest(method, path, skip_host=True)
    for name, value in {"Host": f"{LOOPBACK}:{port}", **headers}.items():
        if value is not None:
            connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def test_it_listens_on_this_machine_only(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.address.startswith("http://127.0.0.1:")


def test_the_page_grows_with_the_trail(server, log):
    first = ask(server, "/version")[1]
    assert first == ask(server, "/version")[1]
    log.round(round_record(2))
    second = ask(server, "/version")[1]
    assert second != first
    answer, page = ask(server)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b"<b>2</b> training rounds" in page
    assert second in page


def test_headers_keep_it_to_itself(server):
    headers = ask(server)[0].headers
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in headers
    assert "Python" not in headers["Server"]


@pytest.mark.parametrize(
    "path",
    ["/a.jsonl", "/../a.jsonl", "/..%2f..%2fetc/passwd", "//etc/passwd", "/etc/passwd", "/version/", "/?x=1", "*"],
)
def test_there_are_no_other_paths(server, path):
    answer, content = ask(server, path)
    assert answer.status == 404
    assert b"root:" not in content


@pytest.mark.parametrize("host", [None, "", "evil.example", "127.0.0.1", "127.0.0.1.evil.example:80", "localhost:1"])
def test_other_names_are_refused(server, host):
    answer, content = ask(server, Host=host)
    assert answer.status == 403
    assert b"Audit trail" not in content


def test_localhost_is_this_machine(server):
    assert ask(server, Host=f"localhost:{server.server_address[1]}")[0].status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_other_sites_are_refused(server, site):
    assert ask(server, Sec_Fetch_Site=site)[0].status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "X"])
def test_nothing_can_be_changed(server, log, method):
    before = log.path.read_bytes()
    assert ask(server, method=method)[0].status == 501
    assert log.path.read_bytes() == before


def test_a_head_has_no_body(server):
    answer, content = ask(server, method="HEAD")
    assert (answer.status, content) == (200, b"")


def test_noise_does_not_end_it(server, capsys):
    for noise in (
        b"",
        b"\x00" * 4096,
        b"GET / HTTP/1.0\r\nHost: \xff\xfe\r\n\r\n",
        b"GET " + b"x" * 70_000 + b"\r\n\r\n",
    ):
        with socket.create_connection((LOOPBACK, server.server_address[1]), timeout=30) as stranger:
            stranger.sendall(noise)
    assert ask(server)[0].status == 200
    assert capsys.readouterr() == ("", "")


def test_a_trail_that_is_gone_is_told_and_comes_back(server, log):
    content = log.path.read_bytes()
    log.path.unlink()
    assert ask(server)[0].status == 503
    log.path.write_bytes(content)
    assert ask(server)[0].status == 200


def test_a_port_that_is_taken_is_told(log):
    with serve(log.path) as first, pytest.raises(OSError, match=r"port \d+ is not available .*; leave it out"):
        serve(log.path, port=first.server_address[1])
