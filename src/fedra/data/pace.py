"""A connection that brings too little is ended: one byte now and then would keep a download waiting for good."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import urllib.request
from functools import partial
from types import TracebackType
from typing import Any, Self


class Pace:
    """Watches one transfer from its request on: every `seconds`, at least `least` bytes more must have arrived."""

    def __init__(self, *, seconds: float, least: int) -> None:
        self.seconds, self.least = seconds, least
        self.missed = False
        self._arrived = 0
        self._socket: socket.socket | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def arrived(self, count: int) -> None:
        """Count bytes."""
        self._arrived += count

    def connected(self, connection: socket.socket) -> None:
        """Take a connection, in the place of an earlier one that has only redirected."""
        self._socket = connection

    def opener(self) -> urllib.request.OpenerDirector:
        """Return what opens http and https addresses, and nothing else, on connections that are watched."""
        director = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler(),
            urllib.request.UnknownHandler(),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPRedirectHandler(),
            urllib.request.HTTPErrorProcessor(),
            _Http(self),
            _Https(self),
        ):
            director.add_handler(handler)
        return director

    def _watch(self) -> None:
        before = 0
        while not self._over.wait(self.seconds):
            if self._arrived - before < self.least and self._socket is not None:
                self.missed = True
                # Whoever reads gets the end of the file. The plain method: that of TLS would take the layer away.
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
                return
            before = self._arrived


class _Http(urllib.request.HTTPHandler):
    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_watched, http.client.HTTPConnection, self._pace), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_watched, http.client.HTTPSConnection, self._pace), req)


def _watched(kind: type[http.client.HTTPConnection], pace: Pace, host: str, **options: Any) -> Any:
    connection = kind(host, **options)
    connect = connection.connect

    def connect_watched() -> None:
        connect()
        pace.connected(connection.sock)

    connection.connect = connect_watched  # type: ignore[method-assign]
    return connection
