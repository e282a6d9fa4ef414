from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedra import pairwise_l1
from fedra.kernels.mapped import forget, is_mapped


def mapped(path: Path, values: np.ndarray, mode: str = "r", offset: int = 0) -> np.memmap:
    path.write_bytes(bytes(offset) + values.tobytes())
    return np.memmap(path, dtype=values.dtype, mode=mode, offset=offset, shape=values.shape)


@pytest.mark.parametrize("offset", [0, 8, 4096, 5000])
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_what_is_forgotten_is_still_in_the_file(mode: str, offset: int, tmp_path: Path) -> None:
    values = np.arange(50_000, dtype=np.float32)
    vector = mapped(tmp_path / "x", values, mode, offset)
    if mode == "r+":
        vector[7] = values[7] = -1
    assert is_mapped(vector)
    forget([vector], 3, 49_990)
    assert (vector == values).all()
    forget([vector[1000:2000]], 0, 1000)
    forget([vector], 0, 50_000)
    assert (vector == values).all()


def test_a_copy_on_write_keeps_what_was_written(tmp_path: Path) -> None:
    vector = mapped(tmp_path / "x", np.zeros(50_000), "c")
    vector[:] = 5
    assert not is_mapped(vector)
    forget([vector], 0, 50_000)
    assert (vector == 5).all()


def test_what_is_in_memory_stays_as_it_is() -> None:
    vector = np.ones(10_000)
    assert not is_mapped(vector)
    forget([vector], 0, 10_000)
    assert vector.all()


def test_mapped_rows_give_the_same_distances(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).standard_normal((5, 40_000)).astype(np.float32)
    rows = [mapped(tmp_path / str(place), row, offset=8) for place, row in enumerate(matrix)]
    assert pairwise_l1(rows).tobytes() == pairwise_l1(matrix).tobytes()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_does_not_grow_with_mapped_rows(tmp_path: Path) -> None:
    for place in range(8):
        np.zeros(4_000_000, np.float32).tofile(tmp_path / str(place))
    code = f"""
import re, numpy as np, fedra
def held():
    return int(re.search(r"RssFile:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
rows = [np.memmap(f"{tmp_path}/{{place}}", dtype=np.float32, mode="r") for place in range(8)]
fedra.pairwise_l1(np.zeros((8, 5000), np.float32))
before = held()
fedra.pairwise_l1(rows, 1)
print(held() - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # All rows are 128,000 kB; a block of all of them 2,000.
    assert int(done.stdout) < 30_000
