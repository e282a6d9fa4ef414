from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedra.server.state import SavedState, check_writable, load_state, save_state

numbers = hnp.arrays(
    dtype=st.sampled_from([np.float16, np.float32, np.float64, np.int64, np.uint8, np.bool_, np.dtype(">f4")]),
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
finite = numbers.filter(lambda array: array.dtype.kind != "f" or bool(np.isfinite(array).all()))
groups = st.dictionaries(st.text(max_size=4), numbers, max_size=3)
plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3)),
    lambda inside: st.dictionaries(st.text(max_size=3), inside, max_size=2),
    max_leaves=4,
)
states = st.builds(
    SavedState,
    round=st.integers(0, 10**6),
    writer=st.just("w"),
    arrays=st.dictionaries(st.text(max_size=4), finite, max_size=3),
    memory=groups,
    numbers=st.dictionaries(st.text(max_size=3), plain, max_size=3),
    rule=groups,
    rule_name=st.text(max_size=5),
)


@given(states)
def test_every_bit_comes_back(tmp_path_factory, state):
    path = tmp_path_factory.mktemp("state") / "folder" / "state.npz"
    save_state(path, state)
    found = load_state(path, "w")
    assert (found.round, found.writer, found.numbers, found.rule_name) == (
        state.round, state.writer, state.numbers, state.rule_name,
    )  # fmt: skip
    for group in ("arrays", "memory", "rule"):
        saved, loaded = getattr(state, group), getattr(found, group)
        assert list(saved) == list(loaded)
        for name, array in saved.items():
            assert (loaded[name].dtype, loaded[name].shape) == (array.dtype, array.shape)
            assert loaded[name].tobytes() == array.tobytes()
    assert [file.name for file in path.parent.iterdir()] == ["state.npz"]


def test_no_state_yet(tmp_path):
    assert load_state(tmp_path / "state.npz", "w") is None


def test_a_crash_while_saving_leaves_the_old_state(tmp_path, monkeypatch):
    path = tmp_path / "state.npz"
    save_state(path, SavedState(round=1, writer="w", arrays={"a/b\x00": np.zeros(3), "scalar": np.asarray(1.5)}))

    def crash(file, **contents):
        file.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", crash)
    with pytest.raises(OSError, match="no space"):
        save_state(path, SavedState(round=2, writer="w", arrays={}))
    state = load_state(path, "w")
    assert state.round == 1
    assert state.arrays["scalar"].shape == ()
    assert list(state.arrays) == ["a/b\x00", "scalar"]


def test_two_servers_that_write_one_state_leave_a_whole_one(tmp_path, monkeypatch):
    path, savez = tmp_path / "state.npz", np.savez
    first = SavedState(round=1, writer="w", arrays={"a": np.ones(1000)})
    second = SavedState(round=2, writer="w", arrays={"a": np.zeros(10)})

    def interrupted(file, **contents):
        savez(file, **contents)
        monkeypatch.setattr(np, "savez", savez)
        save_state(path, second)
        assert load_state(path, "w").round == 2

    monkeypatch.setattr(np, "savez", interrupted)
    save_state(path, first)
    np.testing.assert_array_equal(load_state(path, "w").arrays["a"], 1.0)
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.npz"]


def test_what_a_killed_server_left_is_removed_and_nothing_else(tmp_path):
    others = {"state.npz", "state.npz.old.new", "state.npz2.0123abcd.new", "other.npz.0123abcd.new", ".0123abcd.new"}
    for name in others | {"state.npz.0123abcd.new", "state.npz.new"}:
        (tmp_path / name).touch()
    (tmp_path / "state.npz.ffffffff.new").mkdir()
    check_writable(tmp_path / "state.npz")
    assert {entry.name for entry in tmp_path.iterdir()} == others | {"state.npz.ffffffff.new"}


def test_a_link_in_the_place_of_the_new_state_is_not_followed(tmp_path):
    other, path = tmp_path / "other", tmp_path / "state.npz"
    other.write_text("somebody's")
    (tmp_path / "state.npz.new").symlink_to(other)
    save_state(path, SavedState(round=1, writer="w", arrays={}))
    check_writable(path)
    assert not (tmp_path / "state.npz.new").is_symlink()
    assert other.read_text() == "somebody's"
    assert load_state(path, "w").round == 1


def test_a_place_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        check_writable(tmp_path / "file" / "state.npz")


def write(path, about: dict, *, compress: bool = False, **arrays) -> None:
    whole = {
        "version": 1, "round": 1, "writer": "w", "arrays": [], "memory": [], "numbers": {}, **about,
    }  # fmt: skip
    save = np.savez_compressed if compress else np.savez
    save(path, about=np.frombuffer(json.dumps(whole).encode(), dtype=np.uint8), **arrays)


def test_a_file_of_before_rules_could_remember(tmp_path):
    path = tmp_path / "state.npz"
    write(path, {"arrays": ["w"], "memory": ["m"]}, **{"array-0": np.ones(2), "memory-0": np.zeros(1)})
    state = load_state(path, "w")
    assert (state.rule, state.rule_name) == ({}, "")
    assert state.arrays["w"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("about", "arrays", "reason"),
    [
        ({"version": 2}, {}, "has version 2, this fedra reads 1; move it away"),
        ({"writer": "x" * 500}, {}, "was saved by xxx.*this is w; use the same settings"),
        ({"round": -1}, {}, "its round is -1"),
        ({"round": "1"}, {}, "its round is '1'"),
        ({"numbers": [1]}, {}, "its values have no names"),
        ({"arrays": ["w"]}, {}, "not a state that fedra saved"),
        ({"arrays": ["w"]}, {"array-0": np.array([np.nan])}, "array 'w' of its model is not finite"),
        ({"rule": ["centre"]}, {}, "not a state that fedra saved"),
        ({"rule": 3}, {}, "not a state that fedra saved"),
        ({"rule": ["a"]}, {"rule-0": np.array([{}], dtype=object)}, "not a state that fedra saved"),
    ],
)
def test_what_is_no_state_of_this_writer(tmp_path, about, arrays, reason):
    path = tmp_path / "state.npz"
    write(path, about, **arrays)
    with pytest.raises(ValueError, match=reason) as error:
        load_state(path, "w")
    assert str(path) in str(error.value)


def test_a_small_file_that_would_fill_the_memory(tmp_path):
    path = tmp_path / "state.npz"
    write(path, {"arrays": ["w"]}, compress=True, **{"array-0": np.zeros(10**6)})
    with pytest.raises(ValueError, match="bytes in a file of"):
        load_state(path, "w")


@given(st.binary(max_size=60))
def test_any_bytes_are_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("state") / "state.npz"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="not a state that fedra saved"):
        load_state(path, "w")


def test_a_state_is_stored_as_it_is(tmp_path):
    path = tmp_path / "state.npz"
    save_state(path, SavedState(round=1, writer="w", arrays={"w": np.zeros(1000)}, rule={"centre": np.ones(5)}))
    with zipfile.ZipFile(path) as archive:
        assert {member.compress_type for member in archive.infolist()} == {zipfile.ZIP_STORED}
        assert {member.filename for member in archive.infolist()} == {"about.npy", "array-0.npy", "rule-0.npy"}
