"""The example's deployment, for tests: loaded from its file, every process ended whatever happens."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower-mnist"


def example() -> ModuleType:
    name = "flower_mnist_deployment"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, EXAMPLE / "deployment.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@contextmanager
def deployment(folder: Path, **options) -> Iterator:
    """Run the example's deployment; on leaving, check that nothing it started is left."""
    made = example().Deployment(folder, **options)
    with made:
        yield made
    wait_until(lambda: not [pid for pid in made.started if alive(pid)], 20, "processes are left over")


def alive(process_id: int) -> bool:
    stat = Path(f"/proc/{process_id}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition: Callable[[], object], timeout: float, what: str) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {timeout:.0f} s: {what}")
        time.sleep(0.2)


def finished(path: Path) -> dict | None:
    """The result that the ServerApp writes when it is done."""
    return json.loads(path.read_text()) if path.exists() and os.path.getsize(path) else None
