"""A process that aggregates files and is killed, or runs into the end of its disk, at the block it is told."""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

import fedra
from fedra.updates.aggregation import aggregate

if __name__ == "__main__":
    folder, rule, out, how, number = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4], int(sys.argv[5])
    calls = 0

    def progress(*_: int) -> None:
        global calls
        calls += 1
        if how == "kill" and calls == number:
            os.kill(os.getpid(), signal.SIGKILL)

    if how == "full":
        resource.setrlimit(resource.RLIMIT_FSIZE, (number, number))
    paths = sorted(folder.glob("client*"))
    base = folder / "base.safetensors"
    try:
        aggregate(
            paths,
            [100 + place for place in range(len(paths))],
            rule=fedra.make_rule(rule),
            out=out,
            base=base if base.exists() else None,
            threads=1,
            progress=progress,
        )
    except OSError as error:
        print(error)
        sys.exit(3)
