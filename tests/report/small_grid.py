"""A grid's folder made of real, tiny runs, in this process."""

from fedra.experiments import Failed, Grid, GridFolder
from fedra.simulation import simulate

GRID = {
    "rules": ["fedavg", "median", "fedra"],
    "attacks": ["none", "lie"],
    "alpha_q": [0, 10],
    "seeds": [0, 1],
    "fixed": {"rounds": 4, "eval_every": 2, "num_sampled": 16, "checkpoint_every": 2},
}


def small_grid(path, *, name="small", values=None, leave_out=()):
    """Run a grid into a folder, but for the runs whose name has one of these words in it; return the grid."""
    grid = Grid.from_dict(values or GRID)
    folder = GridFolder(path=path)
    folder.record(name, grid)
    for run, config in grid.runs.items():
        if not any(word in run for word in leave_out) and not folder.is_done(run):
            simulate(config, out=folder.run(run))
    return grid


def fail(path, run, error="RuntimeError: it broke"):
    """Record a failure as a grid does."""
    folder = GridFolder(path=path)
    folder.run(run).mkdir(parents=True, exist_ok=True)
    folder.record_failure(Failed(run=run, error=error, trace="..."))
