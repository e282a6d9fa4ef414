"""Good replies, spoilt in one to three ways: of the Message API, and of the older one."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord
from flwr.common import Code, EvaluateRes, FitRes, Parameters, Status
from tests.security.fuzz import envelope, values
from tests.security.fuzz.envelope import Draft


def spoilt_message(message: Message, arrays: ArrayRecord | None, metrics: dict, rng: random.Random) -> list[Message]:
    """Replies to a message: a good one, spoilt; `arrays` is None in evaluation."""
    metric_record = MetricRecord(metrics)
    draft: Draft = {
        "records": {"metrics": metric_record}
        if arrays is None
        else {"arrays": arrays.copy(), "metrics": metric_record},
        "copies": 1,
        "error": None,
        "node": None,
        "metadata": {},
        "content": ...,
    }
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        rng.choice(_EITHER if arrays is None else _EITHER + _ARRAYS)(draft, rng)
    return envelope.build(message, draft)


def _metrics_of(draft: Draft) -> dict[Any, Any]:
    """What the metric record holds, past the record's own checks."""
    for found in draft["records"].values():
        if isinstance(found, MetricRecord):
            return found.__dict__["_data"]
    return {}


def _arrays_of(draft: Draft) -> dict[Any, Any]:
    for found in draft["records"].values():
        if isinstance(found, ArrayRecord):
            return found.__dict__["_data"]
    return {}


def _put_metric(draft: Draft, rng: random.Random) -> None:
    _metrics_of(draft)[rng.choice(values.NAMES)] = values.claim_or_metric(rng)


def _claim(draft: Draft, rng: random.Random) -> None:
    _metrics_of(draft)["num-examples"] = values.claim_or_metric(rng)


def _drop_metric(draft: Draft, rng: random.Random) -> None:
    _drop(_metrics_of(draft), rng)


def _odd_key(draft: Draft, rng: random.Random) -> None:
    _metrics_of(draft)[rng.choice([None, 3, 0.5, ("a",), b"loss"])] = 0.5


def _rename_record(draft: Draft, rng: random.Random) -> None:
    name = rng.choice(list(draft["records"]) or [""])
    if name in draft["records"]:
        draft["records"][rng.choice(values.NAMES)] = draft["records"].pop(name)


def _drop_record(draft: Draft, rng: random.Random) -> None:
    _drop(draft["records"], rng)


def _more_records(draft: Draft, rng: random.Random) -> None:
    config = ConfigRecord()
    config.__dict__["_data"][rng.choice(values.NAMES)] = values.claim_or_metric(rng)
    extra = [config, MetricRecord({"num-examples": 5}), ArrayRecord(), None, "text", 5, b""]
    draft["records"][rng.choice(values.NAMES)] = rng.choice(extra)


def _turn_records(draft: Draft, rng: random.Random) -> None:
    draft["records"] = dict(reversed(draft["records"].items()))


def _error(draft: Draft, rng: random.Random) -> None:
    draft["error"] = Error(code=rng.choice([0, 1, 7, -5, 2**40]), reason=rng.choice([None, *values.NAMES]))


def _copies(draft: Draft, rng: random.Random) -> None:
    draft["copies"] = rng.choice([0, 2, 3, 10])


def _node(draft: Draft, rng: random.Random) -> None:
    draft["node"] = rng.choice(
        [0, -1, 5000, 2**64, 2**70, 10**5000, True, None, "1", "\x1b[2J", 1.5, float("nan"), [1], {}, b"1"]
    )


def _any_array(draft: Draft, rng: random.Random) -> None:
    _arrays_of(draft)[rng.choice(values.NAMES)] = Array(values.array(rng))


def _drop_array(draft: Draft, rng: random.Random) -> None:
    _drop(_arrays_of(draft), rng)


def _turn_arrays(draft: Draft, rng: random.Random) -> None:
    arrays = _arrays_of(draft)
    turned = list(arrays.items())
    rng.shuffle(turned)
    arrays.clear()
    arrays.update(turned)


def _swap_arrays(draft: Draft, rng: random.Random) -> None:
    arrays = _arrays_of(draft)
    if len(arrays) > 1:
        one, other = rng.sample(list(arrays), 2)
        arrays[one], arrays[other] = arrays[other], arrays[one]


def _no_array(draft: Draft, rng: random.Random) -> None:
    arrays = _arrays_of(draft)
    if arrays:
        arrays[rng.choice(list(arrays))] = rng.choice([None, b"", "text", np.zeros(3), 5])


def _alter_array(change: Callable[[Array, random.Random], Array]) -> Callable[[Draft, random.Random], None]:
    def alter(draft: Draft, rng: random.Random) -> None:
        arrays = _arrays_of(draft)
        names = [name for name, array in arrays.items() if isinstance(array, Array)]
        if names:
            name = rng.choice(names)
            arrays[name] = change(copy.copy(arrays[name]), rng)

    return alter


def _respelled(array: Array, rng: random.Random) -> Array:
    try:
        return Array(values.respelled(array.numpy(), rng))
    except Exception:  # an earlier change has made it unreadable
        return array


def _other_bytes(array: Array, rng: random.Random) -> Array:
    array.__dict__["data"] = values.data(array.data, rng) if isinstance(array.data, bytes) else b""
    return array


def _other_field(array: Array, rng: random.Random) -> Array:
    field, odd = rng.choice(
        [
            ("dtype", rng.choice(["object", "float64", "", "\x1b[2J", None, 5])),
            ("shape", rng.choice([(), (9, 9), (-1,), (2**62, 2**62), None, "ab", (None,)])),
            ("stype", rng.choice(["", "pickle", "torch", "numpy.ndarray ", None, "\x1b[2J"])),
            ("data", rng.choice([b"", b"PK\x03\x04", None, "text", 5, bytearray(b"\x93NUMPY"), memoryview(b"x")])),
        ]
    )
    array.__dict__[field] = odd
    return array


def _drop(held: dict[Any, Any], rng: random.Random) -> None:
    if held:
        held.pop(rng.choice(list(held)))


_EITHER = (
    _put_metric, _put_metric, _claim, _claim, _drop_metric, _odd_key, _rename_record, _drop_record, _more_records,
    _turn_records, _error, _copies, _node, envelope.metadata, envelope.metadata, envelope.no_content,
    envelope.odd_record_name, envelope.config, envelope.excess,
)  # fmt: skip
_ARRAYS = (
    *(_alter_array(_other_bytes),) * 6, *(_alter_array(_respelled),) * 5, *(_alter_array(_other_field),) * 2,
    _any_array, _drop_array, _turn_arrays, _swap_arrays, _no_array,
)  # fmt: skip


def spoilt_fit(good: FitRes, rng: random.Random) -> FitRes:
    """A result of the older API, spoilt."""
    answer = FitRes(good.status, Parameters(list(good.parameters.tensors), "numpy.ndarray"), good.num_examples, {})
    answer.metrics = dict(good.metrics)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        tensors = answer.parameters.tensors if isinstance(answer.parameters, Parameters) else None
        kind = rng.randrange(10) if isinstance(tensors, list) and tensors else rng.randrange(3)
        if kind < 3:
            _spoil_answer(answer, rng)
        elif kind < 7:
            place = rng.randrange(len(tensors))
            if isinstance(tensors[place], bytes):
                tensors[place] = values.data(tensors[place], rng)
        elif kind == 7:
            place = rng.randrange(len(tensors))
            array = Array("", (), "numpy.ndarray", tensors[place]) if isinstance(tensors[place], bytes) else None
            tensors[place] = _respelled(array, rng).data if array else rng.choice([None, "text", 5])
        elif kind == 8:
            turned = [tensors[::-1], tensors[:-1], [], [*tensors, tensors[0]]]
            answer.parameters = Parameters(rng.choice(turned), "numpy.ndarray")
        else:
            answer.parameters = rng.choice(
                [None, Parameters([], ""), Parameters(None, "x"), Parameters(tensors, "\x1b[2J"), 5]
            )
    return answer


def spoilt_evaluation(good: EvaluateRes, rng: random.Random) -> EvaluateRes:
    answer = EvaluateRes(good.status, good.loss, good.num_examples, dict(good.metrics))
    for _ in range(rng.choice([1, 1, 2])):
        if rng.random() < 0.3:
            answer.loss = values.claim_or_metric(rng)
        else:
            _spoil_answer(answer, rng)
    return answer


def _spoil_answer(answer: Any, rng: random.Random) -> None:
    kind = rng.randrange(5)
    if kind == 0:
        answer.num_examples = values.claim_or_metric(rng)
    elif kind < 3 and isinstance(answer.metrics, dict):
        answer.metrics[rng.choice([*values.NAMES, None, 3])] = values.claim_or_metric(rng)
    elif kind == 3:
        answer.metrics = rng.choice([{}, None, [], "text", {"loss": "low"}, {"loss": True}, {"loss": b""}])
    else:
        answer.status = rng.choice([Status(Code.FIT_NOT_IMPLEMENTED, "\x1b[2J"), Status(Code.OK, ""), None])
