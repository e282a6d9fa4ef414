"""A round whose updates are files: opened, checked, and judged by any rule in bounded memory."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fedra import checks
from fedra.cohort import Cohort, RuleState, Verdict
from fedra.kernels import largest_magnitudes
from fedra.rules.base import Rule
from fedra.screening import Screened, read_claim
from fedra.server.faults import Unusable
from fedra.updates.formats import INDEX, READERS, Contents, own_contents, read_contents
from fedra.updates.looking import Rejected
from fedra.updates.passes import Elsewhere, Memory, Passes, Progress
from fedra.updates.readers import Reader, TensorReader, UpdateReader
from fedra.updates.sources import most_open
from fedra.updates.store import FolderStore, MemoryStore, Store
from fedra.updates.streamed import StreamedRows
from fedra.updates.tensors import Form, base_form, common_form

Paths = Iterable[str | os.PathLike[str]]


class UpdateFiles:
    """The updates of a round, one file or set of shards for each client; made by `open_updates`.

    A rule takes it in the place of updates in memory: ``rule(updates, quantities)``. `faults` has for each client why
    its files cannot be used, empty where they can, and `form` the tensors that the others have.
    """

    def __init__(self, paths: Sequence[Path], base: Path | None, store: Store) -> None:
        self.paths = tuple(paths)
        self.client_ids = _names(self.paths)
        self.faults = [""] * len(self.paths)
        self.store = store
        self.base: Contents | None = None
        self._contents: list[Contents | None] = [None] * len(self.paths)
        try:
            self._open(base)
        except BaseException:
            self.close()
            raise

    def _open(self, base: Path | None) -> None:
        if base is not None:
            self.base = own_contents(base, "base")
        spare = most_open()
        for place, path in enumerate(self.paths):
            try:
                contents = read_contents(path)
            except Unusable as fault:
                self.faults[place] = str(fault)
                continue
            spare -= len(contents.files)
            for file in contents.files if spare < 0 else ():
                file.release()
            self._contents[place] = contents
        self.form = self._settled_form()
        for place, found in enumerate(self._contents):
            try:
                if found is not None and not self.faults[place]:
                    self.form.check(found.tensors)
            except Unusable as fault:
                self.faults[place] = str(fault)

    def _settled_form(self) -> Form:
        """Return the base's form, else the one that most clients have; without one nobody's files can be used."""
        if self.base is not None:
            form = base_form(self.base.tensors)
            if not form.dimension:
                raise ValueError("base holds no tensor of floats, so there is nothing to aggregate; give the model")
            return form
        found = common_form(contents.tensors for contents in self._contents if contents is not None)
        if found is not None and found.dimension:
            return found
        fault = (
            "holds no tensor of floats"
            if found is not None
            else "no form of tensors is shared by more than half of the files; give the base to say which is right"
        )
        self.faults = [own or fault for own in self.faults]
        return found or Form()

    def __len__(self) -> int:
        return len(self.paths)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all files; a verdict's update that lies in the scratch folder stays readable until it is let go."""
        for contents in (*self._contents, self.base):
            if contents is not None:
                contents.close()
        self.store.close()

    def contents_of(self, place: int) -> Contents | None:
        """Return the files and tensors of a client; None where they could not be read."""
        return self._contents[place]

    def named(self, vector: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Return a vector of this round, such as a verdict's update, as its tensors by name, without a copy."""
        if vector.shape != (self.form.dimension,):
            raise ValueError(f"a vector of shape {vector.shape}; these updates have {self.form.dimension} values")
        return {slot.name: vector[slot.start : slot.stop].reshape(slot.shape) for slot in self.form.trained}

    def judged_by(
        self,
        rule: Rule,
        quantities: Any,
        client_ids: Sequence[Any] | None = None,
        *,
        state: RuleState | None = None,
        threads: int | None = None,
        memory: Memory | None = None,
        progress: Progress | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> Verdict:
        """Screen the files and let a rule decide on them, as it does on updates in memory.

        Args:
            rule: the rule.
            quantities: n numbers, how many samples each client claims.
            client_ids: n identifiers for the verdict; default: names of the files.
            state: what a stateful rule remembers.
            threads: how many threads to use; the verdict does not depend on it.
            memory: remembers what was done, for another process to go on from.
            progress: called with the number of the pass, how many columns it has read, and of how many.
            elsewhere: does the work in other processes, such as `fedra.cluster.RayWorkers`; the verdict is the same.
        """
        claims = list(quantities)
        if len(claims) != len(self):
            raise ValueError(f"{len(self)} updates but {len(claims)} quantities; give one quantity for each update")
        ids = self.client_ids if client_ids is None else tuple(client_ids)
        if len(ids) != len(self):
            raise ValueError(f"{len(self)} updates but {len(ids)} client_ids; give one identifier for each update")
        if len(self) and (refusal := rule.refusal(len(self))):
            raise ValueError(refusal)
        reasons = list(self.faults)
        claimed = np.full(len(self), np.nan)
        for place, claim in enumerate(claims):
            claimed[place], fault = read_claim(claim)
            reasons[place] = reasons[place] or fault
        passes = Passes(
            dimension=self.form.dimension,
            dtype=self.form.dtype,
            store=self.store,
            memory=memory,
            progress=progress,
            elsewhere=elsewhere,
        )
        readers = self._readers(reasons)
        # Each attempt is without those whom the one before found to be unusable, so there are at most n + 1.
        while True:
            try:
                return self._attempt(rule, passes, readers, reasons, claimed, ids, state, threads)
            except Rejected as found:
                for place, reason in found.reasons.items():
                    reasons[place] = reason

    def _attempt(
        self,
        rule: Rule,
        passes: Passes,
        readers: Mapping[int, Reader],
        reasons: Sequence[str],
        claimed: npt.NDArray[np.float64],
        ids: tuple[Any, ...],
        state: RuleState | None,
        threads: int | None,
    ) -> Verdict:
        usable = np.array([not reason for reason in reasons], dtype=bool)
        places = [int(place) for place in np.flatnonzero(usable)]
        passes.begin(places)
        rows = StreamedRows([readers[place] for place in places], passes)
        cohort = Cohort(
            rows=rows,
            quantities=claimed[usable],
            client_ids=tuple(ids[place] for place in places),
            threads=threads,
        )
        screened = Screened(cohort=cohort, usable=usable, reasons=tuple(reasons), client_ids=ids, quantities=claimed)
        verdict = rule.judge(screened, state)
        # What the rule did not read has to be screened all the same: in memory it would have been.
        if unseen := passes.looking.unseen(places):
            largest_magnitudes(StreamedRows([readers[place] for place in unseen], passes), threads)
        self._check_unchanged(places)
        return verdict

    def _readers(self, reasons: Sequence[str]) -> dict[int, Reader]:
        base = None if self.base is None else TensorReader(self.base, self.form, None)
        readers: dict[int, Reader] = {}
        for place, contents in enumerate(self._contents):
            if contents is not None and not reasons[place]:
                row = TensorReader(contents, self.form, place)
                readers[place] = row if base is None else UpdateReader(row, base)
        return readers

    def _check_unchanged(self, places: Sequence[int]) -> None:
        faults: dict[int, str] = {}
        for place in places:
            contents = self._contents[place]
            try:
                for file in contents.files if contents is not None else ():
                    file.check_unchanged()
            except Unusable as fault:
                faults[place] = str(fault)
        if faults:
            raise Rejected(faults)
        try:
            for file in self.base.files if self.base is not None else ():
                file.check_unchanged()
        except Unusable as fault:
            raise OSError(f"base: {fault}; start again") from fault


def open_updates(
    paths: Paths, base: str | os.PathLike[str] | None = None, *, scratch: str | os.PathLike[str] | None = None
) -> UpdateFiles:
    """Open the updates of a round, a file or a set of shards for each client, for rules to read block by block.

    Files are .safetensors, a folder of shards or its model.safetensors.index.json, .npz not compressed, or .npy;
    their floats float16, bfloat16, float32 or float64, which rules see as float32, or float64 where there is any. What
    is wrong with a client's files makes it a rejected client of the verdict, and does not raise.

    Args:
        paths: one for each client.
        base: the model that clients began with, where the files are whole models: an update is a model less it.
        scratch: a folder for result vectors, where they are to take no memory; None: they are in memory.

    Raises:
        ValueError: where the caller is at fault: the same path twice, or a base that cannot be read.
    """
    if isinstance(paths, str | bytes | os.PathLike):
        raise TypeError(checks.wrong("paths", paths, "a list of paths, one for each client"))
    found = [checks.path("paths", path) for path in paths]
    if twice := [path for path, count in Counter(path.absolute() for path in found).items() if count > 1]:
        raise ValueError(f"{twice[0]} is there twice; give each client's file once")
    store: Store = MemoryStore()
    if scratch is not None:
        folder = checks.path("scratch", scratch)
        if not folder.is_dir():
            raise ValueError(checks.wrong("scratch", scratch, "a folder that is there"))
        store = FolderStore(folder)
    return UpdateFiles(found, None if base is None else checks.path("base", base), store)


def _names(paths: Sequence[Path]) -> tuple[str, ...]:
    """Return what clients are called: their file's or folder's name, or the path where two have the same."""
    names = [client_name(path) for path in paths]
    count = Counter(names)
    return tuple(name if count[name] == 1 else str(path) for name, path in zip(names, paths, strict=True))


def client_name(path: Path) -> str:
    """Return the name of a client's file without its ending, or of the folder that shards are in."""
    if path.name.endswith(INDEX):
        return path.absolute().parent.name
    return path.stem if path.suffix.lower() in READERS else path.name
