"""Digits learned by sites, some of them hostile, in NVFlare's simulator: by its own FedAvg, or with a rule of fedra."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from digits import accuracy_of, initial_model
from nvflare.app_common.np.recipes.fedavg import NumpyFedAvgRecipe
from nvflare.recipe import SimEnv

from fedra import FedRA
from fedra.nvflare import RobustAggregator

_HERE = Path(__file__).resolve().parent


def make_recipe(
    *, clients: int, rounds: int, hostile: int, defence: str, audit: str | None = None
) -> NumpyFedAvgRecipe:
    options: dict[str, Any] = {}
    if defence == "fedra":
        # The rule takes at least one client for hostile, and needs n > 2m + 2 to find m of them: 3 clients are too few
        # to promise that, and without clamp every round would leave the model as it is.
        options["aggregator"] = RobustAggregator(rule=FedRA(clamp=clients < 5), audit=audit)
    recipe = NumpyFedAvgRecipe(
        name="digits",
        model=initial_model().tolist(),
        min_clients=clients,
        num_rounds=rounds,
        train_script=str(_HERE / "client.py"),
        train_args=f"--clients {clients} --hostile {hostile}",
        **options,
    )
    # How often an idle site asks for work, in seconds: 2 unless set, which would be most of the time of so small a job.
    recipe.add_server_config({"server": {"task_request_interval": 0.2}})
    return recipe


def trained_model(workspace: Path) -> np.ndarray:
    return np.load(workspace / "digits" / "server" / "simulate_job" / "models" / "server.npy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--hostile", type=int, default=1, metavar="K", help="how many clients are hostile")
    parser.add_argument("--defence", choices=["none", "fedra"], default="fedra")
    parser.add_argument("--audit", type=Path, metavar="FILE", help="a file to append the audit trail to")
    parser.add_argument("--workspace", type=Path, help="a folder to keep what the simulator writes")
    options = parser.parse_args()
    if not 0 <= options.hostile < options.clients:
        parser.error(f"--hostile {options.hostile} of --clients {options.clients}: leave at least one honest client")

    recipe = make_recipe(
        clients=options.clients,
        rounds=options.rounds,
        hostile=options.hostile,
        defence=options.defence,
        # The server's process has another directory.
        audit=None if options.audit is None else str(options.audit.resolve()),
    )
    with tempfile.TemporaryDirectory() as temporary:
        workspace = (options.workspace or Path(temporary)).resolve()
        recipe.execute(SimEnv(num_clients=options.clients, workspace_root=str(workspace)))
        accuracy = accuracy_of(trained_model(workspace))
    print(
        f"clients {options.clients}, hostile {options.hostile}, defence {options.defence}: "
        f"accuracy {accuracy:.3f} after {options.rounds} rounds"
    )


if __name__ == "__main__":
    main()
