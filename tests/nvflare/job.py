"""A job in memory: NVFlare's own models and events in the order of its FedAvg, no processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey, ReservedKey
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils

from fedra.nvflare import Observer, RobustAggregator

KEY = "NUM_STEPS_CURRENT_ROUND"
SHAPES = {"conv.weight": (3, 2, 2), "conv.bias": (3,), "scale": (), "fc.weight": (4, 5)}


def model(seed: int = 0, dtype: Any = np.float32) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: np.asarray(rng.standard_normal(shape), dtype=dtype) for name, shape in SHAPES.items()}


def moved(params: Mapping[Any, Any], seed: int, step: float = 0.01) -> dict[Any, Any]:
    """An honest client's arrays: what it was sent, a little further in a common direction."""
    rng = np.random.default_rng(seed)
    made: dict[Any, Any] = {}
    for key, array in params.items():
        if isinstance(array, dict):
            made[key] = moved(array, seed)
        elif array.dtype.kind == "f":
            made[key] = np.asarray(array + step + 0.1 * step * rng.standard_normal(array.shape), dtype=array.dtype)
        else:
            made[key] = np.asarray(array + 1, dtype=array.dtype)
    return made


def reply(params: Any, *, claim: Any = 20, kind: Any = ParamsType.FULL, metrics: Any = None, **meta: Any) -> FLModel:
    """A reply past the checks of NVFlare's own class, as one that did not come through it."""
    made = FLModel(params_type=ParamsType.FULL, params={"": 0}, meta={KEY: claim, **meta})
    made.params, made.params_type, made.metrics = params, kind, metrics
    return made


def difference(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> dict[Any, Any]:
    return {
        key: difference(value, after[key]) if isinstance(value, dict) else after[key] - value
        for key, value in before.items()
    }


class Recorder(Observer):
    """Keeps what observers are told; top of a module, as a recipe needs it."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.calls: list[str] = []
        self.runs: list[Any] = []

    def start(self, run: Any) -> None:
        self.calls.append("start")
        self.runs.append(run)

    def round(self, record: Any) -> None:
        self.records.append(record)
        self.calls.append("round")

    def end(self, run: Any, summary: Mapping[str, Any]) -> None:
        self.calls.append(f"end {sorted(summary)}")


class Job:
    """What FedAvg does with an aggregator: the same calls and events in the same order."""

    def __init__(
        self,
        params: dict[Any, Any],
        *,
        clients: Iterable[str] = (),
        aggregator: RobustAggregator | None = None,
        first_round: int = 0,
        **options: Any,
    ) -> None:
        self.recorder = Recorder()
        options = {"threads": 1, **options}
        self.aggregator = aggregator or RobustAggregator(observers=[self.recorder], **options)
        self.model = FLModel(params_type=ParamsType.FULL, params=params)
        self.panics: list[str] = []
        self.clients = [SimpleNamespace(name=name) for name in clients]
        self.number = first_round
        self.context = self._new_context()
        self.fire(EventType.START_RUN, self.context)

    def _new_context(self) -> FLContext:
        context = FLContext()
        engine = SimpleNamespace(get_clients=lambda: self.clients, fire_event=self._fired)
        context.put(ReservedKey.ENGINE, engine, private=True, sticky=True)
        context.put(ReservedKey.RUN_NUM, "job-1", private=False, sticky=True)
        return context

    def _fired(self, event: str, context: FLContext) -> None:
        if event == EventType.FATAL_SYSTEM_ERROR:
            self.panics.append(context.get_prop(FLContextKey.EVENT_DATA))
        self.fire(event, context)

    def fire(self, event: str, context: FLContext | None = None, **props: Any) -> None:
        context = context or self._new_context()
        for name, value in props.items():
            context.set_prop(name, value, private=True, sticky=False)
        self.aggregator.handle_event(event, context)

    @property
    def params(self) -> dict[Any, Any]:
        return self.model.params

    @property
    def record(self) -> Any:
        return self.recorder.records[-1]

    def begin(self, fetching: int = 3) -> None:
        """Send the model out."""
        self.context.set_prop(AppConstants.CURRENT_ROUND, self.number, private=True, sticky=False)
        self.aggregator.reset_stats()
        shareable = FLModelUtils.to_shareable(self.model)
        for _ in range(fetching):
            self.fire(AppEventType.BEFORE_TRAIN_TASK, **{AppConstants.TRAIN_SHAREABLE: shareable})

    def send(self, name: str, sent: FLModel) -> None:
        """Hand a reply on as FedAvg does: what is empty never arrives."""
        if isinstance(sent.meta, dict):
            sent.meta["client_name"] = name
        accepted = False
        if sent.params is not None and not (type(sent.params) in (dict, list) and not sent.params):
            self.aggregator.accept_model(sent)
            accepted = True
        peer = FLContext()
        peer.put(ReservedKey.IDENTITY_NAME, name, private=False, sticky=False)
        context = self._new_context()
        context.set_peer_context(peer)
        self.fire(AppEventType.AFTER_CONTRIBUTION_ACCEPT, context, **{AppConstants.AGGREGATION_ACCEPTED: accepted})

    def finish(self) -> FLModel:
        """Aggregate, and take the result as the model."""
        result = self.aggregator.aggregate_model()
        self.model = FLModelUtils.update_model(self.model, result)
        self.number += 1
        return result

    def round(self, replies: Mapping[str, FLModel]) -> FLModel:
        self.begin(len(replies))
        for name, sent in replies.items():
            self.send(name, sent)
        return self.finish()

    def reason(self, client: str) -> str:
        (found,) = [entry["reason"] for entry in self.record.clients if entry["client"] == client]
        return found

    def kept(self) -> set[str]:
        return {entry["client"] for entry in self.record.clients if entry["kept"]}


def honest(params: Mapping[Any, Any], count: int, round_number: int = 0) -> dict[str, FLModel]:
    """Replies of so many honest clients, which depend on the client and the round alone."""
    return {
        f"site-{place}": reply(moved(params, 1000 * round_number + place), metrics={"accuracy": 0.9})
        for place in range(1, count + 1)
    }


def run_rounds(job: Job, count: int, clients: int = 8, make: Callable[..., dict[str, FLModel]] = honest) -> None:
    for _ in range(count):
        job.round(make(job.params, clients, job.number))
