"""RobustAggregator: any rule of the registry with any server optimizer, as the aggregator of NVFlare's FedAvg."""

from __future__ import annotations

import dataclasses
import logging
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey, FLMetaKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.aggregators.model_aggregator import ModelAggregator
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils

from fedra import checks
from fedra.alarms import WarningLimits
from fedra.audit import with_audit
from fedra.nvflare.parameters import SentModel, arrays_of
from fedra.nvflare.recipe import chained, check_survives, members, path_text
from fedra.optimizers import ServerOptimizer
from fedra.rules import DEFAULT_RULE, Rule
from fedra.server import Observer
from fedra.server.core import Server
from fedra.server.disk import OnDiskError
from fedra.server.faults import Unusable, short
from fedra.server.metrics import average_metrics, plain_numbers, read_numbers
from fedra.server.replies import Reply, read_reply
from fedra.server.state import Arrays
from fedra.server.step import ServerStep

LOGGER = logging.getLogger("fedra")

_UNKNOWN = "unknown"
_LONGEST_NAME = 200
_NOTHING_SENT = "sent no parameters, or an error (under a name that it gave itself)"
_RESTORED = "the job began with another model than that of the saved state, which is sent from the next round on"
_OTHER_MODEL = "trained another model than the one of the saved state"


@dataclass(eq=False, kw_only=True)
class _Round:
    """What a round has brought so far: the model that was sent, the job's clients, and what came back.

    `refusals` are the names under which results came that NVFlare did not hand on.
    """

    sent: SentModel | None = None
    clients: frozenset[str] = frozenset()
    replies: list[Reply] = field(default_factory=list)
    seen: set[Any] = field(default_factory=set)
    refusals: list[str] = field(default_factory=list)

    def all_replies(self) -> list[Reply]:
        """Return the replies in an order that does not depend on who was first, then who sent nothing, with a fault.

        A name of the latter is the client's own word: it is believed where it is a client of the job that sent nothing
        else.
        """
        found = sorted(self.replies, key=lambda reply: str(reply.client))
        for name in self.refusals:
            believed = name in self.clients and name not in self.seen
            self.seen.add(name)
            client = name if believed else _UNKNOWN
            found.append(Reply(client=client, message=None, fault=_NOTHING_SENT, asked=believed))
        return found


class RobustAggregator(ModelAggregator):
    """An aggregator that screens every reply, aggregates updates by a rule, and steps by a server optimizer.

    Give it to a FedAvg recipe, ``FedAvgRecipe(..., aggregator=RobustAggregator())``. Floating-point arrays are
    aggregated and keep their types; others (counters, integer buffers) stay as the server has them. All parameters are
    written into the job and read on the server, so they are plain values, or objects made of them.

    Args:
        rule: a rule, or its registry name. FedRA's N is the number of the job's clients, unless the rule has it.
        server_optimizer: an optimizer, or its registry name; fed the update's negative as its gradient. "sgd" with
            lr 1 adds the update to the model.
        quantity_key: where a reply's meta has the quantity that its client claims; None: all claim 1.
        audit: where to append the audit trail, a path on the server.
        observers: who watches the run, such as trackers (`fedra.trackers`): one, or several.
        state: a file on the server to keep model, optimizer state and the rule's memory in after each round, and for
            another job to resume from; outside of the job's own folder.
        threads: how many threads to aggregate with; None for one per core.
        spill: a folder on the server for replies, where its memory is not to grow with the number of clients.
        on_disk_error: what to do when the disk does not take the state or the audit trail: "warn" in the log and go
            on, or "stop" the job, after all else of the round has been written.
        warn_at: beyond what a round is worth a warning.
    """

    def __init__(
        self,
        *,
        rule: Rule | str = DEFAULT_RULE,
        server_optimizer: ServerOptimizer | str = "sgd",
        quantity_key: str | None = FLMetaKey.NUM_STEPS_CURRENT_ROUND,
        audit: str | os.PathLike[str] | None = None,
        observers: Observer | Iterable[Observer] = (),
        state: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        spill: str | os.PathLike[str] | None = None,
        on_disk_error: OnDiskError = "warn",
        warn_at: WarningLimits | None = None,
    ) -> None:
        super().__init__()
        # What a recipe writes out are attributes of the parameters' own names.
        self.rule = rule
        self.server_optimizer = server_optimizer
        self.quantity_key = None if quantity_key is None else checks.text("quantity_key", quantity_key)
        self.audit = path_text("audit", audit)
        self.observers = chained(observers)
        self.state = path_text("state", state)
        self.threads = threads
        self.spill = path_text("spill", spill)
        self.on_disk_error = on_disk_error
        self.warn_at = warn_at
        for name in ("rule", "server_optimizer", "threads", "warn_at"):
            check_survives(name, getattr(self, name))
        self._lock = threading.Lock()
        self._step = ServerStep(server_optimizer, owner="RobustAggregator")
        # This one checks the parameters, on whatever machine. The one that opens files is made where the job runs.
        self._server = self._make_server()
        self._running = False
        self._last_metrics: dict[str, float] = {}
        self._shift: int | None = None
        self._saved: Arrays | None = None
        self._round = _Round()

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Take what the events of a job tell: its start and end, the model that is sent, replies without a model."""
        super().handle_event(event_type, fl_ctx)
        handlers: dict[str, Callable[[FLContext], None]] = {
            EventType.START_RUN: self._start,
            AppEventType.BEFORE_TRAIN_TASK: self._take_model,
            AppEventType.AFTER_CONTRIBUTION_ACCEPT: self._take_refusal,
            EventType.END_RUN: self._end,
        }
        handler = handlers.get(event_type)
        if handler is None:
            return
        try:
            handler(fl_ctx)
        except Exception as error:
            # NVFlare would log it, and train on without a defence.
            self._panic(f"fedra: {type(error).__name__}: {short(error, 600)}", fl_ctx)

    def accept_model(self, model: FLModel) -> None:
        """Read a client's reply; why it cannot be used is kept for the record, and nothing of it raises."""
        with self._lock:
            # NVFlare's controller has written the name there, over whatever the client wrote.
            reply = Reply(client=_name_at(lambda: model.meta["client_name"]), message=None)
            reply.asked = reply.client != _UNKNOWN
            read_reply(reply, lambda _: self._read(reply, model), self._round.seen)
            self._round.replies.append(reply)

    def aggregate_model(self) -> FLModel:
        """Judge the round's replies; a difference without arrays, which changes nothing, where none can be used."""
        with self._lock:
            over, self._round = self._round, _Round()
        if not self._running:
            LOGGER.error("fedra: the round is left out: the job has not started, or is being stopped")
            return _unchanged()
        sent, replies = over.sent, over.all_replies()
        number = self._current_round() + (self._shift or 0)
        if sent is None:
            self._server.publish(self._server.judge_vectors(number, replies, []).record)
            return _unchanged()
        if self._saved is not None:
            return self._restored(number, sent, replies)
        vectors = [reply.message for reply in replies if not reply.fault]
        outcome, trained, record = self._server.aggregate(
            self._step, number, replies, weights=sent.vector, vectors=vectors
        )
        params = sent.params if trained is None else sent.written(trained)
        self._server.save(number + 1, lambda: arrays_of(params))
        self._last_metrics = {} if trained is None else average_metrics(outcome.kept, outcome.weights)
        self._server.publish(dataclasses.replace(record, metrics=plain_numbers(self._last_metrics)))
        if trained is None:
            return _unchanged()
        return FLModel(params_type=ParamsType.FULL, params=params, metrics=dict(self._last_metrics) or None)

    def reset_stats(self) -> None:
        """Forget a round's replies: one begins."""
        with self._lock:
            self._round = _Round()

    def accept(self, shareable: Shareable, fl_ctx: FLContext) -> bool:
        """Refuse to work under controllers that do not say who sent a result."""
        self._panic(
            "fedra: RobustAggregator needs a FedAvg controller (FedAvgRecipe): ScatterAndGather, FedOptRecipe and "
            "swarm learning do not say who sent a result, so one client could reply as many",
            fl_ctx,
        )
        return False

    def _make_server(self, *observers: Observer) -> Server:
        return Server(
            platform="nvflare",
            rule=self.rule,
            memory=self._step,
            observers=observers,
            state=self.state,
            threads=self.threads,
            spill=self.spill,
            on_disk_error=self.on_disk_error,
            warn_at=self.warn_at,
            logger=LOGGER,
        )

    def _start(self, fl_ctx: FLContext) -> None:
        """Open what the job writes to, on the machine where it runs."""
        runner = fl_ctx.get_prop(FLContextKey.RUNNER)
        for workflow in getattr(getattr(runner, "config", None), "workflows", ()):
            if getattr(workflow.controller, "aggregator", None) is self and hasattr(
                workflow.controller, "optimizer_args"
            ):
                raise ValueError(
                    f"{type(workflow.controller).__name__} treats the aggregator's model as a difference; use FedAvg, "
                    "and RobustAggregator(server_optimizer=...)"
                )
        self._server = self._make_server(*with_audit(self.audit, members(self.observers)))
        self._shift = None
        self._running = True

    def _take_model(self, fl_ctx: FLContext) -> None:
        """Take the model that a round's clients are sent: once, however many of them fetch it."""
        with self._lock:
            if self._round.sent is not None or not self._running:
                return
            params = FLModelUtils.from_shareable(fl_ctx.get_prop(AppConstants.TRAIN_SHAREABLE)).params
            sent = SentModel(params, self._server.first)
            clients = _clients(fl_ctx)
            if self._shift is None:
                self._resume(sent)
            self._server.ask(sent.form, clients, known=len(clients), run=str(fl_ctx.get_job_id() or ""))
            self._round.clients, self._round.sent = clients, sent

    def _resume(self, sent: SentModel) -> None:
        saved = self._server.begin(sent.form)
        self._shift = 0 if saved is None else saved.round - self._current_round()
        if saved is not None and not sent.is_like(saved.arrays):
            raise ValueError(f"{self.state} holds a model of other types than this job's; move it away to start again")
        if saved is not None and not sent.equals(saved.arrays):
            self._saved = saved.arrays
            LOGGER.warning(
                "fedra: this job began with another model than that of %s, which takes its place after this round; to "
                "save the round, start the job with the model of the last one",
                self.state,
            )

    def _restored(self, number: int, sent: SentModel, replies: list[Reply]) -> FLModel:
        """Return the saved model instead of the one that the job began with, which this round's clients trained."""
        saved, self._saved = self._saved or {}, None
        for reply in replies:
            reply.fault = reply.fault or _OTHER_MODEL
        record = self._server.judge_vectors(number, replies, []).record.failed(_RESTORED)
        params = sent.written({entry.name: saved[entry.name] for entry in sent.form.entries})
        self._server.save(number + 1, lambda: saved)
        self._server.publish(record)
        return FLModel(params_type=ParamsType.FULL, params=params)

    def _take_refusal(self, fl_ctx: FLContext) -> None:
        """Take notice of a result that NVFlare did not hand on: without parameters, or an error."""
        if fl_ctx.get_prop(AppConstants.AGGREGATION_ACCEPTED) is False:
            with self._lock:
                self._round.refusals.append(_name_at(lambda: fl_ctx.get_peer_context().get_identity_name()))

    def _read(self, reply: Reply, model: FLModel) -> None:
        sent = self._round.sent
        if sent is None:
            raise Unusable("no model was sent in this round")
        if model.params_type not in (ParamsType.FULL, ParamsType.DIFF):
            raise Unusable(f"its parameters are of type {short(model.params_type)}, not FULL or DIFF")
        if self.quantity_key is None:
            reply.claim = 1.0
        elif self.quantity_key not in model.meta:
            raise Unusable(f"{short(self.quantity_key)} is missing from its meta")
        else:
            reply.take_claim(model.meta[self.quantity_key], self.quantity_key)
        reply.metrics = read_numbers(model.metrics) if isinstance(model.metrics, dict) else {}
        reply.message = sent.read(
            model.params,
            difference=model.params_type == ParamsType.DIFF,
            as_update=self._server.defence.needs_updates,
            spill=self._server.spill,
        )

    def _current_round(self) -> int:
        """Return the server's number of the round; the one in a reply is the client's word."""
        number: Any = None if self.fl_ctx is None else self.fl_ctx.get_prop(AppConstants.CURRENT_ROUND)
        return int(number) if checks.is_whole(number) else 0

    def _end(self, fl_ctx: FLContext) -> None:
        self._running = False
        self._server.end(plain_numbers(self._last_metrics))

    def _panic(self, reason: str, fl_ctx: FLContext) -> None:
        LOGGER.error("%s", reason)
        self._running = False
        self.system_panic(reason, fl_ctx)


def _unchanged() -> FLModel:
    return FLModel(params_type=ParamsType.DIFF, params={})


def _name_at(place: Callable[[], Any]) -> str:
    """Return the name that stands at a place; what is none, or cannot be read, keeps no reply from the record."""
    try:
        name = place()
    except Exception:
        return _UNKNOWN
    if not isinstance(name, str) or not name:
        return _UNKNOWN
    return name if len(name) <= _LONGEST_NAME else short(name, _LONGEST_NAME)


def _clients(fl_ctx: FLContext) -> frozenset[str]:
    """Return the names of the job's clients."""
    engine = fl_ctx.get_engine()
    return frozenset() if engine is None else frozenset(client.name for client in engine.get_clients())
