"""One episode, by its number: the same every time."""

from __future__ import annotations

import random

from tests.security.fuzz.targets import TARGETS


def episode(target: str, seed: int, number: int) -> int:
    """Play an episode of a target; return how many replies it mutated, or raise what went wrong."""
    return TARGETS[target](random.Random(f"{seed} {target} {number}"))
