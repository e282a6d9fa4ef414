"""Every way in which one client's reply can be wrong, as real Flower messages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from tests.flower.federation import moved, record, reply_to

Reply = Message | list[Message]


def _good(message: Message) -> tuple[dict[str, np.ndarray], dict[str, object]]:
    arrays = moved(message.content["arrays"], np.random.default_rng(99))
    return arrays, {"loss": 0.4, "num-examples": 20}


def _metrics(change: Callable[[dict], None]) -> Callable[[Message], Reply]:
    """Metrics changed past MetricRecord's own checks, as a client that does not use Flower's classes could."""

    def client(message: Message) -> Reply:
        arrays, metrics = _good(message)
        metric_record = MetricRecord(metrics)
        change(metric_record.__dict__["_data"])
        return reply_to(message, arrays, metric_record)

    return client


def _arrays(change: Callable[[dict[str, np.ndarray]], object]) -> Callable[[Message], Reply]:
    def client(message: Message) -> Reply:
        arrays, metrics = _good(message)
        changed = change(arrays)
        return reply_to(message, changed if isinstance(changed, ArrayRecord | dict) else arrays, metrics)

    return client


def _content(build: Callable[[ArrayRecord, MetricRecord], dict]) -> Callable[[Message], Reply]:
    def client(message: Message) -> Reply:
        arrays, metrics = _good(message)
        return Message(RecordDict(build(record(arrays), MetricRecord(metrics))), reply_to=message)

    return client


def _claim(value: object) -> Callable[[Message], Reply]:
    return _metrics(lambda metrics: metrics.update({"num-examples": value}))


def _data(change: Callable[[bytes], bytes]) -> Callable[[Message], Reply]:
    """The bytes of one array changed, its description left as it was."""

    def client(message: Message) -> Reply:
        arrays, metrics = _good(message)
        changed = record(arrays)
        array = changed["fc.weight"]
        changed["fc.weight"] = Array(array.dtype, tuple(array.shape), array.stype, change(array.data))
        return reply_to(message, changed, metrics)

    return client


def _put(name: str, value: float) -> Callable[[dict[str, np.ndarray]], object]:
    def change(arrays: dict[str, np.ndarray]) -> None:
        arrays[name] = np.array(arrays[name])
        arrays[name].reshape(-1)[-1] = value

    return change


def _replace(name: str, array: np.ndarray) -> Callable[[dict[str, np.ndarray]], object]:
    return lambda arrays: arrays.update({name: array})


def _header(text: str) -> bytes:
    body = text.encode()
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body


def _error(message: Message) -> Message:
    return Message(Error(code=0, reason="out of memory\n\x1b[31m" + "x" * 500), reply_to=message)


def _twice(message: Message) -> list[Message]:
    arrays, metrics = _good(message)
    return [reply_to(message, arrays, metrics), reply_to(message, arrays, metrics)]


def _nobody(message: Message) -> Message:
    arrays, metrics = _good(message)
    reply = reply_to(message, arrays, metrics)
    reply.metadata.__dict__["_src_node_id"] = 424242
    return reply


def _foreign_stype(message: Message) -> Message:
    arrays, metrics = _good(message)
    changed = record(arrays)
    array = changed["scale"]
    changed["scale"] = Array(array.dtype, (), "pickle", array.data)
    return reply_to(message, changed, metrics)


def _larger(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return arrays | {f"layer-{i}": np.zeros(1000, np.float32) for i in range(20)}


# name -> (client, a part of the reason it must be dropped with)
BAD: dict[str, tuple[Callable[[Message], Reply], str]] = {
    "no content at all": (_content(lambda a, m: {}), "0 array records"),
    "array record missing": (_content(lambda a, m: {"metrics": m}), "0 array records"),
    "metric record missing": (_content(lambda a, m: {"arrays": a}), "0 metric records"),
    "array record renamed": (_content(lambda a, m: {"weights": a, "metrics": m}), "named 'weights'"),
    "metric record renamed": (_content(lambda a, m: {"arrays": a, "m": m}), "named 'm'"),
    "two array records": (_content(lambda a, m: {"arrays": a, "b": a, "metrics": m}), "2 array records"),
    "two metric records": (_content(lambda a, m: {"arrays": a, "metrics": m, "n": m}), "2 metric records"),
    "config instead of metrics": (
        _content(lambda a, m: {"arrays": a, "metrics": ConfigRecord({"num-examples": "20"})}),
        "0 metric records",
    ),
    "extra metric": (_metrics(lambda m: m.update(evil=1.0)), "has metric 'evil'"),
    "missing metric": (_metrics(lambda m: m.pop("loss")), "lacks metric 'loss'"),
    "metric is a list": (_metrics(lambda m: m.update(loss=[0.1, 0.2])), "a list of 2"),
    "metric is nan": (_metrics(lambda m: m.update(loss=float("nan"))), "not finite"),
    "metric is inf": (_metrics(lambda m: m.update(loss=float("inf"))), "not finite"),
    "metric is text": (_metrics(lambda m: m.update(loss="low")), "holds str"),
    "metric beyond floats": (_metrics(lambda m: m.update(loss=10**400)), "not finite"),
    "other shape": (_arrays(_replace("fc.weight", np.zeros((5, 4), np.float32))), "shape (5, 4)"),
    "flat": (_arrays(_replace("fc.weight", np.zeros(20, np.float32))), "shape (20,)"),
    "other dtype": (_arrays(_replace("fc.weight", np.zeros((4, 5)))), "dtype float64"),
    "integer dtype": (_arrays(_replace("fc.weight", np.zeros((4, 5), np.int32))), "dtype int32"),
    "text dtype": (_arrays(_replace("fc.weight", np.full((4, 5), "x"))), "dtype <U1"),
    "structured dtype": (_arrays(_replace("fc.weight", np.zeros((4, 5), "f4,f4"))), "no plain number"),
    "renamed array": (_arrays(lambda a: {k.replace("fc", "head"): v for k, v in a.items()}), "'head.weight'"),
    "missing array": (_arrays(lambda a: a.pop("scale")), "lacks array 'scale'"),
    "extra array": (_arrays(lambda a: a | {"extra": np.zeros(2, np.float32)}), "unknown array 'extra'"),
    "larger than the model": (_arrays(_larger), "24 arrays instead of 4"),
    "no arrays": (_arrays(lambda a: ArrayRecord()), "0 arrays instead of 4"),
    "nan": (_arrays(_put("conv.bias", np.nan)), "not finite"),
    "inf": (_arrays(_put("fc.weight", np.inf)), "not finite"),
    "minus inf in a scalar": (_arrays(_put("scale", -np.inf)), "not finite"),
    "bytes missing": (_data(lambda d: d[:-4]), "76 bytes instead of 80"),
    "bytes too many": (_data(lambda d: d + bytes(1000)), "1080 bytes instead of 80"),
    "no bytes": (_data(lambda d: b""), "cannot be read"),
    "not npy": (_data(lambda d: b"PK\x03\x04" + d), "cannot be read"),
    "pickled objects": (
        _data(lambda d: _header("{'descr': '|O', 'fortran_order': False, 'shape': (4, 5), }\n") + d),
        "no plain number",
    ),
    "negative shape": (
        _data(lambda d: _header("{'descr': '<f4', 'fortran_order': False, 'shape': (-4, -5), }\n") + d[-80:]),
        "impossible shape",
    ),
    "shape that overflows": (
        _data(lambda d: _header("{'descr': '<f4', 'fortran_order': False, 'shape': (2**62, 4), }\n") + d[-80:]),
        "cannot be read",
    ),
    "code in the header": (_data(lambda d: _header("__import__('os').abort()\n") + d), "cannot be read"),
    "deep header": (_data(lambda d: _header("(" * 9000 + ")" * 900 + "\n") + d), "cannot be read"),
    "endless header": (_data(lambda d: b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + d), "cannot be read"),
    "foreign serialisation": (_foreign_stype, "'pickle'"),
    "num-examples missing": (_metrics(lambda m: m.pop("num-examples")), "missing"),
    "num-examples list": (_claim([20, 20]), "type list"),
    "num-examples text": (_claim("20"), "type str"),
    "num-examples bool": (_claim(True), "type bool"),
    "num-examples none": (_claim(None), "type NoneType"),
    "num-examples negative": (_claim(-20), "-20"),
    "num-examples zero": (_claim(0), "0"),
    "num-examples fraction": (_claim(0.5), "0.5"),
    "num-examples nan": (_claim(float("nan")), "nan"),
    "num-examples inf": (_claim(float("inf")), "inf"),
    "num-examples huge": (_claim(1e300), "1e+300"),
    "num-examples beyond floats": (_claim(10**400), "inf"),
    "error": (_error, "error 0: 'out of memory"),
    "twice": (_twice, "came first"),
    "not asked": (_nobody, "not asked"),
}
