"""A client whose files are bad is a rejected client with a reason, and the round is that of the others."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.strategies import Round, make_round
from tests.updates import written
from tests.updates.test_rules_on_files import assert_same

import fedra
from fedra.updates import formats, streamed, update_files
from fedra.updates.readers import TensorReader

SIZES = [600, 400]
NUMBER = 9


def round_of(folder: Path) -> tuple[Round, list[Path]]:
    round_ = make_round(1, NUMBER, 1000, np.float32, base=1.0)
    return round_, written.clients(folder, round_.updates, SIZES)


def judged(paths: list[Path], round_: Round, bad: int, rule: fedra.Rule | None = None) -> str:
    """Judge a round of which one client is bad; return its reason, when all else is as without it."""
    rule = rule or fedra.FedRA()
    with fedra.open_updates(paths) as updates:
        found = rule(updates, round_.quantities, range(NUMBER))
    others = np.arange(NUMBER) != bad
    expected = rule(round_.updates[others], round_.quantities[others], np.arange(NUMBER)[others])
    assert found.update is not None
    assert expected.update is not None
    assert found.update.tobytes() == expected.update.tobytes()
    assert found.kept[others].tolist() == expected.kept.tolist()
    assert [found.reasons[i] for i in np.flatnonzero(others)] == list(expected.reasons)
    assert not found.usable[bad]
    assert not found.kept[bad]
    return found.reasons[bad]


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def missing(path: Path) -> None:
    path.unlink()


def other_shape(path: Path) -> None:
    written.write_safetensors(path, {"t000": np.zeros((300, 2), np.float32), "t001": np.zeros(400, np.float32)})


def other_dtype(path: Path) -> None:
    written.write_safetensors(path, {"t000": np.zeros(600, np.float32), "t001": np.zeros(400, np.float64)})


def other_names(path: Path) -> None:
    written.write_safetensors(path, {"t000": np.zeros(600, np.float32), "x": np.zeros(400, np.float32)})


def fewer_tensors(path: Path) -> None:
    written.write_safetensors(path, {"t000": np.zeros(600, np.float32)})


def not_a_number(path: Path) -> None:
    written.write_safetensors(path, written.split(np.r_[np.zeros(999), np.nan].astype(np.float32), SIZES))


def infinite(path: Path) -> None:
    written.write_safetensors(path, written.split(np.r_[-np.inf, np.zeros(999)].astype(np.float32), SIZES))


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def no_safetensors(path: Path) -> None:
    path.write_bytes(b"PK\x03\x04 this is no safetensors file at all")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (truncated, "bytes instead of the"),
        (longer, "bytes instead of the"),
        (empty, "too few for a safetensors"),
        (missing, "there is no file 'client4.safetensors'"),
        (other_shape, "tensor 't000' has shape (300, 2) instead of (600,)"),
        (other_dtype, "tensor 't001' has dtype F64 instead of F32"),
        (other_names, "lacks tensor 't001', has an unknown tensor 'x'"),
        (fewer_tensors, "1 tensors instead of 2: lacks tensor 't001'"),
        (not_a_number, "update holds values that are not finite"),
        (infinite, "update holds values that are not finite"),
        (folder, "holds 0 files that could be it"),
        (pipe, "it is no regular file"),
        (no_safetensors, "no safetensors"),
    ],
)
@pytest.mark.parametrize("rule", [fedra.FedRA(), fedra.Median(), fedra.DnC(coordinates=50)])
def test_a_bad_client_is_rejected_with_a_reason(
    rule: fedra.Rule, spoil: Callable[[Path], None], reason: str, tmp_path: Path
) -> None:
    round_, paths = round_of(tmp_path)
    spoil(paths[4])
    assert reason in judged(paths, round_, 4, rule)


def test_values_beyond_what_distances_hold_are_refused_as_in_memory(tmp_path: Path) -> None:
    round_ = make_round(1, 7, 100, np.float64)
    round_.updates[2, 5] = 1e150
    with fedra.open_updates(written.clients(tmp_path, round_.updates)) as updates:
        found = fedra.FedRA()(updates, round_.quantities, range(7))
    assert "beyond 1e+140" in found.reasons[2]
    assert_same(found, fedra.FedRA()(round_.updates, round_.quantities))


def test_bad_claims_and_bad_files_together_are_as_in_memory(tmp_path: Path) -> None:
    round_ = make_round(2, 9, 5000, np.float32)
    round_.updates[7, 4999] = np.nan
    claims = [*round_.quantities[:3], "many", *round_.quantities[4:]]
    with fedra.open_updates(written.clients(tmp_path, round_.updates)) as updates:
        assert_same(fedra.FedRA()(updates, claims, range(9)), fedra.FedRA()(round_.updates, claims))


def test_all_bad_is_a_round_without_an_update(tmp_path: Path) -> None:
    round_ = make_round(2, 5, 500, np.float32)
    round_.updates[:, 3] = np.inf
    with fedra.open_updates(written.clients(tmp_path, round_.updates)) as updates:
        found = fedra.FedRA()(updates, round_.quantities, range(5))
        assert_same(found, fedra.FedRA()(round_.updates, round_.quantities))
    assert found.note == "nobody was left after screening"


@pytest.mark.parametrize("keep_open", [True, False])
@pytest.mark.parametrize("rule", [fedra.FedRA(), fedra.Median()])
def test_a_file_that_shrinks_while_it_is_read(
    rule: fedra.Rule, keep_open: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = make_round(1, NUMBER, 60_000, np.float32, base=1.0)
    paths = written.clients(tmp_path, round_.updates)
    monkeypatch.setattr(streamed, "_PART_BYTES", 100_000)
    if not keep_open:
        monkeypatch.setattr(update_files, "most_open", lambda: 0)
    read = TensorReader.read

    def shrinking(self: TensorReader, first: int, last: int, target: np.ndarray) -> None:
        if self.place == 4 and first > 20_000:
            os.truncate(paths[4], 1000)
        read(self, first, last, target)

    monkeypatch.setattr(TensorReader, "read", shrinking)
    reason = judged(paths, round_, 4, rule)
    assert "became shorter while it was read" in reason or "changed while it was read" in reason


def test_a_file_that_is_written_anew_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    round_, paths = round_of(tmp_path)
    read = TensorReader.read

    def replaced(self: TensorReader, first: int, last: int, target: np.ndarray) -> None:
        if self.place == 4:
            written.write_safetensors(paths[4], written.split(np.zeros(1000, np.float32), SIZES))
        read(self, first, last, target)

    monkeypatch.setattr(TensorReader, "read", replaced)
    assert "changed while it was read" in judged(paths, round_, 4)


def test_a_file_whose_time_is_set_back_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    round_, paths = round_of(tmp_path)
    read = TensorReader.read

    def changed(self: TensorReader, first: int, last: int, target: np.ndarray) -> None:
        read(self, first, last, target)
        if self.place == 4:
            before = paths[4].stat()
            with paths[4].open("r+b") as file:
                file.seek(-4, os.SEEK_END)
                file.write(b"\0\0\0\0")
            written.same_time(paths[4], before)
            assert paths[4].stat().st_mtime_ns == before.st_mtime_ns

    monkeypatch.setattr(TensorReader, "read", changed)
    assert "changed while it was read" in judged(paths, round_, 4)


def test_more_files_than_may_be_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_files, "most_open", lambda: 3)
    round_, paths = round_of(tmp_path)
    with fedra.open_updates(paths) as updates:
        assert_same(
            fedra.FedRA()(updates, round_.quantities, range(NUMBER)), fedra.FedRA()(round_.updates, round_.quantities)
        )


@pytest.mark.parametrize("count", [4, 5])
def test_no_half_of_the_clients_chooses_the_form(count: int, tmp_path: Path) -> None:
    round_, paths = round_of(tmp_path)
    for path in paths[: count - 1]:
        other_shape(path)
    paths = paths[:8]
    with fedra.open_updates(paths) as updates:
        found = fedra.Median()(updates, round_.quantities[:8])
    if count == 5:
        assert found.update is None
        assert "no form of tensors is shared by more than half" in found.reasons[0]
    else:
        assert found.usable.tolist() == [False] * 3 + [True] * 5


def test_a_base_says_which_form_is_right(tmp_path: Path) -> None:
    round_, paths = round_of(tmp_path)
    for path in paths[:6]:
        other_shape(path)
    base = written.write_safetensors(tmp_path / "base", written.split(np.zeros(1000, np.float32), SIZES))
    with fedra.open_updates(paths, base) as updates:
        found = fedra.Median()(updates, round_.quantities)
    assert found.usable.tolist() == [False] * 6 + [True] * 3


def shards(tmp_path: Path) -> Path:
    vector = np.arange(1000, dtype=np.float32)
    return written.write_shards(tmp_path / "sharded", written.split(vector, [300, 300, 400]), [0, 1, 0])


def spoiled_index(path: Path, change: Callable[[dict[str, str]], object]) -> str:
    index = path / "model.safetensors.index.json"
    found = json.loads(index.read_text())
    change(found["weight_map"])
    index.write_text(json.dumps(found))
    with pytest.raises(formats.Unusable) as raised:
        formats.read_contents(path)
    return str(raised.value)


def test_shards_by_their_folder_and_by_their_index(tmp_path: Path) -> None:
    path = shards(tmp_path)
    for name in (path, path / "model.safetensors.index.json"):
        contents = formats.read_contents(name)
        assert sorted(contents.tensors) == ["t000", "t001", "t002"]
        contents.close()


@pytest.mark.parametrize("name", ["../other.safetensors", "/etc/passwd", "a/b.safetensors", "x.bin", "", 5, None])
def test_an_index_names_only_files_beside_it(name: object, tmp_path: Path) -> None:
    reason = spoiled_index(shards(tmp_path), lambda weights: weights.update(t000=name))  # type: ignore[arg-type]
    assert "no weight_map" in reason


def test_an_index_and_its_shards_agree(tmp_path: Path) -> None:
    reason = spoiled_index(shards(tmp_path), lambda weights: weights.pop("t002"))
    assert "holds tensor 't002', which its index does not say" in reason


def test_an_index_that_names_a_tensor_too_many(tmp_path: Path) -> None:
    reason = spoiled_index(shards(tmp_path), lambda weights: weights.update(more="model-00000.safetensors"))
    assert "lacks tensor 'more'" in reason


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"weight_map": {}}', b"[" * 100_000])
def test_an_index_that_is_none(content: bytes, tmp_path: Path) -> None:
    path = shards(tmp_path)
    (path / "model.safetensors.index.json").write_bytes(content)
    with pytest.raises(formats.Unusable):
        formats.read_contents(path)


def test_a_folder_of_one_file_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "adapter").mkdir()
    written.write_safetensors(tmp_path / "adapter" / "adapter_model", {"a": np.zeros(3, np.float32)})
    contents = formats.read_contents(tmp_path / "adapter")
    assert list(contents.tensors) == ["a"]
    contents.close()


def bad_npz(path: Path, how: str) -> Path:
    path = path.with_suffix(".npz")
    arrays = {"a": np.zeros(100, np.float32)}
    if how == "compressed":
        np.savez_compressed(path, **arrays)
    elif how == "objects":
        np.savez(path, a=np.array([{}], dtype=object))
    elif how == "fortran":
        np.savez(path, a=np.asfortranarray(np.zeros((3, 4))))
    elif how == "big-endian":
        np.savez(path, a=np.zeros(3, ">f4"))
    elif how == "complex":
        np.savez(path, a=np.zeros(3, np.complex64))
    elif how == "other member":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("readme.txt", "hello")
    elif how == "twice":
        np.savez(path, **arrays)
        with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a.npy", b"x")
    elif how == "cut":
        np.savez(path, **arrays)
        path.write_bytes(path.read_bytes()[:-30])
    elif how == "wrong offset":
        np.savez(path, **arrays)
        path.write_bytes(b"X" + path.read_bytes()[1:])
    return path


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("compressed", "is compressed; write it with numpy.savez"),
        ("objects", "no plain number"),
        ("fortran", "Fortran order"),
        ("big-endian", "has dtype '>f4'"),
        ("complex", "has dtype '<c8'"),
        ("other member", "no array of NumPy's"),
        ("twice", "stands there twice"),
        ("cut", "is no .npz"),
        ("wrong offset", "is damaged at"),
    ],
)
def test_bad_npz(how: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(formats.Unusable) as raised:
        formats.read_contents(bad_npz(tmp_path / "x", how))
    assert reason in str(raised.value)


def test_a_directory_of_an_npz_that_would_fill_memory_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "_LONGEST_LIST", 70_000)
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(1500):
            archive.writestr(f"array-{number}.npy", b"")
    with pytest.raises(formats.Unusable, match="has a directory of"):
        formats.read_contents(path)


@pytest.mark.parametrize("seed", range(30))
def test_damaged_bytes_never_raise_anything_else(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    vector = np.arange(60, dtype=np.float32)
    writers = [
        written.write_safetensors(tmp_path / "a", written.split(vector, [20, 40])),
        written.write_npz(tmp_path / "a", written.split(vector, [20, 40])),
        written.write_npy(tmp_path / "a", vector),
    ]
    for path in writers:
        content = path.read_bytes()
        for _ in range(40):
            damaged = bytearray(content)
            for place in rng.integers(0, len(damaged), rng.integers(1, 4)):
                damaged[place] = rng.integers(256)
            path.write_bytes(bytes(damaged[: rng.integers(0, len(damaged) + 1)] if rng.random() < 0.3 else damaged))
            with fedra.open_updates([path]) as updates:
                fedra.Median()(updates, [1])


def test_mistakes_of_the_caller_raise(tmp_path: Path) -> None:
    round_, paths = round_of(tmp_path)
    with pytest.raises(ValueError, match="is there twice"):
        fedra.open_updates([paths[0], paths[0]])
    with pytest.raises(TypeError, match="a list of paths"):
        fedra.open_updates(paths[0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"base .*missing.safetensors: there is no file"):
        fedra.open_updates(paths, tmp_path / "missing.safetensors")
    with pytest.raises(ValueError, match="a folder that is there"):
        fedra.open_updates(paths, scratch=tmp_path / "nowhere")
    integers = written.write_npz(tmp_path / "integers", {"a": np.zeros(3, np.int64)})
    with pytest.raises(ValueError, match="no tensor of floats"):
        fedra.open_updates(paths, integers)
    with fedra.open_updates(paths) as updates:
        with pytest.raises(ValueError, match="9 updates but 2 quantities"):
            fedra.FedRA()(updates, [1, 2])
        with pytest.raises(ValueError, match="9 updates but 1 client_ids"):
            fedra.FedRA()(updates, round_.quantities, ["a"])
        with pytest.raises(ValueError, match="num_clients = 4"):
            fedra.FedRA(num_clients=4)(updates, round_.quantities)
        with pytest.raises(ValueError, match="these updates have 1000 values"):
            updates.named(np.zeros(3))


def test_a_base_that_goes_away_is_an_error_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    round_, paths = round_of(tmp_path)
    base = written.write_safetensors(tmp_path / "base", written.split(np.zeros(1000, np.float32), SIZES))
    with fedra.open_updates(paths, base) as updates:
        os.truncate(base, 200)
        with pytest.raises(OSError, match=r"base: 'base\.safetensors' became shorter"):
            fedra.FedRA()(updates, round_.quantities)


def test_integers_are_checked_and_take_no_part(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    updates = rng.standard_normal((5, 10)).astype(np.float32)
    paths = [
        written.write_safetensors(tmp_path / f"c{i}", {"a": update, "steps": np.array([i], np.int64)})
        for i, update in enumerate(updates)
    ]
    written.write_safetensors(tmp_path / "c4", {"a": updates[4], "steps": np.array([1.0])})
    with fedra.open_updates(paths) as opened:
        found = fedra.Median()(opened, [1] * 5)
    assert found.reasons[4] == "tensor 'steps' has dtype F64 instead of I64"
    assert found.update is not None
    assert found.update.tobytes() == fedra.Median()(updates[:4], [1] * 4).update.tobytes()  # type: ignore[union-attr]
