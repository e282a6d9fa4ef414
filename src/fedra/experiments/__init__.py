"""Grids of runs: expanded from data, run on one machine or a cluster, resumable; and the paper's figures to compare."""

from fedra.experiments.grid import Cell, Grid
from fedra.experiments.grid_folder import GridFolder, read_results
from fedra.experiments.jobs import Advanced, Event, Failed, Finished, Job, Started
from fedra.experiments.local_engine import LocalEngine, usable_cores
from fedra.experiments.paper import DatasetStatistics, Figure, Paper, PublishedAccuracy, read_paper
from fedra.experiments.protocols import Protocol, Protocols, read_protocols
from fedra.experiments.ray_engine import RayEngine
from fedra.experiments.reproduction import Reproduction
from fedra.experiments.results import Results
from fedra.experiments.running import Engine, GridOutcome, missing_runs, run_grid
from fedra.experiments.tally import Tally

__all__ = [
    "Advanced",
    "Cell",
    "DatasetStatistics",
    "Engine",
    "Event",
    "Failed",
    "Figure",
    "Finished",
    "Grid",
    "GridFolder",
    "GridOutcome",
    "Job",
    "LocalEngine",
    "Paper",
    "Protocol",
    "Protocols",
    "PublishedAccuracy",
    "RayEngine",
    "Reproduction",
    "Results",
    "Started",
    "Tally",
    "missing_runs",
    "read_paper",
    "read_protocols",
    "read_results",
    "run_grid",
    "usable_cores",
]
