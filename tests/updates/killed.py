"""A process that aggregates files, here or on a cluster, and is killed or finds its disk full at the block it is to."""

from __future__ import annotations

import os
import resource
import signal
import sys
from contextlib import nullcontext
from pathlib import Path

import fedra
from fedra.cluster import RayWorkers
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
    address = sys.argv[6] if len(sys.argv) > 6 else None
    try:
        with RayWorkers(address=address) if address else nullcontext() as elsewhere:
            aggregate(
                paths,
                [100 + place for place in range(len(paths))],
                rule=fedra.make_rule(rule),
                out=out,
                base=base if base.exists() else None,
                threads=1,
                progress=progress,
                elsewhere=elsewhere,
            )
    except OSError as error:
        print(error)
        sys.exit(3)
