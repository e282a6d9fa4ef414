"""`fedra audit --serve`: the page of a trail that is being written, handed out on this machine only.

Whoever can open a connection to the port is a stranger: requests lead to one of two answers and to no path, other sites
cannot reach it by a name of their own (the Host header is checked), and nothing they send is kept or printed.
"""

from __future__ import annotations

import hashlib
import os
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from fedra.audit.following import Follower
from fedra.audit.page import audit_page, page_policy

LOOPBACK = "127.0.0.1"
_NAMES = (LOOPBACK, "localhost")
_SECONDS = 10.0
_HTML, _TEXT = "text/html; charset=utf-8", "text/plain; charset=utf-8"


class LivePage:
    """The page of a trail as it is now; it is made again when the trail has grown."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._follower = Follower(path)
        self._lock = threading.Lock()
        self._version = ""
        self._page = b""
        self.latest()

    def latest(self) -> tuple[str, bytes]:
        """Return the version and the page; a trail that cannot be read any more leaves what was there last."""
        with self._lock:
            rounds, clients = self._follower.read()
            if not self._version or rounds or clients:
                trail = self._follower.trail
                counts = f"{len(trail.rounds)}-{len(trail.clients)}-{trail.unreadable}"
                self._version = hashlib.sha256(counts.encode()).hexdigest()[:16]
                page = audit_page(trail, title=self._follower.path.name, live=self._version)
                self._page = page.encode("utf-8")
            return self._version, self._page


class AuditServer(ThreadingHTTPServer):
    """A server on the loopback address; `port=0` takes a free one."""

    daemon_threads = True

    def __init__(self, path: str | os.PathLike[str], *, port: int = 0) -> None:
        self.live = LivePage(path)
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OverflowError:
            raise ValueError(f"port {port} is not between 0 and 65535; leave it out to take a free one") from None
        except OSError as error:
            raise OSError(f"port {port} is not available ({error.strerror}); leave it out to take a free one") from None

    @property
    def address(self) -> str:
        """Where a browser finds the page."""
        return f"http://{LOOPBACK}:{self.server_address[1]}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """What a request may call this server."""
        return tuple(f"{name}:{self.server_address[1]}" for name in _NAMES)

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that breaks off is nobody's business."""


class _Handler(BaseHTTPRequestHandler):
    server: AuditServer
    timeout = _SECONDS
    protocol_version = "HTTP/1.0"

    def do_GET(self) -> None:
        """Answer with the page or its version."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Answer without the page."""
        self._answer(body=False)

    def version_string(self) -> str:
        """Name no versions."""
        return "fedra"

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing of what strangers send."""

    def _answer(self, *, body: bool) -> None:
        if self.headers.get("Host", "") not in self.server.hosts:
            return self._send(HTTPStatus.FORBIDDEN, _TEXT, b"not a name of this server\n", body=body)
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return self._send(HTTPStatus.FORBIDDEN, _TEXT, b"not for other sites\n", body=body)
        if self.path not in ("/", "/version"):
            return self._send(HTTPStatus.NOT_FOUND, _TEXT, b"there is / only\n", body=body)
        try:
            version, page = self.server.live.latest()
        except (OSError, ValueError):
            return self._send(HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, b"the trail cannot be read\n", body=body)
        if self.path == "/version":
            return self._send(HTTPStatus.OK, _TEXT, version.encode(), body=body)
        return self._send(HTTPStatus.OK, _HTML, page, body=body)

    def _send(self, status: HTTPStatus, kind: str, content: bytes, *, body: bool) -> None:
        self.send_response(status)
        for header, value in {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Content-Security-Policy": page_policy(),
            "Cache-Control": "no-store",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }.items():
            self.send_header(header, value)
        self.end_headers()
        if body:
            self.wfile.write(content)


def serve(path: str | Path, *, port: int = 0) -> AuditServer:
    """Return a server that is ready to answer; call its `serve_forever`."""
    return AuditServer(path, port=port)
