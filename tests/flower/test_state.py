from __future__ import annotations

import numpy as np
import pytest
from flwr.app import MetricRecord
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAdam, FedAvg, FedAvgM
from tests.flower.federation import MemoryGrid, arrays_of, model, moved, record, reply_to

from fedra.flower import Guard, RobustStrategy
from fedra.optimizers import Adam
from fedra.server.state import SavedState, check_writable, load_state, save_state


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


def test_no_state_yet(tmp_path):
    assert load_state(tmp_path / "state.npz", "w") is None


def test_a_link_in_the_place_of_the_new_state_is_not_followed(tmp_path):
    other, path = tmp_path / "other", tmp_path / "state.npz"
    other.write_text("somebody's")
    (tmp_path / "state.npz.new").symlink_to(other)
    save_state(path, SavedState(round=1, writer="w", arrays={}))
    (tmp_path / "state.npz.new").symlink_to(other)
    check_writable(path)
    assert other.read_text() == "somebody's"
    assert load_state(path, "w").round == 1
