"""Generators derived from a seed, a purpose, and whatever the draw belongs to, such as a round and a client."""

from __future__ import annotations

import zlib

import numpy as np


def generator(seed: int, purpose: str, *keys: int) -> np.random.Generator:
    """Return the generator of (seed, purpose, keys); the same arguments give the same bits on every machine."""
    if seed < 0:
        raise ValueError(f"seed is {seed}; give a whole number >= 0")
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(zlib.crc32(purpose.encode()), *keys)))
