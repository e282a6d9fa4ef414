"""A Ray cluster that is there already: found, joined, and left."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SECONDS_TO_CONNECT = 10.0


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Yield Ray, connected to the cluster at an address; None: RAY_ADDRESS, or the cluster of this machine.

    Whoever is connected already stays so.
    """
    ray = _ray()
    began = not ray.is_initialized()
    if began:
        _connect(ray, address)
    try:
        yield ray
    finally:
        if began:
            ray.shutdown()


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
        import ray.util.scheduling_strategies
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ValueError("--engine ray needs Ray: pip install 'fedra[ray]'") from None
    return ray


def _connect(ray: Any, address: str | None) -> None:
    sought = f"at {address}" if address else "on this machine"
    before = signal.getsignal(signal.SIGTERM)
    try:
        if address not in (None, "auto"):
            _check_reachable(str(address))
        ray.init(address=address or "auto", log_to_driver=False, configure_logging=False)
    except (OSError, RuntimeError) as error:
        raise ValueError(
            f"there is no Ray cluster {sought} ({error}); start one with ray start --head, or give --ray-address"
        ) from error
    if threading.current_thread() is threading.main_thread():
        # Ray would end the process at SIGTERM; what to do then is up to whoever called.
        signal.signal(signal.SIGTERM, before)


def _check_reachable(address: str) -> None:
    """Raise at once where nobody listens; Ray itself tries for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"Ray address {address!r}; give host:port or ray://host:port")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_TO_CONNECT):
        pass
