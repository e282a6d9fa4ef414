"""Data sets, downloads and partitions."""

from fedra.data.dataset import Dataset
from fedra.data.download import download_dataset
from fedra.data.errors import DatasetError
from fedra.data.partition import PARTITIONS, Partition, partition
from fedra.data.quantities import DEFAULT_PARTITION_SEEDS, lognormal_quantities
from fedra.data.registry import DATASETS, DatasetSpec, load_dataset, resolve_data_dir
from fedra.data.sources import SOURCES
from fedra.data.statistics import PartitionStatistics, partition_statistics, statistics_table
from fedra.data.status import DatasetStatus, dataset_status

__all__ = [
    "DATASETS",
    "DEFAULT_PARTITION_SEEDS",
    "PARTITIONS",
    "SOURCES",
    "Dataset",
    "DatasetError",
    "DatasetSpec",
    "DatasetStatus",
    "Partition",
    "PartitionStatistics",
    "dataset_status",
    "download_dataset",
    "load_dataset",
    "lognormal_quantities",
    "partition",
    "partition_statistics",
    "resolve_data_dir",
    "statistics_table",
]
