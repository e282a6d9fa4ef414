"""The watch over a connection, on socket pairs; servers that are too slow are in test_hostile_mirrors.py."""

from __future__ import annotations

import http.client
import socket
import threading
import urllib.error
from collections.abc import Iterator

import pytest

from fedra.data.pace import Pace

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    ours.settimeout(20)
    yield ours, theirs
    ours.close()
    theirs.close()


def test_a_connection_that_brings_too_little_is_ended(pair: Pair) -> None:
    ours, _ = pair
    with Pace(seconds=0.05, least=10) as pace:
        pace.connected(ours)
        pace.arrived(9)
        assert ours.recv(1) == b""
    assert pace.missed


def test_one_that_brings_enough_is_left_alone(pair: Pair) -> None:
    ours, theirs = pair
    with Pace(seconds=0.2, least=10) as pace:
        pace.connected(ours)
        for _ in range(20):
            pace.arrived(100)
            threading.Event().wait(0.02)
        theirs.sendall(b"x")
        assert ours.recv(1) == b"x"
    assert not pace.missed


def test_the_last_of_several_connections_is_the_one_that_is_ended(pair: Pair) -> None:
    ours, theirs = pair
    with Pace(seconds=0.05, least=10) as pace:
        pace.connected(theirs)
        pace.connected(ours)
        assert ours.recv(1) == b""
    assert pace.missed


def test_without_a_connection_there_is_nothing_to_end() -> None:
    with Pace(seconds=0.01, least=10) as pace:
        threading.Event().wait(0.1)
    assert not pace.missed


def test_it_opens_web_addresses_and_nothing_else(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "secret").write_text("x")
    with Pace(seconds=10, least=0) as pace:
        for address in (f"file://{tmp_path}/secret", "ftp://127.0.0.1/x", "data:,x"):
            with pytest.raises((urllib.error.URLError, http.client.HTTPException), match="unknown url type"):
                pace.opener().open(address, timeout=5)
