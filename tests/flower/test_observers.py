"""`observers=` in the strategies of both APIs."""

from __future__ import annotations

import gc
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from tests.flower.both import APIS, STRATEGIES, federation, honest, make, same

from fedra.audit import AuditLog, read_trail
from fedra.server import Observer, RoundRecord, RunInfo
from fedra.server.state import load_state

CLIENTS = federation(8)


class Watching(Observer):
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.records: list[RoundRecord] = []
        self.runs: list[RunInfo] = []
        self.summaries: list[dict[str, Any]] = []

    def start(self, run: RunInfo) -> None:
        self.calls.append("start")
        self.runs.append(run)

    def round(self, record: RoundRecord) -> None:
        self.calls.append(f"{record.phase} {record.round}")
        self.records.append(record)

    def end(self, run: RunInfo, summary: Mapping[str, Any]) -> None:
        self.calls.append("end")
        self.summaries.append(dict(summary))


class Failing(Observer):
    label = "the tracker"

    def __init__(self, error: Exception, where: str) -> None:
        self.error, self.where = error, where

    def start(self, run):
        self._fail("start")

    def round(self, record):
        self._fail("round")

    def end(self, run, summary):
        self._fail("end")

    def _fail(self, where: str) -> None:
        if where == self.where:
            raise self.error


@pytest.mark.parametrize(("api", "kind"), STRATEGIES.values(), ids=STRATEGIES)
def test_start_rounds_and_end_once_each_and_in_order(api, kind):
    watching = Watching()
    strategy = make(api, kind, evaluate=True, observers=[watching])
    api.run(strategy, CLIENTS, 2)
    rounds = ["train 1", "evaluate 1", "train 2", "evaluate 2"]
    # The older API does not say when a run ends.
    assert watching.calls == ["start", *rounds, *(["end"] if api.name == "message" else [])]
    del strategy
    gc.collect()
    assert watching.calls == ["start", *rounds, "end"]
    (run,) = watching.runs
    assert (run.platform, run.rounds_done) == ("flower", 0)
    assert run.rounds == (2 if api.name == "message" else None)
    assert run.settings["rule"] == "concord"


@pytest.mark.parametrize(("api", "kind"), STRATEGIES.values(), ids=STRATEGIES)
def test_records_hold_the_metrics_of_training_and_evaluation(api, kind):
    watching = Watching()
    strategy = make(api, kind, evaluate=True, observers=[watching])
    api.run(strategy, CLIENTS, 1)
    train, evaluate = watching.records
    weights = {int(client["client"]): client["weight"] for client in train.clients}
    mean = sum(weight * honest(client, 1, []).metrics["loss"] for client, weight in weights.items())
    assert train.metrics == {"loss": pytest.approx(mean, rel=1e-6)}
    assert evaluate.metrics == {"accuracy": pytest.approx(0.75), "loss": pytest.approx(0.25)}
    assert train.figures()["loss"] == train.metrics["loss"]
    if api.name == "message":
        assert watching.summaries[0]["accuracy"] == pytest.approx(0.75)


@pytest.mark.parametrize(("api", "kind"), STRATEGIES.values(), ids=STRATEGIES)
def test_a_resumed_run_says_how_many_rounds_were_done(tmp_path, api, kind):
    watching = Watching()
    api.run(make(api, kind, state=tmp_path / "state.npz"), CLIENTS, 2)
    strategy = make(api, kind, state=tmp_path / "state.npz", observers=[watching])
    api.run(strategy, CLIENTS, 4)
    assert watching.runs[0].rounds_done == 2
    assert watching.runs[0].folder == str(tmp_path)
    assert [record.round for record in watching.records] == [3, 4]


@pytest.mark.parametrize("where", ["start", "round", "end"])
@pytest.mark.parametrize("error", [RuntimeError("broken"), OSError("no space")], ids=["any", "disk"])
@pytest.mark.parametrize(("api", "kind"), STRATEGIES.values(), ids=STRATEGIES)
def test_an_observer_that_raises_stops_nothing(api, kind, error, where, caplog):
    watching = Watching()
    strategy = make(api, kind, evaluate=True, observers=[Failing(error, where), watching])
    undisturbed = api.run(make(api, kind, evaluate=True), CLIENTS, 2)
    with caplog.at_level(logging.WARNING):
        model = api.run(strategy, CLIENTS, 2)
        strategy.server.end()  # as when the strategy is let go, which the logged errors here would delay
    assert same(model, undisturbed)
    assert watching.calls == ["start", "train 1", "evaluate 1", "train 2", "evaluate 2", "end"]
    assert "the tracker" in caplog.text


@pytest.mark.parametrize("where", ["start", "round"])
@pytest.mark.parametrize(("api", "kind"), STRATEGIES.values(), ids=STRATEGIES)
def test_an_observers_disk_obeys_on_disk_error(tmp_path, api, kind, where):
    watching, path = Watching(), tmp_path / "state.npz"
    strategy = make(
        api, kind, observers=[Failing(OSError("no space"), where), watching], on_disk_error="stop", state=path
    )
    with pytest.raises(OSError, match="no space"):
        api.run(strategy, CLIENTS, 3)
    assert watching.calls[:2] == ["start", "train 1"]
    assert "train 2" not in watching.calls
    assert load_state(path, strategy.server.writer).round == 1


@pytest.mark.parametrize("kind", ["robust", "guard"])
def test_an_observers_disk_at_the_end_of_the_run(kind):
    api = APIS["message"]
    strategy = make(api, kind, observers=[Failing(OSError("no space"), "end")], on_disk_error="stop")
    with pytest.raises(OSError, match="no space"):
        api.run(strategy, CLIENTS, 2)


@pytest.mark.parametrize("kind", ["robust", "guard"])
def test_what_ends_a_run_is_what_is_raised(kind):
    api = APIS["message"]
    watching = Watching()

    def stop(record):
        raise KeyError("enough")

    observers = [Failing(OSError("no space"), "round"), Failing(OSError("no space"), "end"), watching]
    strategy = make(api, kind, observers=observers, on_disk_error="stop", on_round=stop)
    with pytest.raises(KeyError, match="enough"):
        api.run(strategy, CLIENTS, 2)
    assert watching.calls == ["start", "train 1", "end"]
    assert watching.summaries == [{}]


@pytest.mark.parametrize(("api", "kind"), STRATEGIES.values(), ids=STRATEGIES)
def test_the_trail_is_an_observer_however_it_is_given(tmp_path, api, kind):
    watching = Watching()
    by_path = make(api, kind, audit=tmp_path / "path.jsonl", observers=[watching])
    as_log = make(api, kind, audit=AuditLog(tmp_path / "log.jsonl"))
    among = make(api, kind, observers=[AuditLog(tmp_path / "among.jsonl")])
    trails = []
    for strategy, name in ((by_path, "path"), (as_log, "log"), (among, "among")):
        api.run(strategy, CLIENTS, 2)
        trail = read_trail(tmp_path / f"{name}.jsonl")
        trails.append((trail.clients, [{**record, "time": 0} for record in trail.rounds]))
    assert trails[0] == trails[1] == trails[2]
    assert len(trails[0][0]) == 16
    assert len(watching.records) == 2


@pytest.mark.parametrize(("api", "kind"), STRATEGIES.values(), ids=STRATEGIES)
def test_what_is_no_observer_is_refused(api, kind):
    with pytest.raises(TypeError, match="give instances of fedra"):
        make(api, kind, observers=[print])


@pytest.mark.parametrize(("api", "kind"), STRATEGIES.values(), ids=STRATEGIES)
def test_a_strategy_that_runs_twice_is_watched_twice(api, kind):
    watching = Watching()
    strategy = make(api, kind, observers=[watching])
    api.run(strategy, CLIENTS, 1)
    if api.name == "older":
        strategy.initial_parameters = None
        strategy.__dict__.get("inner", strategy).initial_parameters = api.fedavg().initial_parameters
    api.run(strategy, CLIENTS, 1)
    del strategy
    gc.collect()
    assert watching.calls == ["start", "train 1", "end"] * 2
