"""How many samples each client holds: the paper's long tail."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from fedra.seeding import generator

LOGNORMAL_SIGMA = 3.0
LOGNORMAL_MU = math.log(20.0) - 4.5

# N varies a lot by seed. The first three bring clients, standard deviation and maximum within 5% of the paper's Table 1
# (MNIST 3060/188/7109, CIFAR-10 3092/198/8890, MIND 2912/292/9471). The others are not in it: Fashion-MNIST is cut as
# MNIST is, HuffPost has a mean of 20 (N=1291), and digits N=140 so that 50 can be sampled. Purposes and seeds define
# the partitions that results were computed with, so neither may change.
DEFAULT_PARTITION_SEEDS: dict[str, int] = {
    "mnist": 9080,
    "cifar10": 10566,
    "mind": 492,
    "fashion-mnist": 9080,
    "huffpost": 988,
    "digits": 161,
}
_PURPOSE = "partition/quantities"
_BLOCK = 4096


def lognormal_quantities(
    num_samples: int, *, sigma: float = LOGNORMAL_SIGMA, mu: float = LOGNORMAL_MU, seed: int
) -> npt.NDArray[np.int64]:
    """q = max(1, floor(exp(mu + sigma z))) client after client until the samples are used up, the last cut to fit."""
    if num_samples < 1:
        raise ValueError(f"num_samples is {num_samples}; there must be at least 1 sample to give out")
    if not (math.isfinite(sigma) and sigma >= 0 and math.isfinite(mu)):
        raise ValueError(f"sigma={sigma}, mu={mu}: both must be finite and sigma >= 0")
    rng = generator(seed, _PURPOSE)
    blocks: list[npt.NDArray[np.int64]] = []
    left = num_samples
    while left > 0:
        # Capped before the cast, because a wide log-normal exceeds int64; a client can't hold more than all.
        drawn = np.clip(np.floor(rng.lognormal(mu, sigma, _BLOCK)), 1, num_samples).astype(np.int64)
        totals = np.cumsum(drawn)
        if totals[-1] >= left:
            last = int(np.searchsorted(totals, left))
            drawn = drawn[: last + 1]
            drawn[last] -= totals[last] - left
        blocks.append(drawn)
        left -= int(drawn.sum())
    return np.concatenate(blocks)
