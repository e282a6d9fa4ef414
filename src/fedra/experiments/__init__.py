"""Grids of runs: expanded from data, run on one machine or a cluster, resumable."""

from fedra.experiments.attempt import Job
from fedra.experiments.cluster import RayEngine
from fedra.experiments.compact import Results
from fedra.experiments.events import Advanced, Event, Failed, Finished, Started
from fedra.experiments.folder import GridFolder, read_results
from fedra.experiments.grid import Cell, Grid
from fedra.experiments.local import LocalEngine, usable_cores
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
    "missing_runs",
    "read_results",
    "run_grid",
    "usable_cores",
]
