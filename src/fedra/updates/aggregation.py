"""One aggregation of files from beginning to end: judged, written, recorded, and gone on with where it was killed."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedra import checks
from fedra.cohort import Verdict
from fedra.files import folder_inside, locked, remove_folder
from fedra.kernels.threads import thread_count
from fedra.rules.base import Rule
from fedra.server.faults import Unusable
from fedra.server.records import RoundRecord
from fedra.updates.formats import Contents
from fedra.updates.journal import Journal
from fedra.updates.passes import Elsewhere, Progress
from fedra.updates.result import is_final, result_header, result_slots, write_result
from fedra.updates.store import FolderStore, MemoryStore
from fedra.updates.update_files import UpdateFiles

_FORMAT = 1
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Called with how many bytes have been summed up, and of how many.
HashProgress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Aggregated:
    """What came of an aggregation.

    Attributes:
        verdict: the rule's, its update already written.
        out: the result's file; None where there is no result.
        record: the round, as an audit trail has it.
        resumed: how many blocks an earlier process had done.
        left_out: tensors that are not of floats, which a result without a base does not have.
    """

    verdict: Verdict
    out: Path | None
    record: RoundRecord
    resumed: int
    left_out: tuple[str, ...]


def aggregate(
    paths: Sequence[Path],
    quantities: Sequence[Any],
    *,
    rule: Rule,
    out: Path,
    base: Path | None = None,
    rate: float = 1.0,
    checksums: bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
    hashing: HashProgress | None = None,
    elsewhere: Elsewhere | None = None,
) -> Aggregated:
    """Aggregate files by a rule into one safetensors file; killed at any moment, the same call goes on from there.

    What was done is kept in a folder beside `out`, and removed with the result in its place. With a base the files are
    models, and the result is one: ``base + rate * update``. With `elsewhere`, such as `fedra.cluster.RayWorkers`, other
    processes do the work, to the same bits; either kind of call goes on from what the other has done.

    Raises:
        ValueError: where the caller is at fault, or another process is at work on the same result.
        OSError: where the disk does not take what has to be written; what was done until then stays.
    """
    check_out(out, paths)
    checks.number("rate", rate, above=0)
    work = folder_inside(out.parent, work_name(out))
    busy = f"{out} is being made by another process; wait for it, or name another file"
    with locked(work, busy), UpdateFiles(paths, base, MemoryStore()) as updates:
        whole = base is not None
        # Every vector begins as the result's file does: where it has the same types, one becomes the result by a move.
        prefix = result_header(updates.form, whole=False) if is_final(updates.form, whole=whole) else b""
        updates.store = store = FolderStore(work, prefix, lasting=True)
        fingerprint = _fingerprint(updates, quantities, rule, store)
        try:
            _check_space(work, updates, whole=whole)
            with closing(Journal(work / "journal", fingerprint)) as journal:
                sums = _checksums(updates, journal, threads, hashing) if checksums else {}
                verdict = updates.judged_by(
                    rule, quantities, threads=threads, memory=journal, progress=progress, elsewhere=elsewhere
                )
                resumed = journal.resumed
            if verdict.update is not None:
                write_result(out, verdict.update, updates.form, base=updates.base, rate=rate, store=store)
        except OSError as error:
            raise _explained(error, work) from error
        found = Aggregated(
            verdict=dataclasses.replace(verdict, update=None),
            out=None if verdict.update is None else out,
            record=_record(fingerprint[:16], updates, verdict, sums),
            resumed=resumed,
            left_out=() if whole else tuple(slot.name for slot in updates.form.slots if not slot.kind.trained),
        )
    remove_folder(out.parent, work_name(out))
    return found


def work_name(out: Path) -> str:
    """Return the name of the folder beside a result in which what was done of it is kept."""
    return f".{out.name}.fedra"


def check_out(out: Path, paths: Sequence[Path]) -> None:
    """Refuse a place where no result can go."""
    if out.suffix.lower() != ".safetensors":
        raise ValueError(checks.wrong("out", str(out), "the path of a file that ends in .safetensors"))
    if not out.absolute().parent.is_dir():
        raise ValueError(checks.wrong("out", str(out), "a file in a folder that is there"))
    if out.absolute() in {path.absolute() for path in paths}:
        raise ValueError(f"out={str(out)!r} is one of the updates; name another file for the result")


def _check_space(work: Path, updates: UpdateFiles, *, whole: bool) -> None:
    """Say at once what would be found out after the first pass: that the result does not fit."""
    form = updates.form
    vector = form.dimension * form.dtype.itemsize
    result = sum(slot.kind.itemsize * (slot.stop - slot.start) for slot in result_slots(form, whole=whole))
    needed = vector if is_final(form, whole=whole) else vector + result
    there = sum(file.stat().st_size for file in work.glob("vector-*"))
    if (free := shutil.disk_usage(work).free + there) < needed:
        raise OSError(errno.ENOSPC, f"the result needs {needed:,} bytes, and {free:,} are free", str(work.parent))


def _explained(error: OSError, work: Path) -> OSError:
    """Return an error with what to do about it where the disk is full."""
    if error.errno not in _DISK_FULL:
        return error
    return OSError(
        f"the disk of {work.parent} does not take more ({error.strerror}); nothing is lost: free some space, and the "
        f"same command goes on from what is in {work.name}"
    )


def _fingerprint(updates: UpdateFiles, quantities: Sequence[Any], rule: Rule, store: FolderStore) -> str:
    """Return a text that differs where partial results of one call are of no use to another."""
    from fedra import __version__

    about = {
        "format": _FORMAT,
        "fedra": __version__,
        "rule": repr(rule),
        "quantities": [repr(quantity) for quantity in quantities],
        "faults": list(updates.faults),
        "files": [_files(updates.contents_of(place)) for place in range(len(updates))],
        "base": _files(updates.base),
        "names": [slot.name for slot in updates.form.slots],
        "prefix": store.prefix.hex(),
    }
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _files(contents: Contents | None) -> list[Any]:
    return [] if contents is None else [list(file.fingerprint) for file in contents.files]


def _checksums(
    updates: UpdateFiles, journal: Journal, threads: int | None, progress: HashProgress | None
) -> dict[str, str]:
    """Return the SHA-256 of every file that is read, by path; several files at once."""
    known = journal.noted("sha256")
    if isinstance(known, dict):
        return {str(path): str(digest) for path, digest in known.items()}
    contents = [updates.contents_of(place) for place, fault in enumerate(updates.faults) if not fault]
    files = [file for found in (*contents, updates.base) if found is not None for file in found.files]
    total, done = sum(file.size for file in files), 0

    def count(length: int) -> None:
        nonlocal done
        done += length
        if progress is not None:
            progress(min(done, total), total)

    def digest(position: int) -> str:
        try:
            return files[position].sha256(count)
        except Unusable:
            return ""  # it will be rejected for the same when it is read

    with ThreadPoolExecutor(thread_count(threads)) as pool:
        sums = dict(zip((str(file.path) for file in files), pool.map(digest, range(len(files))), strict=True))
    journal.note("sha256", sums)
    return sums


def _record(run: str, updates: UpdateFiles, verdict: Verdict, sums: dict[str, str]) -> RoundRecord:
    clients = []
    for place, client in enumerate(verdict.to_records()):
        contents = updates.contents_of(place)
        files = [
            {"path": str(file.path), "bytes": file.size, "sha256": sums.get(str(file.path)) or None}
            for file in (contents.files if contents is not None else ())
        ]
        clients.append({**client, "usable": bool(verdict.usable[place]), "files": files})
    return RoundRecord(
        run=run,
        round=1,
        phase="train",
        time=time.time(),
        rule=verdict.rule,
        num_malicious=verdict.num_malicious,
        note=verdict.note,
        clients=clients,
        warnings=verdict.warnings,
    )
