"""Tensors, tensors on disk, and single numbers in the place of arrays."""

from __future__ import annotations

import gc
import json
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_opt.pt.lazy_tensor_dict import LazyTensorDict
from safetensors.torch import save_file
from tests.nvflare.job import Job, honest, model, moved, reply

from fedra.nvflare.parameters import SentModel, arrays_of
from fedra.server.faults import Unusable


def tensors(params: dict[str, np.ndarray], dtype: torch.dtype | None = None) -> dict[str, torch.Tensor]:
    made = {name: torch.from_numpy(np.array(array)) for name, array in params.items()}
    return {name: t.to(dtype) if dtype and t.is_floating_point() else t for name, t in made.items()}


def replies(sent: dict[str, torch.Tensor], count: int = 8) -> dict[str, FLModel]:
    plain = arrays_of(sent)
    made = honest(plain, count)
    for one in made.values():
        one.params = {name: torch.from_numpy(array).to(sent[name].dtype) for name, array in one.params.items()}
    return made


def lazily(params: dict[str, torch.Tensor], folder: Path) -> dict[str, object]:
    """A reply as NVFlare hands it on where tensors are left on disk: one file for each."""
    place = tempfile.mkdtemp(dir=folder)
    files = {}
    for number, (name, tensor) in enumerate(params.items()):
        path = f"{place}/chunk_{number}.safetensors"
        save_file({name: tensor}, path)
        files[name] = (path, name)
    held = LazyTensorDict(files, place)
    return {name: held.make_lazy_ref(name) for name in params}


def test_tensors_give_the_bits_of_arrays() -> None:
    sent = model() | {"steps": np.asarray(3)}
    of_arrays = Job(sent).round(honest(sent, 8)).params
    job = Job(tensors(sent))
    result = job.round(replies(job.params)).params
    assert list(result) == list(sent)
    for name, tensor in result.items():
        assert isinstance(tensor, torch.Tensor)
        np.testing.assert_array_equal(tensor.numpy(), of_arrays[name])
        assert tensor.dtype == job.params[name].dtype


def test_arrays_in_the_place_of_tensors_and_the_reverse() -> None:
    sent = model()
    job = Job(tensors(sent))
    mixed = replies(job.params)
    mixed["site-1"].params = {name: tensor.numpy() for name, tensor in mixed["site-1"].params.items()}
    mixed["site-2"].params["scale"] = np.float32(mixed["site-2"].params["scale"].item())
    job.round(mixed)
    assert len(job.kept()) == 8


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_floats_stay_what_they_are(dtype: torch.dtype) -> None:
    job = Job(tensors(model(), dtype))
    before = {name: tensor.clone() for name, tensor in job.params.items()}
    made = replies(job.params)
    made["site-8"].params["fc.weight"] = made["site-8"].params["fc.weight"].to(torch.int32)
    result = job.round(made).params
    assert len(job.kept()) == 7
    for name, tensor in result.items():
        assert tensor.dtype == dtype
        assert torch.isfinite(tensor).all()
        assert not torch.equal(tensor, before[name])


def test_a_model_in_bfloat16_takes_float32_and_not_the_reverse() -> None:
    job = Job(tensors(model(), torch.bfloat16))
    made = replies(job.params)
    made["site-1"].params = {name: tensor.float() for name, tensor in made["site-1"].params.items()}
    job.round(made)
    assert "site-1" in job.kept()
    job = Job(tensors(model()))
    made = replies(job.params)
    made["site-1"].params = {name: tensor.bfloat16() for name, tensor in made["site-1"].params.items()}
    job.round(made)
    assert job.reason("site-1") == "array 'conv.weight' has dtype bfloat16 instead of float32"


def test_the_largest_values_stay_finite_in_bfloat16() -> None:
    sent = SentModel({"w": torch.zeros(2, dtype=torch.bfloat16)}, None)
    made = sent.written({"w": np.asarray([3.4e38, -3.4e38], np.float32)})
    assert torch.isfinite(made["w"]).all()


BAD_TENSORS = {
    "sparse": (lambda t: torch.zeros(4, 5).to_sparse(), "layout torch.sparse_coo"),
    "compressed": (lambda t: torch.eye(4, 5).to_sparse_csr(), "layout torch.sparse_csr"),
    "complex": (lambda t: t.to(torch.complex64), "dtype complex64"),
    "integers": (lambda t: t.to(torch.int64), "dtype int64"),
    "float8": (lambda t: t.to(torch.float8_e4m3fn), "cannot be read"),
    "without memory": (lambda t: t.to("meta"), "cannot be read"),
    "quantised": (lambda t: torch.quantize_per_tensor(t, 0.1, 0, torch.qint8), "cannot be read"),
    "other shape": (lambda t: t.T, "shape (5, 4)"),
    "wide without memory": (lambda t: torch.zeros(1).bfloat16().expand(10**6, 10**6), "shape (1000000, 1000000)"),
    "nan": (lambda t: t * float("nan"), "not finite"),
    "not in order": (lambda t: t.T.contiguous().T, ""),
    "learned": (lambda t: t.clone().requires_grad_(), ""),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", BAD_TENSORS)
def test_tensors_of_all_kinds(case: str) -> None:
    change, reason = BAD_TENSORS[case]
    job = Job(tensors(model()))
    made = replies(job.params, 9)
    made["site-9"].params["fc.weight"] = change(made["site-9"].params["fc.weight"])
    job.round(made)
    assert reason in job.reason("site-9")
    assert ("site-9" in job.kept()) is (reason == "")
    assert {f"site-{place}" for place in range(1, 9)} <= job.kept()


@pytest.mark.parametrize("rule", ["fedra", "centered-clipping"])
def test_tensors_on_disk_give_the_same_bits_and_their_files_are_let_go(rule: str, tmp_path) -> None:
    sent = tensors(model() | {"steps": np.asarray(3)})
    in_memory = Job(dict(sent), rule=rule).round(replies(sent)).params
    job = Job(dict(sent), rule=rule)
    made = replies(sent)
    job.begin()
    for number, name in enumerate(made):
        made[name].params = lazily(made[name].params, tmp_path)
        if number % 2:
            made[name].params["scale"] = made[name].params["scale"].materialize()
    for name in list(made):
        job.send(name, made.pop(name))
        gc.collect()
        assert len(list(tmp_path.iterdir())) == len(made), "a reply's files outlive its reading"
    result = job.finish().params
    assert len(job.kept()) == 8
    for name, tensor in result.items():
        assert torch.equal(tensor, in_memory[name])


def test_tensors_on_disk_that_are_wrong_cost_their_client_only(tmp_path) -> None:
    sent = tensors(model())
    job = Job(dict(sent))
    made = replies(sent, 11)
    for one in made.values():
        one.params = lazily(one.params, tmp_path)
    Path(made["site-9"].params["fc.weight"].file_path).unlink()
    Path(made["site-10"].params["fc.weight"].file_path).write_bytes(b"x" * 50)
    made["site-11"].params["scale"] = made["site-11"].params["conv.bias"]
    job.round(made)
    assert job.reason("site-9").startswith("cannot be read: FileNotFoundError")
    assert job.reason("site-10").startswith("cannot be read: SafetensorError")
    assert job.reason("site-11") == "array 'scale' has shape (3,), not ()"
    assert len(job.kept()) == 8


def test_tensors_on_disk_are_loaded_one_at_a_time(tmp_path) -> None:
    names = [f"layer-{place}" for place in range(16)]
    params = {name: torch.zeros(250_000) for name in names}
    sent = SentModel(params, None)
    reference = lazily({name: torch.ones(250_000) for name in names}, tmp_path)
    loaded, peaks = [], []

    class Counted:
        def __init__(self, inner: object) -> None:
            self.inner = inner

        def materialize(self) -> torch.Tensor:
            peaks.append(tracemalloc.get_traced_memory()[1])
            gc.collect()
            loaded.append(sum(isinstance(o, torch.Tensor) and o.numel() == 250_000 for o in gc.get_objects()))
            # The list of all objects is the test's own, and long where many tests have run before.
            tracemalloc.reset_peak()
            return self.inner.materialize()

    tracemalloc.start()
    row = sent.read({name: Counted(value) for name, value in reference.items()}, difference=False, as_update=True)
    peak = max(*peaks, tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    assert (np.asarray(row) == 1).all()
    assert isinstance(row, np.memmap)
    assert peak < 2_000_000, "the row itself is on disk too"
    assert max(loaded) <= loaded[0] + 1


def test_a_full_disk_costs_a_reply_and_not_the_server(tmp_path, monkeypatch) -> None:
    def full(*_):
        raise OSError(28, "No space left on device")

    sent = tensors(model())
    job = Job(dict(sent))
    made = replies(sent, 9)
    made["site-9"].params = lazily(made["site-9"].params, tmp_path)
    monkeypatch.setattr("os.posix_fallocate", full)
    job.round(made)
    assert "No space left" in job.reason("site-9")
    assert len(job.kept()) == 8


def test_single_numbers_in_the_servers_model() -> None:
    sent = {"w": np.zeros(3, np.float32), "b": 1.5, "n": 3, "flag": True}
    read = SentModel(sent, None)
    made = read.written({"w": np.ones(3, np.float32), "b": np.asarray(2.5)})
    assert made["b"] == 2.5
    assert type(made["b"]) is float
    assert (made["n"], made["flag"]) == (3, True)
    row = read.read({"w": np.ones(3, np.float32), "b": 2.0, "n": 4, "flag": False}, difference=False, as_update=True)
    assert row.tolist() == [1, 1, 1, 0.5]
    with pytest.raises(Unusable, match="'n' has dtype float64"):
        read.read({"w": np.ones(3, np.float32), "b": 2.0, "n": 4.0, "flag": False}, difference=False, as_update=True)


def test_a_big_reply_costs_one_row_of_memory() -> None:
    sent = SentModel({"w": np.zeros(1_000_000, np.float32)}, None)
    theirs = {"w": np.ones(1_000_000, np.float32)}
    tracemalloc.start()
    sent.read(theirs, difference=False, as_update=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.2 * 4_000_000


def test_replies_are_not_held_until_the_end_of_the_round() -> None:
    import weakref

    sent = model()
    job = Job(sent)
    job.begin()
    one = reply(moved(sent, 1))
    alive = weakref.ref(one.params["fc.weight"])
    job.send("site-1", one)
    del one
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("kind", [ParamsType.FULL, ParamsType.DIFF])
def test_values_that_overflow_are_found(kind: ParamsType) -> None:
    sent = {"w": np.full(20, 3e38, np.float32)}
    job = Job(sent, rule="median")
    made = {f"site-{place}": reply(moved(sent, place)) for place in range(8)}
    made["site-9"] = reply({"w": np.full(20, 3e38 if kind == ParamsType.DIFF else -3e38, np.float32)}, kind=kind)
    job.round(made)
    assert json.dumps(job.record.clients)
    assert ("not finite" in job.reason("site-9")) is (kind == ParamsType.DIFF)
