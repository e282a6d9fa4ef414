"""More than one machine: a Ray cluster that is there, and rounds of files whose columns are cut over it."""

from fedra.cluster.workers import RayWorkers

__all__ = ["RayWorkers"]
