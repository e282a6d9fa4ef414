from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from flwr.app import MetricRecord
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAdam, FedAvg, FedAvgM
from tests.flower.bad_replies import BAD
from tests.flower.federation import MemoryGrid, arrays_of, federation, model, moved, one_round, record, reply_to

from fedra.audit import read_trail
from fedra.audit.log import record_lines
from fedra.flower import Guard, RobustStrategy
from fedra.optimizers import Adam
from fedra.server.state import load_state


def client(message):
    """An honest client that depends on its node and the round alone, so that two runs can be compared."""
    seed = 1000 * message.content["config"]["server-round"] + message.metadata.dst_node_id
    return reply_to(message, moved(message.content["arrays"], np.random.default_rng(seed)), {"num-examples": 5})


GRID = MemoryGrid(dict.fromkeys(range(1, 8), client))
STRATEGIES = {
    "robust adam": lambda **o: RobustStrategy(rule="fedra", server_optimizer=Adam(lr=0.01), fraction_evaluate=0.0, **o),
    "robust sgd": lambda **o: RobustStrategy(rule="median", fraction_evaluate=0.0, **o),
    "guard": lambda **o: Guard(FedAvg(fraction_evaluate=0.0), rule="fedra", **o),
    "guard fedadam": lambda **o: Guard(FedAdam(fraction_evaluate=0.0), rule="fedra", **o),
    "guard fedavgm": lambda **o: Guard(FedAvgM(fraction_evaluate=0.0, server_momentum=0.9), rule="krum", **o),
    "guard dp": lambda **o: Guard(
        DifferentialPrivacyServerSideFixedClipping(
            FedAdam(fraction_evaluate=0.0), noise_multiplier=0.0, clipping_norm=100.0, num_sampled_clients=7
        ),
        rule="krum",
        **o,
    ),
}


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
def test_a_restarted_server_goes_on_as_if_nothing_had_happened(tmp_path, make):
    through = make().start(GRID, record(model()), num_rounds=5)
    path = tmp_path / "folder" / "state.npz"
    make(state=path).start(GRID, record(model()), num_rounds=2)
    evaluated = []

    def evaluate(number, arrays):
        evaluated.append(number)
        return MetricRecord({"seen": number})

    resumed = make(state=path).start(GRID, record(model()), num_rounds=5, evaluate_fn=evaluate)
    assert sorted(resumed.train_metrics_clientapp) == [3, 4, 5]
    assert evaluated == [2, 3, 4, 5]
    for name, array in arrays_of(through.arrays).items():
        np.testing.assert_array_equal(resumed.arrays[name].numpy(), array)


def test_a_finished_run_returns_its_model(tmp_path):
    path = tmp_path / "state.npz"
    make = STRATEGIES["robust sgd"]
    done = make(state=path).start(GRID, record(model()), num_rounds=2)
    again = make(state=path).start(GRID, record(model()), num_rounds=2)
    assert not again.train_metrics_clientapp
    for name, array in arrays_of(done.arrays).items():
        np.testing.assert_array_equal(again.arrays[name].numpy(), array)


def test_a_skipped_round_counts_as_done(tmp_path):
    path = tmp_path / "state.npz"
    nobody = MemoryGrid(dict.fromkeys(range(1, 8), lambda message: None))
    strategy = STRATEGIES["guard"](state=path)
    strategy.start(nobody, record(model()), num_rounds=2)
    state = load_state(path, strategy.server.writer)
    assert state.round == 2
    for name, array in model().items():
        np.testing.assert_array_equal(state.arrays[name], array)


def test_what_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "state.npz"
    STRATEGIES["robust adam"](state=path).start(GRID, record(model()), num_rounds=1)
    with pytest.raises(ValueError, match="was saved by RobustStrategy with Adam"):
        STRATEGIES["robust sgd"](state=path).start(GRID, record(model()), num_rounds=2)
    with pytest.raises(ValueError, match="another model"):
        STRATEGIES["robust adam"](state=path).start(GRID, record({"w": np.zeros(3, np.float32)}), num_rounds=2)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match="not a state that fedra saved"):
        STRATEGIES["robust adam"](state=path).start(GRID, record(model()), num_rounds=2)


@pytest.mark.parametrize(
    ("file", "name"), [("robust-adam-v1.npz", "robust adam"), ("guard-fedadam-v1.npz", "guard fedadam")]
)
def test_a_file_of_before_rules_could_remember_is_gone_on_from(tmp_path, file, name):
    """Saved after two rounds of this federation, by the version before state files had a part for rules."""
    path = tmp_path / "state.npz"
    shutil.copy(Path(__file__).parent / "states" / file, path)
    with np.load(path) as contents:
        assert "rule" not in json.loads(contents["about"].tobytes())
    make = STRATEGIES[name]
    through = make().start(GRID, record(model()), num_rounds=4)
    resumed = make(state=path).start(GRID, record(model()), num_rounds=4)
    assert sorted(resumed.train_metrics_clientapp) == [3, 4]
    for key, array in arrays_of(through.arrays).items():
        np.testing.assert_array_equal(resumed.arrays[key].numpy(), array)


def liar(message):
    sent = arrays_of(message.content["arrays"])
    return reply_to(
        message, {n: (a - 3).astype(a.dtype) for n, a in sent.items()}, {"loss": 0.0, "num-examples": 10**9}
    )


@pytest.mark.parametrize(
    "make", [lambda **o: RobustStrategy(rule="fedra", **o), lambda **o: Guard(FedAvg(), rule="fedra", **o)]
)
def test_every_reply_of_every_round_is_on_record(tmp_path, make):
    path = tmp_path / "deep" / "audit.jsonl"
    records = []
    strategy = make(audit=path, on_round=records.append)
    strategy.start(federation(8, node_3=liar, node_4=BAD["nan"][0]), record(model()), num_rounds=3)
    trail = read_trail(path)
    train = [r for r in trail.rounds if r["phase"] == "train"]
    assert [r["round"] for r in train] == [1, 2, 3]
    assert all(r["rule"] == "fedra" and r["run"] == "1" for r in train)
    clients = [c for c in trail.clients if c["phase"] == "train"]
    assert len(clients) == 3 * 8
    for entry in clients:
        assert {"claimed_quantity", "implied_quantity", "score", "cut", "kept", "weight", "reason", "usable"} <= set(
            entry
        )
        if entry["client"] == 3:
            assert not entry["kept"]
            assert entry["usable"]
            assert entry["score"] > entry["cut"]
            assert entry["claimed_quantity"] == 1e9
            assert "claims 1,000,000,000 samples" in entry["reason"] or "claims 1e+09" in entry["reason"]
        elif entry["client"] == 4:
            assert not entry["kept"]
            assert not entry["usable"]
            assert "not finite" in entry["reason"]
    written = [json.loads(line) for line in path.read_text().splitlines()]
    assert written == [json.loads(line) for each in records for line in record_lines(each)]
    assert all("loss" in line["metrics"] for line in written if line["kind"] == "round" and line["phase"] == "train")


def test_weights_on_record_add_up(tmp_path):
    strategy = RobustStrategy(rule="fedra", audit=tmp_path / "a.jsonl", fraction_evaluate=0.0)
    strategy.start(federation(7), record(model()), num_rounds=1)
    weights = [c["weight"] for c in read_trail(tmp_path / "a.jsonl").clients]
    assert sum(weights) == pytest.approx(1.0)


def test_numbers_that_json_has_no_word_for(tmp_path):
    """A client so close that no quantity is too large implies infinity."""
    path = tmp_path / "a.jsonl"
    strategy = RobustStrategy(rule="fedra", audit=path)

    def same(message):
        arrays = {n: (a + np.float32(0.01)).astype(a.dtype) for n, a in arrays_of(message.content["arrays"]).items()}
        return reply_to(message, arrays, {"loss": 0.5, "num-examples": 2})

    strategy.start(federation(8, node_1=same, node_2=same), record(model()), num_rounds=1)
    assert read_trail(path).unreadable == 0


def test_metrics_of_the_users_own_that_are_no_numbers_are_not_on_record():
    records = []
    strategy = RobustStrategy(
        rule="fedra",
        on_round=records.append,
        train_metrics_aggr_fn=lambda contents, key: MetricRecord({"each": [0.5, 0.25], "mean": 3, "much": 1e300}),
    )
    _, metrics = one_round(strategy, federation(7), record(model()))
    assert metrics["each"] == [0.5, 0.25]
    assert records[0].metrics == {"mean": 3.0}


def test_a_function_for_metrics_that_fails_costs_the_metrics_only():
    records = []

    def broken(contents, key):
        return 1 / 0

    strategy = RobustStrategy(rule="fedra", on_round=records.append, train_metrics_aggr_fn=broken)
    arrays, metrics = one_round(strategy, federation(7), record(model()))
    assert arrays is not None
    assert metrics["fedra-kept"] >= 5
    assert records[0].metrics == {}
