"""An attacker writes .npy headers that fedra and NumPy read differently."""

from __future__ import annotations

import functools
import io
import random
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, MetricRecord
from flwr.serverapp.strategy import FedAdam, FedAvg
from tests.flower.conftest import _task_identity  # noqa: F401
from tests.flower.federation import federation, model, moved, record, reply_to
from tests.security.headers import ARRAYS, mutated, saved

from fedra import FedRA
from fedra.audit import read_trail
from fedra.flower import Guard, RobustStrategy
from fedra.flower.npy import npy_model_form as model_form
from fedra.flower.npy import view_npy
from fedra.server.faults import Unusable
from fedra.server.form import Entry
from fedra.server.npy import read_header


@functools.cache
def entry_of(dtype: str, shape: tuple[int, ...]) -> Entry:
    (entry,) = model_form({"w": saved(np.zeros(shape, dtype))}).entries
    return entry


def read(array: np.ndarray, data: bytes) -> np.ndarray | None:
    """What fedra reads from bytes sent for this array, or None where it refuses them."""
    entry = entry_of(array.dtype.str, array.shape)
    try:
        return view_npy(data, entry).reshape(entry.shape)
    except Unusable:
        return None


def test_what_fedra_accepts_numpy_loads_alike():
    rng = random.Random(20260101)
    accepted = refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(30_000):
            array, data = mutated(rng)
            ours = read(array, data)
            if ours is None:
                refused += 1
                continue
            accepted += 1
            try:
                theirs = np.load(io.BytesIO(data), allow_pickle=False)
            except Exception as error:
                pytest.fail(f"header {number}: fedra accepts what NumPy refuses with {error!r}: {data!r}")
            assert theirs.dtype.newbyteorder("=") == ours.dtype.newbyteorder("="), data
            assert theirs.shape == ours.shape, data
            assert np.array_equal(theirs, ours, equal_nan=theirs.dtype.kind == "f"), data
    assert accepted > 1000
    assert refused > 10_000


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype.str} {array.shape}")
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_what_numpy_saves_is_accepted(array, version):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=version)
    np.testing.assert_array_equal(read(array, stream.getvalue()), array)


def test_a_truth_value_is_no_length():
    data = saved(np.ones(1, np.float32))
    assert read(np.ones(1, np.float32), data) is not None
    assert read(np.ones(1, np.float32), data.replace(b"(1,), }   ", b"(True,), }")) is None


def with_header(text: bytes, version: bytes = b"\x01\x00"):
    """A client whose values are honest, under a header of its own."""
    length = len(text).to_bytes(2 if version == b"\x01\x00" else 4, "little")

    def client(message):
        arrays = record(moved(message.content["arrays"], np.random.default_rng(99)))
        good = arrays["fc.weight"]
        data = b"\x93NUMPY" + version + length + text + good.data[128:]
        arrays["fc.weight"] = Array(good.dtype, tuple(good.shape), good.stype, data)
        return reply_to(message, arrays, {"loss": 0.5, "num-examples": 20})

    return client


PLAIN = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 5), }\n"
HEADERS = {
    "version 9": with_header(PLAIN, b"\x09\x00"),
    "version 1.1": with_header(PLAIN, b"\x01\x01"),
    "no UTF-8 in version 3": with_header(PLAIN[:-1] + b"#\xff\n", b"\x03\x00"),
    "long integers in version 3": with_header(PLAIN.replace(b"4, 5", b"4L, 5L"), b"\x03\x00"),
}


@pytest.mark.parametrize("shape", ["(4294967296, 4294967296, 0)", "(9223372036854775808, 0)", "(" + "1, " * 70 + ")"])
def test_a_shape_that_numpy_cannot_address_is_no_shape(shape):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(4)
    with pytest.raises(ValueError):  # noqa: PT011 (NumPy has several texts for it)
        np.load(io.BytesIO(data))
    with pytest.raises(Unusable, match="impossible shape"):
        read_header(data)


@pytest.mark.parametrize("inner", [FedAvg, FedAdam])
@pytest.mark.parametrize("hostile", HEADERS.values(), ids=HEADERS)
def test_a_header_that_numpy_refuses_costs_its_sender_alone(hostile, inner):
    reports = []
    strategy = Guard(inner(fraction_evaluate=0.0), rule=FedRA(num_malicious=1), on_round=reports.append)
    strategy.start(federation(8, node_3=hostile), record(model()), num_rounds=2)
    for report in reports:
        assert not report.skipped
        assert [entry["client"] for entry in report.clients if not entry["usable"]] == [3]


def test_no_byte_of_a_header_reaches_the_inner_strategy():
    """Headers that NumPy reads too: another version, order of keys, padding; fields that say something else."""
    seen = []

    class Watching(FedAvg):
        def aggregate_train(self, server_round, replies):
            seen.extend(reply.content["arrays"].copy() for reply in replies)
            return super().aggregate_train(server_round, replies)

    def client(message):
        arrays = moved(message.content["arrays"], np.random.default_rng(message.metadata.dst_node_id))
        sent = ArrayRecord()
        for name, array in reversed(arrays.items()):
            text = f"{{'shape':{array.shape},\"fortran_order\":False ,'descr':'{array.dtype.str}'}}".encode().ljust(300)
            data = b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little") + text + array.tobytes()
            sent[name] = Array("object", (9, 9), "numpy.ndarray", data)
        return reply_to(message, sent, {"num-examples": 20})

    parts = model()
    grid = federation(0, **{f"node_{node}": client for node in range(1, 7)})
    Guard(Watching(fraction_evaluate=0.0), rule="krum").start(grid, record(parts), num_rounds=1)
    assert seen
    for arrays in seen:
        assert list(arrays) == list(parts)
        for name, array in arrays.items():
            plain = Array(array.numpy())
            assert (array.dtype, array.shape, array.data) == (plain.dtype, plain.shape, plain.data)
            assert (plain.dtype, plain.shape) == (str(parts[name].dtype), parts[name].shape)


@dataclass
class Memory:
    steps: int = 0


class Fails(FedAvg):
    """Raises on what it is given in round 2, after it has changed all it remembers."""

    def __init__(self, error: type[BaseException], **options) -> None:
        super().__init__(**options)
        self.error = error
        self.count, self.norm = 0, 1.0
        self.arrays, self.nested = np.zeros(3), {"m": [np.zeros(2)], "own": Memory()}

    def aggregate(self, server_round) -> None:
        self.count += 1
        self.norm /= 2
        self.arrays += 1
        self.nested["m"][0] += 1
        self.nested["own"].steps += 1
        self.last = server_round
        if server_round == 2:
            raise self.error("bad \x1b[31m value\n")

    def aggregate_train(self, server_round, replies):
        self.aggregate(server_round)
        return super().aggregate_train(server_round, replies)

    def aggregate_evaluate(self, server_round, replies):
        self.aggregate(server_round)
        return super().aggregate_evaluate(server_round, replies)


@pytest.mark.parametrize("error", [ValueError, OverflowError, MemoryError, RecursionError])
def test_what_the_inner_strategy_raises_is_a_skipped_round(error, tmp_path):
    inner = Fails(error)
    strategy = Guard(inner, rule="krum", audit=tmp_path / "audit.jsonl", state=tmp_path / "state.npz")
    result = strategy.start(federation(8), record(model()), num_rounds=3)
    assert [result.train_metrics_clientapp[number]["fedra-skipped"] for number in (1, 2, 3)] == [0, 1, 0]
    assert sorted(result.evaluate_metrics_clientapp) == [1, 3]
    assert (inner.count, inner.norm, inner.last) == (4, 1 / 16, 3)
    assert inner.arrays.tolist() == [4, 4, 4]
    assert inner.nested["m"][0].tolist() == [4, 4]
    assert inner.nested["own"].steps == 4
    notes = {(line["round"], line["phase"]): line["note"] for line in read_trail(tmp_path / "audit.jsonl").rounds}
    assert [place for place, note in notes.items() if note] == [(2, "train"), (2, "evaluate")]
    for place in ((2, "train"), (2, "evaluate")):
        assert notes[place].startswith(f"the inner strategy raised {error.__name__}: bad")
        assert notes[place].isprintable()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_server_can_still_be_stopped(error):
    with pytest.raises(error):
        Guard(Fails(error), rule="krum").start(federation(8), record(model()), num_rounds=3)


def test_a_metric_function_that_raises_costs_its_metrics_only():
    def raises(contents, key) -> MetricRecord:
        raise ZeroDivisionError("no")

    reports = []
    strategy = RobustStrategy(
        rule="krum", on_round=reports.append, train_metrics_aggr_fn=raises, evaluate_metrics_aggr_fn=raises
    )
    sent = record(model())
    result = strategy.start(federation(8), sent, num_rounds=1)
    assert result.train_metrics_clientapp[1]["fedra-skipped"] == 0
    assert not np.array_equal(result.arrays["fc.weight"].numpy(), sent["fc.weight"].numpy())
    assert ["ZeroDivisionError" in report.note for report in reports] == [False, True]
