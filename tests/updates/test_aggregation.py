"""An aggregation from files to a file: what it writes, and that nothing of it is lost."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.strategies import make_round
from tests.updates import killed, written

import fedra
from fedra.files import locked
from fedra.kernels import distances_compiled
from fedra.optimizers import SGD
from fedra.updates import aggregation, journal
from fedra.updates.aggregation import Aggregated, aggregate, work_name

NUMBER, DIMENSION = 9, 150_000
CLAIMS = [100 + place for place in range(NUMBER)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of a round, which have ten blocks of columns."""
    found = tmp_path_factory.mktemp("round")
    updates = make_round(0, NUMBER, DIMENSION, np.float32, base=1.0, liars=1).updates
    written.clients(found, updates, [50_000, 100_000])
    return found


def updates_of(folder: Path) -> np.ndarray:
    return np.stack([np.concatenate(list(load_file(path).values())) for path in sorted(folder.glob("client*"))])


def run(folder: Path, out: Path, rule: str = "fedra", **options: Any) -> Aggregated:
    return aggregate(sorted(folder.glob("client*")), CLAIMS, rule=fedra.make_rule(rule), out=out, **options)


def result_of(path: Path) -> np.ndarray:
    arrays = load_file(path)
    return np.concatenate([arrays[name].ravel() for name in sorted(arrays)])


def in_another_process(folder: Path, out: Path, rule: str, how: str, number: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, killed.__file__, str(folder), rule, str(out), how, str(number)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_result_is_the_rules_update(folder: Path, tmp_path: Path) -> None:
    done = run(folder, tmp_path / "new.safetensors")
    expected = fedra.FedRA()(updates_of(folder), CLAIMS)
    assert expected.update is not None
    assert result_of(tmp_path / "new.safetensors").tobytes() == expected.update.tobytes()
    assert done.verdict.kept.tolist() == expected.kept.tolist()
    assert done.record.kept == int(expected.kept.sum())
    assert done.resumed == 0
    assert [path.name for path in tmp_path.iterdir()] == ["new.safetensors"]
    assert load_file(tmp_path / "new.safetensors")["t001"].shape == (100_000,)


def test_the_record_has_the_checksums_of_what_was_read(folder: Path, tmp_path: Path) -> None:
    done = run(folder, tmp_path / "new.safetensors")
    for client, path in zip(done.record.clients, sorted(folder.glob("client*")), strict=True):
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        assert client["files"] == [{"path": str(path), "bytes": len(content), "sha256": digest}]
    done = run(folder, tmp_path / "new.safetensors", checksums=False)
    assert done.record.clients[0]["files"][0]["sha256"] is None


@pytest.mark.parametrize(
    ("rule", "block"), [("fedra", 1), ("fedra", 10), ("fedra", 14), ("median", 7), ("rfa", 25), ("huber", 15)]
)
def test_killed_at_any_block_it_goes_on(rule: str, block: int, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.safetensors"
    stopped = in_another_process(folder, out, rule, "kill", block)
    assert stopped.returncode == -9, stopped.stderr
    assert not out.exists()
    done = run(folder, out, rule)
    # The one that it was killed in had been written down.
    assert done.resumed == block
    expected = fedra.make_rule(rule)(updates_of(folder), CLAIMS).update
    assert expected is not None
    assert result_of(out).tobytes() == expected.tobytes()
    assert [path.name for path in tmp_path.iterdir()] == ["new.safetensors"]


def test_stopped_in_the_second_panel_of_distances_it_goes_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distances_compiled, "PANEL", 6)
    told: list[tuple[int, ...]] = []

    def progress(*done: int) -> None:
        told.append(done)
        if len(told) == 13:
            raise KeyboardInterrupt

    out = tmp_path / "new.safetensors"
    with pytest.raises(KeyboardInterrupt):
        run(folder, out, threads=1, progress=progress)
    assert told[-1] == (2, 49_152, DIMENSION)
    assert run(folder, out).resumed == 13
    assert result_of(out).tobytes() == fedra.FedRA()(updates_of(folder), CLAIMS).update.tobytes()  # type: ignore[union-attr]


def test_killed_again_and_again_it_gets_done(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.safetensors"
    # Blocks that were done before are told of as well, so that each process gets further by a few.
    codes = [in_another_process(folder, out, "fedra", "kill", block).returncode for block in (6, 12, 18, 24)]
    assert codes == [-9, -9, -9, 0]
    assert result_of(out).tobytes() == fedra.FedRA()(updates_of(folder), CLAIMS).update.tobytes()  # type: ignore[union-attr]


@pytest.mark.parametrize("base", [False, True])
def test_a_full_disk_says_so_and_loses_nothing(base: bool, folder: Path, tmp_path: Path) -> None:
    if base:
        for path in folder.glob("client*"):
            os.link(path, tmp_path / path.name)
        folder = tmp_path
        written.write_safetensors(folder / "base", written.split(np.ones(DIMENSION, np.float32), [50_000, 100_000]))
    out = tmp_path / "new.safetensors"
    stopped = in_another_process(folder, out, "fedra", "full", 400_000)
    assert stopped.returncode == 3, stopped.stderr
    assert "nothing is lost: free some space" in stopped.stdout
    assert not out.exists()
    done = run(folder, out, base=folder / "base.safetensors" if base else None)
    assert done.resumed == 10
    assert out.exists()
    assert not (tmp_path / work_name(out)).exists()


def test_a_disk_that_is_too_small_is_said_at_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage(NamedTuple):
        free: int

    monkeypatch.setattr(aggregation.shutil, "disk_usage", lambda _: Usage(1000))
    with pytest.raises(OSError, match=r"600,000 bytes, and 1,000 are free\); nothing is lost"):
        run(folder, tmp_path / "new.safetensors")


def test_the_disk_gets_full_in_the_journal(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append, calls = journal.Journal._append, [0]

    def failing(self: journal.Journal, about: Any, content: bytes = b"") -> None:
        calls[0] += 1
        if calls[0] == 9:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(self, about, content)

    out = tmp_path / "new.safetensors"
    with monkeypatch.context() as patch:
        patch.setattr(journal.Journal, "_append", failing)
        with pytest.raises(OSError, match="does not take more"):
            run(folder, out, threads=1)
    done = run(folder, out)
    assert done.resumed == 5
    assert result_of(out).tobytes() == fedra.FedRA()(updates_of(folder), CLAIMS).update.tobytes()  # type: ignore[union-attr]


@pytest.mark.parametrize("change", ["file", "rule", "claims"])
def test_what_was_done_of_other_inputs_is_not_taken(change: str, folder: Path, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    for path in folder.glob("client*"):
        (copies / path.name).write_bytes(path.read_bytes())
    out = tmp_path / "new.safetensors"
    assert in_another_process(copies, out, "fedra", "kill", 15).returncode == -9
    claims, rule = list(CLAIMS), "fedra"
    if change == "file":
        written.clients(copies, updates_of(copies)[::-1], [50_000, 100_000])
    elif change == "claims":
        claims[0] += 1
    else:
        rule = "rfa"
    done = aggregate(sorted(copies.glob("client*")), claims, rule=fedra.make_rule(rule), out=out)
    assert done.resumed == 0
    expected = fedra.make_rule(rule)(updates_of(copies), claims).update
    assert expected is not None
    assert result_of(out).tobytes() == expected.tobytes()


def test_after_a_restart_of_the_system_vectors_are_written_anew(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "new.safetensors"
    assert in_another_process(folder, out, "fedra", "kill", 15).returncode == -9
    for vector in (tmp_path / work_name(out)).glob("vector-*"):
        with vector.open("r+b") as file:
            file.write(bytes(vector.stat().st_size))
    monkeypatch.setattr(journal, "boot_id", lambda: "another one")
    done = run(folder, out)
    assert done.resumed == 10
    assert result_of(out).tobytes() == fedra.FedRA()(updates_of(folder), CLAIMS).update.tobytes()  # type: ignore[union-attr]


def test_vectors_that_are_gone_are_written_anew(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.safetensors"
    assert in_another_process(folder, out, "fedra", "kill", 15).returncode == -9
    for vector in (tmp_path / work_name(out)).glob("vector-*"):
        vector.unlink()
    run(folder, out)
    assert result_of(out).tobytes() == fedra.FedRA()(updates_of(folder), CLAIMS).update.tobytes()  # type: ignore[union-attr]


def test_a_bad_client_found_before_the_kill_is_still_rejected(tmp_path: Path) -> None:
    updates = make_round(0, NUMBER, DIMENSION, np.float32, base=1.0).updates
    updates[3, 10] = np.nan
    folder = tmp_path / "round"
    folder.mkdir()
    written.clients(folder, updates)
    out = tmp_path / "new.safetensors"
    assert in_another_process(folder, out, "fedra", "kill", 14).returncode == -9
    done = run(folder, out)
    assert done.resumed == 14
    assert done.verdict.reasons[3] == "update holds values that are not finite"
    assert result_of(out).tobytes() == fedra.FedRA()(updates, CLAIMS).update.tobytes()  # type: ignore[union-attr]


def test_one_process_at_a_time(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.safetensors"
    work = tmp_path / work_name(out)
    work.mkdir()
    with locked(work, "mine"), pytest.raises(ValueError, match="is being made by another process"):
        run(folder, out)


def test_no_update_is_no_file(tmp_path: Path) -> None:
    updates = np.full((5, 10), np.nan, dtype=np.float32)
    done = aggregate(written.clients(tmp_path, updates), [1] * 5, rule=fedra.Median(), out=tmp_path / "x.safetensors")
    assert done.out is None
    assert done.record.note == "nobody was left after screening"
    assert not (tmp_path / "x.safetensors").exists()


def mixed_model(rng: np.random.Generator, like: dict[str, np.ndarray] | None = None) -> dict[str, np.ndarray]:
    model = {
        "half": rng.standard_normal(30).astype(np.float16),
        "single": rng.standard_normal((4, 5)).astype(np.float32),
        "steps": np.array([7], dtype=np.int64),
    }
    return model if like is None else {**{name: like[name] + model[name] for name in model}, "steps": model["steps"]}


def test_models_in_and_a_model_out_in_their_types(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sent = mixed_model(rng)
    base = written.write_safetensors(tmp_path / "base", sent)
    models = [mixed_model(rng, sent) for _ in range(7)]
    paths = [written.write_safetensors(tmp_path / f"c{i}", model) for i, model in enumerate(models)]
    out = tmp_path / "new.safetensors"
    done = aggregate(paths, [10] * 7, rule=fedra.Median(), out=out, base=base, rate=0.5)
    assert done.left_out == ()
    found = load_file(out)

    def flat(model: dict[str, np.ndarray]) -> np.ndarray:
        return np.concatenate([model[name].astype(np.float32).ravel() for name in ("half", "single")])

    update = fedra.Median()(np.stack([flat(model) - flat(sent) for model in models]), [10] * 7).update
    assert update is not None
    optimizer = SGD(lr=0.5)
    stepped = optimizer.step(flat(sent), -update, optimizer.init(update.size))[0]
    assert found["half"].tobytes() == stepped[:30].astype(np.float16).tobytes()
    assert found["single"].tobytes() == stepped[30:].tobytes()
    assert found["single"].shape == (4, 5)
    assert found["steps"].tolist() == [7]


def test_updates_without_a_base_leave_integers_out_and_say_so(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    paths = [written.write_safetensors(tmp_path / f"c{i}", mixed_model(rng)) for i in range(5)]
    out = tmp_path / "new.safetensors"
    done = aggregate(paths, [10] * 5, rule=fedra.Median(), out=out)
    assert done.left_out == ("steps",)
    assert {name: array.dtype for name, array in load_file(out).items()} == {
        "half": np.float16,
        "single": np.float32,
    }


def test_bfloat16_in_bfloat16_out(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file as load_torch

    updates = written.bfloat16(make_round(4, 8, 10_000, np.float32).updates)
    paths = [written.write_bfloat16(tmp_path / f"c{i}", {"a": update}) for i, update in enumerate(updates)]
    out = tmp_path / "new.safetensors"
    aggregate(paths, CLAIMS[:8], rule=fedra.FedRA(), out=out)
    expected = fedra.FedRA()(updates, CLAIMS[:8]).update
    assert torch.equal(load_torch(out)["a"], torch.from_numpy(np.array(expected)).to(torch.bfloat16))


def test_a_result_beyond_its_type_is_not_written(tmp_path: Path) -> None:
    sent = {"a": np.full(10, 60_000, np.float16)}
    base = written.write_safetensors(tmp_path / "base", sent)
    paths = [written.write_safetensors(tmp_path / f"c{i}", {"a": np.full(10, 65_000, np.float16)}) for i in range(5)]
    out = tmp_path / "new.safetensors"
    with pytest.raises(ValueError, match="tensor 'a' of the result would be beyond the range of F16"):
        aggregate(paths, [10] * 5, rule=fedra.Median(), out=out, base=base, rate=2.0)
    assert not out.exists()


def test_sharded_models_become_one_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    updates = rng.standard_normal((5, 90)).astype(np.float32)
    paths = [
        written.write_shards(tmp_path / f"c{i}", written.split(update, [30, 20, 40]), [1, 0, 1])
        for i, update in enumerate(updates)
    ]
    out = tmp_path / "new.safetensors"
    done = aggregate(paths, [10] * 5, rule=fedra.Median(), out=out)
    assert result_of(out).tobytes() == fedra.Median()(updates, [10] * 5).update.tobytes()  # type: ignore[union-attr]
    assert len(done.record.clients[0]["files"]) == 3


@pytest.mark.parametrize("name", ["new.bin", "nowhere/new.safetensors", "client0.safetensors"])
def test_a_wrong_place_for_the_result(name: str, tmp_path: Path) -> None:
    paths = written.clients(tmp_path, np.zeros((5, 3), np.float32))
    with pytest.raises(ValueError, match="out="):
        aggregate(paths, [1] * 5, rule=fedra.Median(), out=tmp_path / name)
    assert not (tmp_path / work_name(tmp_path / name)).exists()


def test_the_base_may_be_replaced_by_the_result(tmp_path: Path) -> None:
    base = written.write_safetensors(tmp_path / "model", {"t000": np.ones(3, np.float32)})
    paths = written.clients(tmp_path, np.full((5, 3), 3, np.float32))
    aggregate(paths, [1] * 5, rule=fedra.Median(), out=base, base=base)
    assert load_file(base)["t000"].tolist() == [3, 3, 3]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("rule", ["fedra", "huber"])
def test_memory_does_not_grow_with_clients(rule: str, tmp_path: Path) -> None:
    row = np.random.default_rng(0).standard_normal(2_000_000).astype(np.float32)
    paths = written.clients(tmp_path, np.stack([row * factor for factor in (1.0, 1.1, 0.9, 1.2, 0.8)]))
    for place in range(5, 15):
        paths.append(tmp_path / f"copy{place}.safetensors")
        os.link(paths[place % 5], paths[-1])
    code = f"""
import re, numpy as np, fedra
from pathlib import Path
from fedra.updates.aggregation import aggregate
def most():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
rule = fedra.make_rule({rule!r})
rule(np.random.default_rng(0).standard_normal((15, 5000)).astype(np.float32), [10] * 15)
before = most()
paths = [Path(path) for path in {list(map(str, paths))!r}]
aggregate(paths, [10] * 15, rule=rule, out=Path({str(tmp_path)!r}) / "out.safetensors", threads=2)
print(most() - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # All rows are 120,000 kB; two threads hold parts of 8,192 kB, and a block of two rows where rows are equal.
    assert int(done.stdout) < 50_000
