"""What a site does in each round: train on its own digits, or, as a hostile one, send a model from far away."""

from __future__ import annotations

import argparse

import numpy as np
import nvflare.client as flare
from digits import part_of_site, train
from nvflare.app_common.abstract.fl_model import FLModel, MetaKey, ParamsType
from nvflare.app_common.np.constants import NPConstants

_CLAIMED_STEPS = 1e9


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--hostile", type=int, required=True)
    options = parser.parse_args()

    flare.init()
    site = int(flare.get_site_name().removeprefix("site-"))
    inputs, labels = part_of_site(site, options.clients)
    far_away = np.random.default_rng(site).normal(0, 100, (65, 10)).astype(np.float32)
    while flare.is_running():
        received = flare.receive()
        if received is None:
            break
        if site <= options.hostile:
            model, steps = far_away, _CLAIMED_STEPS
        else:
            model, steps = train(received.params[NPConstants.NUMPY_KEY], inputs, labels), len(labels)
        flare.send(
            FLModel(
                params_type=ParamsType.FULL,
                params={NPConstants.NUMPY_KEY: model},
                meta={MetaKey.NUM_STEPS_CURRENT_ROUND: steps},
            )
        )


if __name__ == "__main__":
    main()
