from __future__ import annotations

import logging

import numpy as np
import pytest
from tests.server.rounds import FORM, MODEL, Platform, honest
from tests.server.stateful_rules import Diary, OtherDiary, Spoilt

from fedra import CenteredClipping
from fedra.audit import AuditLog, read_trail
from fedra.optimizers import SGD
from fedra.server import Observer, RoundRecord, RunInfo
from fedra.server.state import load_state

RULES = {"stateless": "median", "centered-clipping": "centered-clipping", "growing": Diary()}


def same(one, other) -> bool:
    return list(one) == list(other) and all(
        one[name].dtype == other[name].dtype and one[name].tobytes() == other[name].tobytes() for name in one
    )


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_restarted_server_goes_on_with_the_same_bits(tmp_path, rule, optimizer):
    through = Platform(rule=rule, optimizer=optimizer)
    whole = through.run(6)
    for rounds in (1, 3, 3, 6):
        server = Platform(rule=rule, optimizer=optimizer, state=tmp_path / "state.npz")
        model = server.run(rounds)
    assert same(model, whole)
    assert same(server.server.defence.rule_state or {}, through.server.defence.rule_state or {})


def test_the_memory_matters(tmp_path):
    """Without it the test above could not fail: a server that forgets comes to another model."""
    whole = Platform(rule=Diary()).run(3)
    server = Platform(rule=Diary(), state=tmp_path / "state.npz")
    server.run(2)
    again = Platform(rule=Diary(), state=tmp_path / "state.npz")
    again.begin()
    again.server.defence.rule_state = None
    again.play(3, honest(again.model, 3))
    assert not same(again.model, whole)


def test_another_runs_memory_is_forgotten():
    server = Platform(rule=Diary(), optimizer="adam")
    first = server.run(2)
    assert same(server.run(2), first)


@pytest.mark.parametrize(
    ("saved", "resumed", "reason"),
    [
        (Diary(), "centered-clipping", "the memory of rule 'diary', this is 'centered-clipping'"),
        ("centered-clipping", Diary(), "the memory of rule 'centered-clipping', this is 'diary'"),
        (Diary(), OtherDiary(), "the memory of rule 'diary', this is 'other-diary'"),
    ],
    ids=["other names", "other names, growing", "same names"],
)
def test_another_rules_memory_is_refused(tmp_path, saved, resumed, reason):
    path = tmp_path / "state.npz"
    Platform(rule=saved, state=path).run(1)
    with pytest.raises(ValueError, match=reason) as error:
        Platform(rule=resumed, state=path).begin()
    assert str(path) in str(error.value)
    assert "move it away" in str(error.value)


def test_rules_without_memory_go_on_from_any_state_and_stateful_ones_begin_anew(tmp_path):
    path = tmp_path / "state.npz"
    Platform(rule="centered-clipping", state=path).run(2)
    Platform(rule="fedavg", state=path).run(3)
    state = load_state(path, "Platform with SGD(lr=1.0)")
    assert (state.round, state.rule) == (3, {})
    server = Platform(rule=CenteredClipping(), state=path)
    assert server.begin().round == 3
    assert server.server.defence.rule_state is None


def test_a_round_that_is_not_used_does_not_move_the_memory(tmp_path):
    server = Platform(rule=Spoilt(), optimizer="adam", state=tmp_path / "state.npz")
    server.begin()
    server.play(1, honest(server.model, 1))
    before = server.model
    record = server.play(2, honest(server.model, 2))
    assert record.note == "the rule would remember values that are not finite"
    assert server.model is before
    assert server.server.defence.rule_state["sizes"].tolist() == [7]
    assert server.step.state.step == 1
    state = load_state(tmp_path / "state.npz", server.server.writer)
    assert (state.round, state.rule["sizes"].tolist(), state.rule_name) == (2, [7], "spoilt")


def test_a_model_that_is_not_finite_does_not_move_the_memory():
    server = Platform(rule="centered-clipping", optimizer=SGD(lr=1e42))
    server.begin()
    record = server.play(1, honest(server.model, 1))
    assert "not finite" in record.note
    assert server.server.defence.rule_state is None


@pytest.mark.parametrize("form", [FORM, None], ids=["known model", "unknown model"])
def test_a_state_of_another_model_is_refused_with_its_path(tmp_path, form):
    path = tmp_path / "state.npz"
    server = Platform(rule="fedavg", state=path)
    server.begin()
    server.server.save(1, lambda: {**MODEL, "b": np.zeros(2, np.complex64)})
    with pytest.raises(ValueError, match=r"another model|cannot take back") as error:
        Platform(rule="fedavg", state=path).server.begin(form)
    assert str(path) in str(error.value)


def test_a_state_is_gone_on_from_where_the_model_is_not_known_yet(tmp_path):
    path = tmp_path / "state.npz"
    model = Platform(rule="centered-clipping", state=path).run(2)
    server = Platform(rule="centered-clipping", state=path)
    saved = server.server.begin(None)
    assert same(saved.arrays, model)
    assert server.server.defence.rule_state["centre"].shape == (FORM.dimension,)


class Watching(Observer):
    def __init__(self) -> None:
        self.calls: list[tuple[str, object]] = []

    def start(self, run: RunInfo) -> None:
        self.calls.append(("start", run))

    def round(self, record: RoundRecord) -> None:
        self.calls.append(("round", record))

    def end(self, run: RunInfo, summary) -> None:
        self.calls.append(("end", dict(summary)))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


def test_observers_see_start_rounds_and_end(tmp_path):
    watching = Watching()
    server = Platform(rule="fedavg", observers=[watching], state=tmp_path / "state.npz")
    server.run(2)
    assert watching.names == ["start", "round", "round", "end"]
    run = watching.calls[0][1]
    assert (run.run, run.platform, run.rounds, run.rounds_done) == ("r1", "tests", 2, 0)
    assert run.settings == {"rule": "fedavg", "strategy": "Platform with SGD(lr=1.0)"}
    assert run.folder == str(tmp_path)
    again = Watching()
    Platform(rule="fedavg", observers=[again], state=tmp_path / "state.npz").run(5)
    assert (again.calls[0][1].rounds, again.calls[0][1].rounds_done) == (5, 2)
    assert [call.round for name, call in again.calls if name == "round"] == [3, 4, 5]


def test_a_run_without_rounds_is_not_watched(tmp_path):
    watching = Watching()
    for _ in range(2):
        Platform(rule="fedavg", observers=[watching], state=tmp_path / "state.npz").run(1)
    assert watching.names == ["start", "round", "end"]


def test_a_second_run_ends_the_first_where_the_platform_does_not():
    watching = Watching()
    server = Platform(rule="fedavg", observers=[watching])
    for _ in range(2):
        server.begin()
        server.play(1, honest(server.model, 1))
    assert watching.names == ["start", "round", "end", "start", "round"]


def test_the_model_is_on_disk_before_anybody_hears_of_the_round(tmp_path):
    path, seen = tmp_path / "state.npz", []

    class Looking(Observer):
        def round(self, record):
            seen.append(load_state(path, "Platform with SGD(lr=1.0)").round)

    server = Platform(observers=[Looking()], state=path, on_round=lambda record: seen.append(-record.round))
    server.run(2)
    assert seen == [1, -1, 2, -2]


class Failing(Observer):
    label = "the tracker"

    def __init__(self, error: Exception, *where: str) -> None:
        self.error, self.where = error, where

    def start(self, run):
        if "start" in self.where:
            raise self.error

    def round(self, record):
        if "round" in self.where:
            raise self.error

    def end(self, run, summary):
        if "end" in self.where:
            raise self.error


@pytest.mark.parametrize("where", ["start", "round", "end"])
@pytest.mark.parametrize("error", [RuntimeError("broken"), OSError("no space")])
def test_an_observer_that_raises_stops_nothing(caplog, where, error):
    watching = Watching()
    model = Platform(observers=[Failing(error, where), watching]).run(2)
    assert watching.names == ["start", "round", "round", "end"]
    assert same(model, Platform().run(2))
    assert "the tracker" in caplog.text


@pytest.mark.parametrize("where", ["start", "round", "end"])
def test_an_observers_disk_obeys_on_disk_error(where, tmp_path):
    records = []
    server = Platform(
        observers=[Failing(OSError("no space"), where)],
        on_disk_error="stop",
        on_round=records.append,
        state=tmp_path / "state.npz",
    )
    with pytest.raises(OSError, match="no space"):
        server.run(2)
    assert len(records) == (2 if where == "end" else 1)
    assert load_state(tmp_path / "state.npz", server.server.writer).round == len(records)


def test_other_errors_of_an_observer_do_not_stop_where_the_disks_do():
    Platform(observers=[Failing(RuntimeError("broken"), "round")], on_disk_error="stop").run(2)


def test_what_on_round_raises_ends_the_run():
    def stop(record):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        Platform(on_round=stop).run(2)


def test_the_trail_is_an_observer(tmp_path):
    Platform(observers=[AuditLog(tmp_path / "a.jsonl")]).run(2)
    assert [record["round"] for record in read_trail(tmp_path / "a.jsonl").rounds] == [1, 2]


def test_rejected_clients_and_warnings_are_logged(caplog):
    server = Platform()
    replies = honest(MODEL, 1, clients=(1, 2, 50))
    replies[0].fault = "spoilt"
    server.begin()
    with caplog.at_level(logging.INFO):
        record = server.play(1, replies)
    assert "train round 1: 2 kept, 1 rejected" in caplog.text
    assert "node 1 rejected: spoilt" in caplog.text
    assert record.warnings
    assert all(warning in caplog.text for warning in record.warnings)


def test_a_full_disk_costs_neither_model_nor_round(tmp_path, caplog):
    path = tmp_path / "state.npz"
    server = Platform(state=path)
    server.begin()
    path.mkdir()
    record = server.play(1, honest(server.model, 1))
    assert record.kept == 7
    assert "the state could not be written" in caplog.text


class Speechless:
    """Nothing that fedra takes, and it cannot even be shown."""

    def __repr__(self):
        raise RuntimeError("speechless")


@pytest.mark.parametrize("value", [Speechless(), 1.5, object, b"x", np.asarray(3), [5]], ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("name", ["rule", "observers", "state", "threads", "on_disk_error", "warn_at"])
def test_a_wrong_parameter_is_named(name, value):
    with pytest.raises((TypeError, ValueError), match=rf"^{name}(\[0\])?=.*(give|valid)"):
        Platform(**{name: value})


def test_callers_mistakes(tmp_path):
    with pytest.raises(TypeError, match=r"give instances of fedra.server.Observer"):
        Platform(observers=[print])
    with pytest.raises(TypeError, match="instances"):
        Platform(observers=[Watching])
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        Platform(state=tmp_path / "file" / "state.npz").begin()
