"""Blocks done by anybody, in any order, twice, from files or from sent columns: the bits are those in memory."""

from __future__ import annotations

import dataclasses
import errno
import os
import random
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import make_round
from tests.updates import written
from tests.updates.test_rules_on_files import RULE_NAMES, assert_same

import fedra
from fedra.kernels import distances_compiled
from fedra.updates import streamed
from fedra.updates.passes import Array, Block, Passes

pytest.importorskip("ray")
from fedra.cluster import worker
from fedra.cluster.packing import packed
from fedra.cluster.worker import Done, Job, ResultFile, Unread, compute
from fedra.cluster.workers import job_of


@pytest.fixture(autouse=True, scope="module")
def _no_open_files() -> Iterator[None]:
    yield
    worker._FILES._close()


@dataclasses.dataclass
class Shuffled:
    """Does blocks in this process as workers do them, in an order and in ways that are drawn."""

    draw: random.Random
    shared: Path | None = None
    change: Callable[[Job], Job] = lambda job: job
    replies: list[Done | Unread] = dataclasses.field(default_factory=list)

    def over(
        self, work: Callable[[int, int], Any], blocks: Sequence[tuple[int, int]], passes: Passes, places: Sequence[int]
    ) -> Generator[Block, None, None]:
        found = packed(work, passes)
        job = self.change(job_of(str(self.draw.random()), found, passes, places, self.shared))
        done: dict[tuple[int, int], Block] = {}
        # Some are done twice: the first time by a worker that died before it could tell.
        todo = [*blocks, *self.draw.sample(list(blocks), self.draw.randint(0, len(blocks)))]
        for start, stop in self.draw.sample(todo, len(todo)):

            def columns(reader: Any, start: int = start, stop: int = stop) -> Array:
                values = np.empty(stop - start, dtype=passes.dtype)
                reader.read(start, stop, values)
                return values

            sent = [columns(row) for row in found.rows] if self.draw.random() < 0.3 else None
            reply = compute(job, start, stop, [columns(vector) for vector in found.vectors], sent)
            self.replies.append(reply)
            assert isinstance(reply, Done), reply
            for number, first, values in reply.written:
                passes.store.write(found.results[number], first, values)
            done[start, stop] = Block(reply.value, reply.largest)
        for block in blocks:
            yield done[block]


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(RULE_NAMES),
    before=st.sampled_from([None, None, "nnm", "bucketing size=2", "arc"]),
    seed=st.integers(0, 2**32 - 1),
    number=st.integers(7, 13),
    dimension=st.sampled_from([1, 700, 5000, 40_000, 70_001]),
    dtype=st.sampled_from([np.float32, np.float64]),
    part=st.sampled_from([20_000, 300_000, 8 << 20]),
    panel=st.sampled_from([6, 144]),
    store=st.sampled_from(["memory", "driver", "shared"]),
    based=st.booleans(),
)
def test_who_does_which_block_makes_no_difference(
    name: str,
    before: str | None,
    seed: int,
    number: int,
    dimension: int,
    dtype: Any,
    part: int,
    panel: int,
    store: str,
    based: bool,
) -> None:
    round_ = make_round(seed, number, dimension, dtype, base=1.0, liars=1)
    # Equal rows, and rows far away, take the way through float64.
    round_.updates[1] = round_.updates[0]
    round_.updates[2] *= 1e25
    sent = np.random.default_rng(seed).standard_normal(dimension).astype(dtype) if based else np.zeros(dimension, dtype)
    models = round_.updates + sent
    cut = [dimension // 3, dimension - dimension // 3]
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(streamed, "_PART_BYTES", part)
        patch.setattr(streamed, "_GROUP_BYTES", part)
        patch.setattr(distances_compiled, "PANEL", panel)
        paths = written.clients(Path(folder), models, cut)
        base = written.write_safetensors(Path(folder) / "base", written.split(sent, cut)) if based else None
        rule = fedra.make_rule(name, before=before)
        engine = Shuffled(random.Random(seed), Path(folder) if store == "shared" else None)
        with fedra.open_updates(paths, base, scratch=None if store == "memory" else folder) as updates:
            found = updates.judged_by(rule, round_.quantities, range(number), elsewhere=engine)
            assert_same(found, rule(models - sent, round_.quantities, range(number)))
        assert engine.replies


def one_round(folder: Path) -> tuple[Any, list[Path]]:
    round_ = make_round(1, 9, 40_000, np.float32, base=1.0)
    return round_, written.clients(folder, round_.updates)


def test_a_worker_on_the_same_folder_writes_its_shard_itself(tmp_path: Path) -> None:
    round_, paths = one_round(tmp_path)
    for shared, back in ((tmp_path, False), (tmp_path / "nowhere", True), (None, True)):
        engine = Shuffled(random.Random(1), shared)
        with fedra.open_updates(paths, scratch=tmp_path) as updates:
            found = updates.judged_by(fedra.Median(), round_.quantities, range(9), elsewhere=engine)
            assert_same(found, fedra.Median()(round_.updates, round_.quantities))
        from_files = [reply for reply in engine.replies if isinstance(reply, Done)]
        assert any(not reply.written for reply in from_files) is not back


def reply_of(paths: list[Path], round_: Any, folder: Path, change: Callable[[Job], Job]) -> Done | Unread:
    engine = Shuffled(random.Random(3), folder, change)
    engine.draw.random = lambda: 0.9  # type: ignore[method-assign]  # nothing is sent
    with fedra.open_updates(paths, scratch=folder) as updates, pytest.raises(AssertionError):
        updates.judged_by(fedra.Median(), round_.quantities, elsewhere=engine)
    return engine.replies[-1]


def test_a_worker_that_sees_no_files_or_others_says_so(tmp_path: Path) -> None:
    round_, paths = one_round(tmp_path)
    (tmp_path / "other").mkdir()
    written.clients(tmp_path / "other", round_.updates * 2)
    for path in (tmp_path / "other").iterdir():
        # A clock may tick too seldom to tell two files that were written one after the other.
        os.utime(path, (1.0, 1.0))

    def elsewhere(folder: str) -> Callable[[Job], Job]:
        def change(job: Job) -> Job:
            rows = [dataclasses.replace(row, path=tmp_path / folder / row.path.name) for row in job.rows]
            return dataclasses.replace(job, rows=tuple(rows))

        return change

    found = reply_of(paths, round_, tmp_path, elsewhere("nowhere"))
    assert isinstance(found, Unread)
    assert "there is no file 'client0.safetensors'" in found.reason
    found = reply_of(paths, round_, tmp_path, elsewhere("other"))
    assert isinstance(found, Unread)
    assert "is another file here" in found.reason


def test_a_worker_whose_disk_is_full_says_so(tmp_path: Path) -> None:
    round_, paths = one_round(tmp_path)

    def full(job: Job) -> Job:
        return dataclasses.replace(job, results=(ResultFile(path=Path("/dev/full"), offset=0),))

    found = reply_of(paths, round_, tmp_path, full)
    assert isinstance(found, Unread)
    assert f"Errno {errno.ENOSPC}" in found.reason


def test_another_version_is_refused(tmp_path: Path) -> None:
    round_, paths = one_round(tmp_path)
    engine = Shuffled(random.Random(3), None, lambda job: dataclasses.replace(job, fedra="9"))
    with (
        fedra.open_updates(paths) as updates,
        pytest.raises(ValueError, match=r"a worker has fedra .*, and this is 9; install the same version"),
    ):
        updates.judged_by(fedra.Median(), round_.quantities, elsewhere=engine)
