"""A full disk, whoever filled it, must neither cost the model nor tear the audit trail."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from flwr.server.strategy import FedAvg as LegacyFedAvg
from flwr.serverapp.strategy import FedAdam, FedAvg
from tests.audit.records import round_record
from tests.flower.federation import arrays_of, model, record
from tests.flower.test_defended import GRID
from tests.flower.test_legacy import fit_result, play

import fedra.audit.log
from fedra.audit import AuditLog, read_trail, summary_text
from fedra.audit.log import record_lines
from fedra.audit.page import audit_page
from fedra.flower import Guard, RobustStrategy
from fedra.flower.legacy import Guard as LegacyGuard
from fedra.flower.legacy import RobustStrategy as LegacyRobustStrategy
from fedra.server.state import SavedState, load_state, save_state

resource = pytest.importorskip("resource")

ROUNDS = 4
STRATEGIES = {
    "robust": lambda **o: RobustStrategy(rule="fedra", fraction_evaluate=0.0, **o),
    "guard": lambda **o: Guard(FedAdam(fraction_evaluate=0.0), rule="fedra", **o),
    "guard that evaluates": lambda **o: Guard(FedAvg(), rule="krum", **o),
}
LEGACY = {
    "robust": lambda **o: LegacyRobustStrategy(rule="median", **o),
    "guard": lambda **o: LegacyGuard(LegacyFedAvg(), rule="krum", **o),
}


@contextlib.contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Let the system refuse to write files beyond this size: short writes, then errors, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class FailingSync:
    """os.fsync that reports a full disk at certain calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails) -> None:
        self.calls, self.fails, self._real = 0, fails, os.fsync
        monkeypatch.setattr(os, "fsync", self)

    def __call__(self, handle: int) -> None:
        self.calls += 1
        if self.fails(self.calls):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._real(handle)


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    told: list[str] = []

    class Listening(logging.Handler):
        def emit(self, entry: logging.LogRecord) -> None:
            told.append(entry.getMessage())

    handler, logger = Listening(logging.WARNING), logging.getLogger("flwr")
    logger.addHandler(handler)
    yield told
    logger.removeHandler(handler)


def models_by_round(make) -> list[dict[str, np.ndarray]]:
    seen = []
    make().start(GRID, record(model()), num_rounds=ROUNDS, evaluate_fn=lambda _, arrays: seen.append(arrays_of(arrays)))
    return seen


def test_an_append_that_fails_at_any_byte_leaves_no_part_and_is_made_up_for(tmp_path):
    whole = AuditLog(tmp_path / "whole.jsonl")
    sizes = []
    for number in (1, 2, 3):
        whole.round(round_record(number))
        sizes.append(whole.path.stat().st_size)
    expected = whole.path.read_bytes()
    for room in range(sizes[0], sizes[1]):
        path = tmp_path / f"{room}.jsonl"
        log = AuditLog(path)
        log.round(round_record(1))
        with files_up_to(room), pytest.raises(OSError, match="too large"):
            log.round(round_record(2))
        assert path.read_bytes() == expected[: sizes[0]]
        log.round(round_record(3))
        assert path.read_bytes() == expected


def test_lines_that_are_lost_are_counted_in_the_trail(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    size = len("".join(f"{line}\n" for line in record_lines(round_record(1))))
    monkeypatch.setattr(fedra.audit.log, "_MOST_WAITING", 2 * size)
    log = AuditLog(path)
    log.round(round_record(1))
    with files_up_to(path.stat().st_size):
        for number in range(2, 8):
            with pytest.raises(OSError, match="too large"):
                log.round(round_record(number))
    log.round(round_record(8))
    log.round(round_record(9))
    trail = read_trail(path)
    assert trail.unreadable == 0
    assert [entry["round"] for entry in trail.rounds] == [1, 2, 3, 8, 9]
    assert [entry.get("lines_lost", 0) for entry in trail.rounds] == [0, 0, 0, 16, 0]
    assert "16 lines are missing" in summary_text(trail)
    assert "16 lines are missing" in audit_page(trail, title="a")


def test_others_who_append_to_the_same_file_lose_nothing(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    log = AuditLog(path)
    log.round(round_record(1))

    def others(handle: int) -> None:
        with path.open("ab") as file:
            file.write(b'{"somebody": "else"}\n')
        raise OSError(errno.EIO, "input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", others)
        with pytest.raises(OSError, match="input/output"):
            log.round(round_record(2))
    assert path.read_bytes().endswith(b'{"somebody": "else"}\n')


def test_a_state_that_cannot_be_written_to_its_end_leaves_the_old_one(tmp_path):
    path = tmp_path / "state.npz"
    old = SavedState(round=1, writer="w", arrays=model(1), memory={"m": np.arange(5.0)})
    save_state(path, old)
    whole = path.read_bytes()
    for size in range(len(whole)):
        with files_up_to(size), pytest.raises(OSError):  # noqa: PT011, at some sizes it is zipfile that words it
            save_state(path, SavedState(round=2, writer="w", arrays=model(2), memory={"m": np.arange(5.0)}))
        assert path.read_bytes() == whole
        assert [file.name for file in tmp_path.iterdir()] == ["state.npz"]
    assert load_state(path, "w").round == 1


def _fsyncs_of_a_run(make, tmp_path) -> int:
    with pytest.MonkeyPatch.context() as patched:
        sync = FailingSync(patched, lambda call: False)
        make(audit=tmp_path / "count.jsonl", state=tmp_path / "count.npz").start(
            GRID, record(model()), num_rounds=ROUNDS
        )
        return sync.calls


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
def test_stop_saves_the_model_of_the_round_before_the_error_leaves(tmp_path, monkeypatch, make):
    expected = models_by_round(make)
    for failing in range(1, _fsyncs_of_a_run(make, tmp_path) + 1):
        path = tmp_path / f"state-{failing}.npz"
        trail = tmp_path / f"audit-{failing}.jsonl"
        strategy = make(audit=trail, state=path, on_disk_error="stop")
        begun: list[int] = []
        with monkeypatch.context() as patched:
            FailingSync(patched, lambda call, failing=failing: call == failing)
            with pytest.raises(OSError, match="No space left"):
                strategy.start(GRID, record(model()), ROUNDS, evaluate_fn=lambda n, _, told=begun: told.append(n + 1))
        state = load_state(path, strategy.server.writer)
        written = [entry["round"] for entry in read_trail(trail).rounds if entry["phase"] == "train"]
        # One write of the round fails; the model is lost only where it is the model's own.
        assert (state.round if state else 0) == begun[-1] or written[-1] == begun[-1]
        for name, array in {} if state is None else state.arrays.items():
            np.testing.assert_array_equal(array, expected[state.round][name])


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
@pytest.mark.parametrize("fails", ["once", "from then on"])
def test_warn_ends_with_the_model_and_trail_of_an_undisturbed_run(tmp_path, monkeypatch, warnings, make, fails):
    expected = models_by_round(make)[-1]
    make(audit=tmp_path / "whole.jsonl").start(GRID, record(model()), num_rounds=ROUNDS)
    whole = read_trail(tmp_path / "whole.jsonl")
    for failing in range(1, _fsyncs_of_a_run(make, tmp_path) + 1):
        path, trail = tmp_path / f"state-{failing}.npz", tmp_path / f"audit-{failing}.jsonl"
        strategy = make(audit=trail, state=path, on_disk_error="warn")
        with monkeypatch.context() as patched:
            FailingSync(patched, lambda call, at=failing: call == at if fails == "once" else call >= at)
            result = strategy.start(GRID, record(model()), num_rounds=ROUNDS)
        for name, array in expected.items():
            np.testing.assert_array_equal(result.arrays[name].numpy(), array)
        assert any("could not be written" in text for text in warnings)
        warnings.clear()
        # The disk has room again: what waits is written with the next round.
        strategy.server.publish(round_record(99))
        written = read_trail(trail)
        assert [entry["round"] for entry in written.rounds] == [*(entry["round"] for entry in whole.rounds), 99]
        assert len(written.clients) == len(whole.clients) + 3
        assert written.unreadable == written.lost == 0


def test_a_warning_each_time(tmp_path, monkeypatch, warnings):
    FailingSync(monkeypatch, lambda call: True)
    strategy = STRATEGIES["robust"](audit=tmp_path / "a.jsonl", state=tmp_path / "s.npz", on_disk_error="warn")
    strategy.start(GRID, record(model()), num_rounds=ROUNDS)
    assert sum("the state could not be written" in text for text in warnings) == ROUNDS
    assert sum("the audit trail could not be written" in text for text in warnings) == ROUNDS


@pytest.mark.parametrize("make", LEGACY.values(), ids=LEGACY)
def test_the_older_api_has_the_same_policy(tmp_path, monkeypatch, warnings, make):
    FailingSync(monkeypatch, lambda call: True)
    answers = [fit_result(place) for place in range(6)]
    _, parameters, _ = play(make(audit=tmp_path / "a.jsonl", on_disk_error="warn"), answers)
    assert parameters is not None
    assert sum("could not be written" in text for text in warnings) == 1
    with pytest.raises(OSError, match="No space left"):
        play(make(audit=tmp_path / "b.jsonl", on_disk_error="stop"), answers)


@pytest.mark.parametrize("make", [*STRATEGIES.values(), *LEGACY.values()])
def test_an_unknown_policy_is_refused(make):
    with pytest.raises(ValueError, match=r"on_disk_error='ignore'.*stop, warn"):
        make(on_disk_error="ignore")


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
def test_a_callback_that_raises_does_so_after_the_model_was_saved(tmp_path, make):
    def fails(told) -> None:
        raise LookupError("the caller's own mistake")

    strategy = make(audit=tmp_path / "a.jsonl", state=tmp_path / "s.npz", on_round=fails)
    with pytest.raises(LookupError, match="own mistake"):
        strategy.start(GRID, record(model()), num_rounds=ROUNDS)
    assert load_state(tmp_path / "s.npz", strategy.server.writer).round == 1
    assert len(read_trail(tmp_path / "a.jsonl").rounds) == 1


def test_a_callback_is_told_of_a_round_that_the_disk_did_not_take(tmp_path, monkeypatch):
    FailingSync(monkeypatch, lambda call: True)
    reports = []
    strategy = STRATEGIES["guard"](audit=tmp_path / "a.jsonl", on_round=reports.append, on_disk_error="stop")
    with pytest.raises(OSError, match="No space left"):
        strategy.start(GRID, record(model()), num_rounds=ROUNDS)
    assert [told.round for told in reports] == [1]


def test_a_metric_function_that_raises_does_not_cost_the_model(tmp_path):
    def fails(contents, key):
        raise LookupError("the caller's own mistake")

    strategy = RobustStrategy(
        rule="fedra", state=tmp_path / "s.npz", train_metrics_aggr_fn=fails, fraction_evaluate=0.0
    )
    with contextlib.suppress(LookupError):
        strategy.start(GRID, record(model()), num_rounds=1)
    assert load_state(tmp_path / "s.npz", strategy.server.writer).round == 1


@pytest.mark.parametrize("option", ["audit", "state"])
def test_a_path_that_cannot_be_written_to_is_told_before_the_first_round(tmp_path, option):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="file"):
        STRATEGIES["robust"](**{option: tmp_path / "file" / "x"}).start(GRID, record(model()), num_rounds=1)
    (tmp_path / "x.new").mkdir()
    (tmp_path / "x").mkdir()
    with pytest.raises((OSError, ValueError), match="directory"):
        STRATEGIES["robust"](**{option: tmp_path / "x"}).start(GRID, record(model()), num_rounds=1)


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A real file system of 128 KiB, where the tests may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a file system is not allowed here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
def test_a_file_system_that_is_really_full(small_disk, warnings, make):
    expected = models_by_round(make)
    path, trail = small_disk / "state.npz", small_disk / "audit.jsonl"
    strategy = make(audit=trail, state=path, on_disk_error="warn")
    ballast = small_disk / "ballast"

    def fill(number, _arrays) -> None:
        if number == 1:
            with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
                while file.write(bytes(512)):
                    pass

    result = strategy.start(GRID, record(model()), num_rounds=ROUNDS, evaluate_fn=fill)
    for name, array in expected[-1].items():
        np.testing.assert_array_equal(result.arrays[name].numpy(), array)
    assert any("could not be written" in text for text in warnings)
    state = load_state(path, strategy.server.writer)
    for name, array in state.arrays.items():
        np.testing.assert_array_equal(array, expected[state.round][name])
    assert read_trail(trail).unreadable == 0
    ballast.unlink()
    strategy.server.publish(round_record(99))
    rounds = [entry["round"] for entry in read_trail(trail).rounds if entry["phase"] == "train"]
    assert rounds == [*range(1, ROUNDS + 1), 99]
