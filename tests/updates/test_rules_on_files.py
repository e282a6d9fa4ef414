"""Every rule gives on files the bits that it gives in memory, however columns are cut."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import make_round
from tests.updates import written

import fedra
from fedra import RULES, Verdict
from fedra.kernels import distances_compiled
from fedra.kernels.halves import BFLOAT16
from fedra.kernels.rows import as_rows
from fedra.rules import Preceded
from fedra.updates import streamed

RULE_NAMES = sorted(RULES)


def assert_same(found: Verdict, expected: Verdict) -> None:
    for name in ("update", "kept", "weights", "scores", "implied_quantities", "quantities", "usable"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None), name
        assert one is None or (one.dtype == other.dtype and one.tobytes() == other.tobytes()), name
    for name in ("rule", "num_malicious", "reasons", "note", "cut", "warnings"):
        assert getattr(found, name) == getattr(expected, name), name


@st.composite
def cuts(draw: Any, dimension: int) -> list[int]:
    """Sizes of tensors, some of them empty, that add up."""
    edges = sorted(draw(st.lists(st.integers(0, dimension), max_size=6)))
    return [int(size) for size in np.diff([0, *edges, dimension])]


def write(folder: Path, number: int, arrays: dict[str, np.ndarray], how: str, data: Any) -> Path:
    path = folder / f"client{number}"
    if how == "shards":
        shards = data.draw(st.lists(st.integers(0, 2), min_size=len(arrays), max_size=len(arrays)))
        return written.write_shards(path, arrays, shards)
    if how == "npz":
        order = data.draw(st.permutations(list(arrays)))
        return written.write_npz(path, {name: arrays[name] for name in order})
    return written.write_safetensors(path, arrays)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(RULE_NAMES),
    seed=st.integers(0, 2**32 - 1),
    number=st.integers(7, 13),
    dimension=st.sampled_from([1, 3, 700, 4096, 5000, 33_000]),
    dtype=st.sampled_from([np.float32, np.float64]),
    part=st.sampled_from([1, 20_000, 300_000, 8 << 20]),
    on_disk=st.booleans(),
    data=st.data(),
)
def test_the_partition_of_columns_makes_no_difference(
    name: str, seed: int, number: int, dimension: int, dtype: Any, part: int, on_disk: bool, data: Any
) -> None:
    round_ = make_round(seed, number, dimension, dtype, base=1.0, liars=1)
    # Equal rows, and rows far away, take the way through float64.
    round_.updates[1] = round_.updates[0]
    round_.updates[2] *= 1e25
    sizes = data.draw(cuts(dimension))
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(streamed, "_PART_BYTES", part)
        patch.setattr(streamed, "_GROUP_BYTES", part)
        paths = []
        for place, update in enumerate(round_.updates):
            how = data.draw(st.sampled_from(["safetensors", "shards", "npz"]))
            paths.append(write(Path(folder), place, written.split(update, sizes), how, data))
        rule = fedra.make_rule(name)
        ids = tuple(range(number))
        with fedra.open_updates(paths, scratch=folder if on_disk else None) as updates:
            assert updates.faults == [""] * number
            found = rule(updates, round_.quantities, ids, threads=data.draw(st.sampled_from([1, 2])))
            assert_same(found, rule(round_.updates, round_.quantities, ids))


@pytest.mark.parametrize("name", RULE_NAMES)
def test_many_blocks_and_several_threads_on_disk(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "_PART_BYTES", 100_000)
    monkeypatch.setattr(streamed, "_GROUP_BYTES", 100_000)
    round_ = make_round(5, 11, 70_001, np.float32, base=1.0, liars=1)
    paths = written.clients(tmp_path, round_.updates, [1, 30_000, 0, 40_000])
    rule = fedra.make_rule(name)
    with fedra.open_updates(paths, scratch=tmp_path) as updates:
        assert_same(rule(updates, round_.quantities, range(11), threads=3), rule(round_.updates, round_.quantities))
        # A second verdict leaves the first one's update as it was.
        first = rule(updates, round_.quantities)
        rule(updates, round_.quantities[::-1])
        assert first.update is not None
        assert first.update.tobytes() == rule(round_.updates, round_.quantities).update.tobytes()  # type: ignore[union-attr]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)


@pytest.mark.parametrize("dimension", [5000, 40_000])
@pytest.mark.parametrize("name", ["concord", "fedra", "krum", "bulyan"])
def test_distances_in_several_panels(
    name: str, dimension: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = make_round(12, 20, dimension, np.float32, base=1.0, liars=1)
    # Equal rows in one panel and in two, and one far away: these are taken again in float64.
    round_.updates[[1, 19]] = round_.updates[0]
    round_.updates[8] *= 1e25
    rule = fedra.make_rule(name)
    expected = rule(round_.updates, round_.quantities, range(20))
    paths = written.clients(tmp_path, round_.updates)
    monkeypatch.setattr(streamed, "_PART_BYTES", 100_000)
    monkeypatch.setattr(streamed, "_GROUP_BYTES", 100_000)
    monkeypatch.setattr(distances_compiled, "PANEL", 6)
    with fedra.open_updates(paths) as updates:
        assert_same(rule(updates, round_.quantities, range(20), threads=3), expected)


@pytest.mark.parametrize("rule", [fedra.FedRA.as_printed(), fedra.RFA(weights="verified"), fedra.CTMA(base="median")])
def test_parameters_make_no_difference_either(rule: fedra.Rule, tmp_path: Path) -> None:
    round_ = make_round(8, 9, 20_000, np.float32, base=1.0)
    with fedra.open_updates(written.clients(tmp_path, round_.updates)) as updates:
        assert_same(rule(updates, round_.quantities, range(9)), rule(round_.updates, round_.quantities))


def test_a_rule_that_remembers_goes_on_from_its_state(tmp_path: Path) -> None:
    round_ = make_round(3, 8, 6000, np.float32)
    rule = fedra.CenteredClipping()
    with fedra.open_updates(written.clients(tmp_path, round_.updates)) as updates:
        first = rule(updates, round_.quantities, range(8))
        found = rule(updates, round_.quantities, range(8), state=first.state)
    expected = rule(round_.updates, round_.quantities, state=rule(round_.updates, round_.quantities).state)
    assert_same(found, expected)


@pytest.mark.parametrize("name", ["fedra", "median", "norm-bound"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_are_widened_exactly(dtype: str, name: str, tmp_path: Path) -> None:
    round_ = make_round(4, 8, 10_000, np.float32)
    if dtype == "float16":
        halves = round_.updates.astype(np.float16)
        paths, wide = written.clients(tmp_path, halves, [4000, 6000]), halves.astype(np.float32)
    else:
        wide = written.bfloat16(round_.updates)
        halves = (wide.view(np.uint32) >> 16).astype(np.uint16).view(BFLOAT16)
        paths = [written.write_bfloat16(tmp_path / str(i), written.split(u, [4000, 6000])) for i, u in enumerate(wide)]
    rule = fedra.make_rule(name)
    with fedra.open_updates(paths) as updates:
        found = rule(updates, round_.quantities, range(8))
    assert_same(found, rule(wide, round_.quantities))
    assert_same(found, rule(halves, round_.quantities))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_models_less_their_base_are_updates(dtype: Any, tmp_path: Path) -> None:
    round_ = make_round(6, 9, 9000, dtype)
    sent = np.random.default_rng(0).standard_normal(9000).astype(dtype)
    models = round_.updates + sent
    sizes = [5000, 4000]
    base = written.write_safetensors(tmp_path / "base", written.split(sent, sizes))
    with fedra.open_updates(written.clients(tmp_path, models, sizes), base) as updates:
        found = fedra.NormBound()(updates, round_.quantities, range(9))
    assert_same(found, fedra.NormBound()(models - sent, round_.quantities))


def test_an_npy_file_is_one_tensor(tmp_path: Path) -> None:
    round_ = make_round(7, 7, 600, np.float64)
    paths = [written.write_npy(tmp_path / f"c{i}", u.reshape(20, 30)) for i, u in enumerate(round_.updates)]
    with fedra.open_updates(paths) as updates:
        found = fedra.Median()(updates, round_.quantities)
        assert found.client_ids == tuple(f"c{i}" for i in range(7))
        assert found.update is not None
        assert updates.named(found.update)["array"].shape == (20, 30)
    assert found.update.tobytes() == fedra.Median()(round_.updates, round_.quantities).update.tobytes()  # type: ignore[union-attr]


def test_an_own_rule_may_ask_for_vectors_and_matrices(tmp_path: Path) -> None:
    round_ = make_round(9, 5, 3000, np.float32)
    with fedra.open_updates(written.clients(tmp_path, round_.updates)) as updates:
        seen: list[Any] = []

        class Own(fedra.Rule):
            name = "own"
            family = fedra.Family.IGNORANT

            def decide(self, cohort: fedra.Cohort) -> fedra.Decision:
                seen.append(np.asarray(cohort.rows))
                seen.extend(cohort.rows)
                return fedra.Decision(update=seen[0].mean(axis=0))

        Own()(updates, round_.quantities)
    assert (seen[0] == round_.updates).all()
    assert all((row == update).all() for row, update in zip(seen[1:], round_.updates, strict=True))


def test_rows_in_files_have_no_address(tmp_path: Path) -> None:
    round_ = make_round(9, 5, 300, np.float32)
    with fedra.open_updates(written.clients(tmp_path, round_.updates)) as updates:
        seen: list[Any] = []

        class Own(fedra.Rule):
            name = "own"
            family = fedra.Family.IGNORANT

            def decide(self, cohort: fedra.Cohort) -> fedra.Decision:
                seen.append(as_rows(cohort.rows).addresses)
                raise AssertionError

        with pytest.raises(ValueError, match="needs all updates in memory"):
            Own()(updates, round_.quantities)
    assert not seen


def test_before_a_rule_files_are_mixed_in_parts(tmp_path: Path) -> None:
    round_ = make_round(11, 9, 20_000, np.float32, base=1.0, liars=1)
    paths = written.clients(tmp_path, round_.updates)
    for before in ("nnm", "bucketing size=2", "arc"):
        for name in ("median", "fedavg", "rfa", "fedra"):
            rule = fedra.make_rule(name, before=before)
            assert isinstance(rule, Preceded)
            with fedra.open_updates(paths) as updates:
                assert_same(rule(updates, round_.quantities, range(9)), rule(round_.updates, round_.quantities))
