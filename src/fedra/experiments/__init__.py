"""Grids of runs: expanded from data, run on one machine or a cluster, resumable."""

from fedra.experiments.feasible import check_feasible
from fedra.experiments.grid import Cell, Grid
from fedra.experiments.grid_folder import GridFolder, read_results
from fedra.experiments.jobs import Advanced, Event, Failed, Finished, Job, Started
from fedra.experiments.local_engine import LocalEngine, usable_cores
from fedra.experiments.ray_engine import RayEngine
from fedra.experiments.results import Results
from fedra.experiments.running import Engine, GridOutcome, missing_runs, run_grid
from fedra.experiments.tally import Tally

__all__ = [
    "Advanced",
    "Cell",
    "Engine",
    "Event",
    "Failed",
    "Finished",
    "Grid",
    "GridFolder",
    "GridOutcome",
    "Job",
    "LocalEngine",
    "RayEngine",
    "Results",
    "Started",
    "Tally",
    "check_feasible",
    "missing_runs",
    "read_results",
    "run_grid",
    "usable_cores",
]
