"""What files tell of a federation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.audit.records import round_record

from fedra.assess import sources
from fedra.assess.runs import run_folder
from fedra.assess.sources import audit_trail, real_rounds, stated_quantities
from fedra.audit import AuditLog
from fedra.simulation import SimulationConfig, simulate


def written(folder: Path, text: str | bytes, name: str = "silos.txt") -> str:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "5\n6.5\n7\n"),
        ("a.txt", "\ufeff# sizes\n5\n\n6.5\n7"),
        ("a.csv", "5,6.5,7\n"),
        ("a.csv", "client,quantity\na,5\nb,6.5\nc,7\n"),
        ("a", "clinic a 5\nclinic b 6.5\nclinic c 7\n"),
        ("a.json", '{"a": 5, "b": 6.5, "c": 7}'),
    ],
)
def test_files_of_quantities(tmp_path: Path, name: str, text: str) -> None:
    found = stated_quantities(written(tmp_path, text, name), num_clients=None, seed=0)
    assert found.quantities.tolist() == [5, 6.5, 7]
    assert name in found.known


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no numbers"),
        ("# nothing\n", "no numbers"),
        ("5\nnan\n6\n", "'nan' for client 2 of 3"),
        ("5\n-3\n6\n", "'-3' for client 2 of 3"),
        ("5\n0\n6\n", "'0' for client 2 of 3"),
        ("5\n1e999\n6\n", "'1e999' for client 2 of 3"),
        ("5\nhello\n6\n", "'hello' for client 2 of 3"),
        ("1,5\n2,6\n", "two numbers in each line"),
        ("client,quantity\na,5\nb,many\n", "'many' for client 2 of 2"),
        ("a,5\na,6\n", "is given twice"),
        (b"\xff\xfe\x00\x01", "no text"),
        ("5\n" * 1_000_001, "at most 1,000,000"),
        ("5\n" * 8_400_000, "at most 1,000,000"),
    ],
)
def test_bad_files_of_quantities(tmp_path: Path, text: str | bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        stated_quantities(written(tmp_path, text), num_clients=None, seed=0)


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no file"):
        stated_quantities(str(tmp_path / "none.txt"), num_clients=None, seed=0)
    with pytest.raises(ValueError, match="did you mean 'lognormal'"):
        stated_quantities("lognorml", num_clients=5, seed=0)
    with pytest.raises(ValueError, match="needs the number of clients"):
        stated_quantities("equal", num_clients=None, seed=0)
    with pytest.raises(ValueError, match="at most 1,000,000"):
        stated_quantities("equal", num_clients=2_000_000, seed=0)


def test_laws_and_numbers() -> None:
    drawn = stated_quantities("lognormal sigma=1", num_clients=1000, seed=0)
    assert (len(drawn.quantities), drawn.quantities.sum(), drawn.quantities.min() >= 1) == (1000, 100_000, True)
    again = stated_quantities("lognormal sigma=1", num_clients=1000, seed=0)
    assert (drawn.quantities == again.quantities).all()
    assert stated_quantities("5, 6,7", num_clients=None, seed=0).quantities.tolist() == [5, 6, 7]


def test_an_audit_trail(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a.jsonl")
    for number in (1, 2, 3):
        log.round(round_record(number, clients=9))
    found = audit_trail(tmp_path / "a.jsonl")
    assert (len(found.quantities), found.num_sampled) == (9, 9)
    assert "9 clients claimed" in found.known
    filled = found.filled(20, seed=1)
    assert len(filled.quantities) == 20
    assert set(filled.quantities) <= set(found.quantities)
    assert "the other 11 are drawn from them" in filled.known
    assert found.filled(None, seed=1) is found


def test_what_is_no_trail(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not an audit trail"):
        audit_trail(Path(written(tmp_path, "5\n6\n7\n")))
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(ValueError, match="no claim of any client yet"):
        audit_trail(tmp_path / "empty.jsonl")


def test_a_run(tmp_path: Path) -> None:
    sizes = [300, 200, 100, 50, 40, 30, 20, 10]
    config = SimulationConfig(
        rounds=3, num_clients=8, num_sampled=5, quantities=",".join(map(str, sizes)), num_malicious=2, rule="median"
    )
    simulate(config, out=tmp_path / "run")
    found = run_folder(tmp_path / "run")
    assert (found.num_clients, found.num_sampled, found.num_malicious, found.rounds) == (8, 5, 2, 3)
    assert set(found.quantities) <= set(sizes)
    assert len(found.filled(None, seed=0).quantities) == 8
    with pytest.raises(ValueError, match="not a run folder"):
        run_folder(tmp_path)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    rng = np.random.default_rng(0)
    paths = [tmp_path / f"c{place}.npy" for place in range(5)]
    for path in paths:
        np.save(path, rng.normal(size=30).astype(np.float32))
    return paths


@pytest.mark.parametrize(("malicious", "count"), [("largest 3", 3), ([4, 9], 2)])
def test_a_run_whose_malicious_clients_are_named(tmp_path: Path, malicious: object, count: int) -> None:
    config = SimulationConfig(rounds=1, num_sampled=10, rule="fedavg", attack="lie", malicious=malicious)
    simulate(config, out=tmp_path / "run")
    assert run_folder(tmp_path / "run").num_malicious == count


def test_real_updates(tmp_path: Path, files: list[Path]) -> None:
    claims = Path(written(tmp_path, "".join(f"c{place} {10 * (place + 1)}\n" for place in range(5)), "claims.txt"))
    found = real_rounds(files, claims)
    assert found.quantities.tolist() == [10, 20, 30, 40, 50]
    assert (found.updates == np.stack([np.load(path) for path in files])).all()
    round_ = found.round(0)
    assert sorted(round_.quantities) == [10, 20, 30, 40, 50]
    base = tmp_path / "base.npy"
    np.save(base, np.ones(30, dtype=np.float32))
    assert np.allclose(real_rounds(files, claims, base=base).updates, found.updates - 1)


def test_of_long_updates_some_values_are_read(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_VALUES", 7)
    monkeypatch.setattr(sources, "_BLOCK", 4)
    found = real_rounds(files, None, seed=2)
    whole = np.stack([np.load(path) for path in files])
    assert found.updates.shape == (5, 7)
    places = [int(np.flatnonzero((whole == column[:, np.newaxis]).all(axis=0))[0]) for column in found.updates.T]
    assert places == sorted(set(places))
    assert "Of 30 values of an update 7 are looked at" in found.assumption


def test_bad_updates(tmp_path: Path, files: list[Path]) -> None:
    np.save(files[2], np.full(30, np.nan, dtype=np.float32))
    with pytest.raises(ValueError, match="c2 holds values that are not finite"):
        real_rounds(files, None)
    with pytest.raises(ValueError, match="update of gone"):
        real_rounds([*files[:2], tmp_path / "gone.npy"], None)
    with pytest.raises(ValueError, match="at least 3 clients"):
        real_rounds(files[:2], None)
    with pytest.raises(ValueError, match="nothing for"):
        real_rounds(files[:2], Path(written(tmp_path, "c0 5\n", "claims.txt")))
