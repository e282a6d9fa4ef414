"""A defended server between its platform's messages: what was sent to whom, the judged round, what must not be lost."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fedra import checks
from fedra.alarms import WarningLimits
from fedra.cohort import display_id
from fedra.kernels.rows import Rows
from fedra.rules import Rule
from fedra.server.defence import Defence, Outcome
from fedra.server.disk import DiskPolicy, OnDiskError
from fedra.server.faults import short
from fedra.server.form import ModelForm, model_form
from fedra.server.observers import Observer, Observers, RunInfo
from fedra.server.records import RoundRecord
from fedra.server.replies import Reply
from fedra.server.spill import Spill
from fedra.server.state import Arrays, SavedState, check_writable, load_state, save_state
from fedra.server.step import ServerStep
from fedra.server.vectors import flat_vectors, rows_in_place


class Memory(Protocol):
    """What a strategy remembers besides the model: a server optimizer's moments, or an inner strategy's."""

    @property
    def writer(self) -> str:
        """What must be the same for a state to be resumed from."""
        ...

    def begin(self) -> None:
        """Forget what an earlier run left: one begins."""
        ...

    def memory(self) -> tuple[Arrays, Mapping[str, Any]]:
        """Return the arrays and the plain values to save."""
        ...

    def recall(self, saved: SavedState) -> None:
        """Take back what `memory` returned; raise where that cannot be."""
        ...


class Server:
    """What every platform's strategies share: defence, state file, observers, and the context of the round.

    Args:
        platform: its name, for records.
        rule: a rule, or its registry name.
        memory: what the strategy remembers besides the model.
        observers: who watches the run.
        on_round: called with each round's record after all else; what it raises ends the run.
        state: a file to keep the state in after each round, and to resume from.
        threads: how many threads to aggregate with; None for one per core.
        spill: a folder for a round's replies, where they are not to be in memory.
        on_disk_error: "warn", or "stop" after all else of the round has been written.
        warn_at: beyond what a round is worth a warning.
        logger: the platform's.
    """

    def __init__(
        self,
        *,
        platform: str,
        rule: Rule | str,
        memory: Memory,
        observers: Iterable[Observer] = (),
        on_round: Callable[[RoundRecord], None] | None = None,
        state: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        spill: str | os.PathLike[str] | None = None,
        on_disk_error: OnDiskError = "warn",
        warn_at: WarningLimits | None = None,
        logger: logging.Logger,
    ) -> None:
        self.platform = platform
        self.logger = logger
        self.defence = Defence(rule=rule, threads=threads, warn_at=warn_at)
        self.disk = DiskPolicy(on_disk_error, logger)
        self.state_path = None if state is None else checks.path("state", state)
        self.spill = None if spill is None else Spill(spill, logger)
        self.done = 0
        self.form = ModelForm()
        self.asked: frozenset[Any] = frozenset()
        self._memory = memory
        self._observers = Observers(observers, logger=logger, on_disk_error=self.disk.note)
        self._on_round = on_round
        self._first: ModelForm | None = None
        self._known = 0
        self._info: RunInfo | None = None
        self._rounds: int | None = None

    @property
    def rule(self) -> Rule:
        """The rule that judges."""
        return self.defence.rule

    @property
    def writer(self) -> str:
        """Who writes the state file: what must be the same for a state to be resumed from."""
        return self._memory.writer

    @property
    def first(self) -> ModelForm | None:
        """The form that the model had in the first round."""
        return self._first

    def begin(self, form: ModelForm | None, *, rounds: int | None = None) -> SavedState | None:
        """Get ready for a run of a model of this form; return the state to go on from where one was saved.

        The form is None where the model is not known yet: a client sends the first one.
        """
        with contextlib.suppress(OSError):  # logged, and no fault of this run
            self.end()  # one before it, where the platform does not say when a run ends
        self.done, self._first, self._rounds = 0, form, rounds
        self.defence.rule_state = None
        self._memory.begin()
        if self.spill is not None:
            self.spill.check()
        self.defence.warm_up(np.dtype(np.float32) if form is None else form.dtype)
        if self.state_path is None:
            return None
        saved = load_state(self.state_path, self.writer)
        if saved is not None:
            if form is not None and not _is_of_form(saved.arrays, form):
                raise ValueError(
                    f"{self.state_path} holds another model than the one to start from; move it away to start again"
                )
            self._take_back(saved, form)
            self.done = saved.round
            self.logger.info("fedra: resuming after round %d from %s", saved.round, self.state_path)
        check_writable(self.state_path)
        return saved

    def ask(self, form: ModelForm, asked: Iterable[Any], *, known: int, run: str = "") -> None:
        """Remember the form of what is sent in a round, whom it goes to, and how many clients the platform knows."""
        self.form = form
        self._first = self._first or form
        self.asked = frozenset(asked)
        self._known = known
        self.defence.run = run or self.defence.run

    def judge(
        self,
        server_round: int,
        replies: list[Reply],
        *,
        minus: npt.NDArray[Any] | None,
        release: Callable[[Reply], None] = lambda _: None,
    ) -> Outcome:
        """Judge replies as vectors, less `minus` where that is given; `release` lets go of a reply's own memory.

        Where whole models will do, they are judged as they lie in the replies.
        """
        rows = rows_in_place(replies, self.form) if minus is None and self.spill is None else None
        if rows is not None:
            outcome = self.judge_vectors(server_round, replies, rows)
            for reply in replies:
                if not reply.fault:
                    release(reply)
                    reply.views = []
            return outcome
        vectors = flat_vectors(
            replies, self.form, minus=minus, release=release, threads=self.defence.threads, spill=self.spill
        )
        return self.judge_vectors(server_round, replies, vectors)

    def aggregate(
        self,
        step: ServerStep,
        server_round: int,
        replies: list[Reply],
        *,
        weights: npt.NDArray[Any] | Callable[[], npt.NDArray[Any]],
        vectors: list[npt.NDArray[Any]] | None = None,
        release: Callable[[Reply], None] = lambda _: None,
    ) -> tuple[Outcome, Arrays | None, RoundRecord]:
        """Judge replies and step from `weights`, the model that was sent, as a vector, or what makes it.

        What makes it is called when it is needed, for many rules once the replies have gone.

        `vectors` are those of the usable replies where they were read already: updates if the rule needs updates, else
        models.

        Returns what was judged, the new trained arrays by name, None where the round changes nothing, and the record.
        """
        make = weights if callable(weights) else lambda: weights
        minus = make() if self.defence.needs_updates else None
        if vectors is None:
            outcome = self.judge(server_round, replies, minus=minus, release=release)
        else:
            outcome = self.judge_vectors(server_round, replies, vectors)
        sent = make() if minus is None else minus
        trained, record = step.take(sent, self.form, outcome, of_updates=minus is not None)
        if trained is not None:
            self.defence.accept(outcome)
        return outcome, trained, record

    def judge_vectors(
        self, server_round: int, replies: list[Reply], vectors: Sequence[npt.NDArray[Any]] | Rows
    ) -> Outcome:
        """Judge replies by vectors that were read already."""
        return self.defence.judge(server_round, replies, vectors=vectors, known=self._known)

    def save(self, server_round: int, arrays: Callable[[], Arrays]) -> None:
        """Save the model after a round, with all that is remembered; what the disk does not take is told later."""
        if self.state_path is None:
            return
        path = self.state_path
        memory, numbers = self._memory.memory()

        def write() -> None:
            state = SavedState(
                round=server_round,
                writer=self.writer,
                arrays=arrays(),
                memory=memory,
                numbers=numbers,
                rule=self.defence.rule_state or {},
                rule_name=self.rule.name,
            )
            save_state(path, state)

        self.disk.attempt("the state", write)

    def publish(self, record: RoundRecord) -> None:
        """Log a round, hand it to the observers and the user's callback, and then raise what the disk did not take."""
        self.logger.info(
            "fedra: %s round %d: %d kept, %d rejected%s", record.phase, record.round, record.kept, record.rejected,
            f", no change: {record.note}" if record.note else "",
        )  # fmt: skip
        for warning in record.warnings:
            self.logger.warning("fedra: round %d: %s", record.round, warning)
        for client in record.clients:
            if not client["kept"] and client["reason"]:
                self.logger.info("fedra: node %s rejected: %s", display_id(client["client"]), client["reason"])
        if self._info is None:
            # Only now: the platform says which run it is with the first messages.
            self._info = RunInfo(
                run=record.run,
                platform=self.platform,
                rule=repr(self.rule),
                rounds=self._rounds,
                rounds_done=self.done,
                settings={"rule": self.rule.name, "strategy": self.writer},
                folder=None if self.state_path is None else str(self.state_path.parent),
            )
            self._observers.start(self._info)
        self._observers.round(record)
        if self._on_round is not None:
            self._on_round(record)
        self.disk.settle()

    def end(self, summary: Mapping[str, Any] | None = None) -> None:
        """Let the observers finish, and then raise what the disk did not take."""
        info, self._info = self._info, None
        if info is not None:
            self._observers.end(info, summary or {})
        self.disk.settle()

    def _take_back(self, saved: SavedState, form: ModelForm | None) -> None:
        try:
            form = form or model_form({name: (array.dtype, array.shape) for name, array in saved.arrays.items()})
            self._memory.recall(saved)
            self.defence.recall(saved.rule, form.dimension, owner=saved.rule_name)
        except Exception as error:  # the file may hold anything under any name
            raise ValueError(
                f"{self.state_path} holds what this strategy cannot take back ({short(error, 200)}); use the settings "
                "that it was saved with, or move it away to start again"
            ) from error


def _is_of_form(arrays: Arrays, form: ModelForm) -> bool:
    """Tell whether rounds can have made these arrays of a model: they make wider floats, and floats of integers."""
    entries = {entry.name: entry for entry in form.entries}
    return arrays.keys() == entries.keys() and all(
        array.shape == entries[name].shape and (array.dtype == entries[name].dtypes[0] or array.dtype.kind == "f")
        for name, array in arrays.items()
    )
