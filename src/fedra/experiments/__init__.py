"""Grids of runs: expanded from data, run on one machine or a cluster, resumable; and the paper's figures to compare."""

from fedra.experiments.attempt import Job
from fedra.experiments.cluster import RayEngine
from fedra.experiments.compact import Results
from fedra.experiments.events import Advanced, Event, Failed, Finished, Started
from fedra.experiments.folder import GridFolder, read_results
from fedra.experiments.grid import Cell, Grid
from fedra.experiments.local import LocalEngine, usable_cores
from fedra.experiments.paper import DatasetStatistics, Figure, Paper, PublishedAccuracy, read_paper
from fedra.experiments.protocols import Protocol, Protocols, read_protocols
from fedra.experiments.reproduction import Reproduction
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
