"""Fuzz the strategies: python -m tests.security.fuzz --count 100000; a failure says how to play it again."""

from __future__ import annotations

import argparse
import gc
import logging
import sys
import time
import warnings

from flwr.supercore.task_identity import TaskIdentity
from tests.security.fuzz.run import episode
from tests.security.fuzz.targets import TARGETS


def main() -> int:
    """Play episodes of each target until so many replies were mutated; 1 where one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.security.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="mutated replies for each target")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other mutations")
    parser.add_argument("--target", choices=TARGETS, action="append", help="only this one; may be repeated")
    parser.add_argument("--episode", type=int, help="play this episode alone, as a failure names it")
    options = parser.parse_args()
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
    for name in ("flwr", "fedra"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    gc.freeze()  # some of Flower's strategies collect once for every reply
    failed = 0
    for target in options.target or TARGETS:
        if options.episode is not None:
            episode(target, options.seed, options.episode)
            continue
        failed += not fuzz(target, options.seed, options.count)
    return int(failed > 0)


def fuzz(target: str, seed: int, count: int) -> bool:
    """Fuzz one target with a line of progress."""
    played = number = 0
    start = shown = time.monotonic()
    try:
        while played < count:
            played += episode(target, seed, number)
            number += 1
            if time.monotonic() - shown > 2:
                shown = time.monotonic()
                rate = played / (shown - start)
                print(f"\r{target}: {played:,} of {count:,} replies, {rate:.0f}/s ", end="", flush=True)
    except Exception as error:
        print(f"\n{target}: {type(error).__name__}: {error}", file=sys.stderr)
        print(
            f"play it again: python -m tests.security.fuzz --target {target} --seed {seed} --episode {number}",
            file=sys.stderr,
        )
        return False
    except KeyboardInterrupt:
        print(f"\n{target}: stopped after {played:,} replies, no failure")
        raise SystemExit(130) from None
    print(f"\r{target}: {played:,} mutated replies in {number:,} episodes, seed {seed}: no failure")
    return True


if __name__ == "__main__":
    sys.exit(main())
