from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedra.updates import journal
from fedra.updates.journal import Journal


def opened(path: Path, fingerprint: str = "one", attempt: str = "a") -> Journal:
    found = Journal(path, fingerprint)
    found.begin(attempt)
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of three blocks and a note."""
    path = tmp_path / "journal"
    written = opened(path)
    written.add(1, 0, 10, np.arange(6.0).reshape(2, 3), {0: 5, 7: 2**31})
    written.add(1, 10, 20, np.arange(3, dtype=np.uint32), {})
    written.add(2, 0, 20, None, {0: 5})
    written.note("sum", {"x": "y"})
    written.close()
    return path


def test_what_was_written_is_found(path: Path) -> None:
    found = opened(path)
    assert found.resumed == 3
    block = found.find(1, 0, 10)
    assert block is not None
    assert block.value is not None
    assert block.value.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert block.largest == {0: 5, 7: 2**31}
    other = found.find(1, 10, 20)
    assert other is not None
    assert other.value is not None
    assert other.value.dtype == np.uint32
    last = found.find(2, 0, 20)
    assert last is not None
    assert last.value is None
    assert found.noted("sum") == {"x": "y"}
    assert found.find(3, 0, 20) is None
    assert found.noted("other") is None
    found.begin("b")
    assert found.find(1, 0, 10) is None


def test_of_another_fingerprint_nothing_is_found(path: Path) -> None:
    found = opened(path, "two")
    assert found.resumed == 0
    assert found.find(1, 0, 10) is None
    found.close()
    assert opened(path, "one").resumed == 0


def test_half_a_record_at_the_end_is_cut_off_wherever_it_is_torn(path: Path) -> None:
    content = path.read_bytes()
    counts = set()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        found = opened(path)
        counts.add(found.resumed)
        found.add(5, 0, 1, np.ones(1), {})
        found.close()
        again = opened(path)
        assert again.find(5, 0, 1) is not None
        assert again.resumed == found.resumed + 1
        again.close()
    assert counts == {0, 1, 2, 3}


@pytest.mark.parametrize("seed", range(20))
def test_damage_ends_the_journal_there(seed: int, path: Path) -> None:
    rng = np.random.default_rng(seed)
    content = bytearray(path.read_bytes())
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    path.write_bytes(bytes(content))
    found = opened(path)
    assert found.resumed <= 3
    block = found.find(1, 0, 10)
    assert block is None or (block.value is not None and block.value.tolist() == [[0, 1, 2], [3, 4, 5]])


def test_forgetting_later_passes(path: Path) -> None:
    found = opened(path)
    found.forget_after(1)
    assert found.find(2, 0, 20) is None
    assert found.find(1, 0, 10) is not None


def test_after_a_restart_of_the_system_only_what_is_in_it_counts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "boot_id", lambda: "another")
    found = opened(path)
    assert found.find(2, 0, 20) is None
    assert found.find(1, 0, 10) is not None
    found.add(2, 0, 20, None, {})
    found.close()
    assert opened(path).find(2, 0, 20) is not None


def test_where_the_system_does_not_tell_of_restarts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_BOOT", Path("/nowhere"))
    assert opened(path).find(2, 0, 20) is None


def test_large_values_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_LARGEST_VALUE", 100)
    found = opened(tmp_path / "journal")
    found.add(1, 0, 1, np.zeros(100), {})
    assert found.find(1, 0, 1) is None


def test_a_link_in_its_place_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("mine")
    (tmp_path / "journal").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="is a link"):
        opened(tmp_path / "journal")
    assert (tmp_path / "target").read_text() == "mine"
