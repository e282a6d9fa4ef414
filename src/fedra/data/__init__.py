"""Data sets, downloads and partitions. To add a data set: one file with its DatasetSpec, and one entry in DATASETS."""

from fedra.data.dataset import Dataset, DatasetError
from fedra.data.download import download_dataset
from fedra.data.partition import (
    PARTITIONS,
    Partition,
    PartitionStatistics,
    lognormal_quantities,
    partition,
    partition_statistics,
    statistics_table,
)
from fedra.data.registry import (
    DATASETS,
    default_learning_rate,
    default_model,
    default_partition_seed,
    load_dataset,
    resolve_data_dir,
)
from fedra.data.spec import DatasetSpec, RemoteFile, Source
from fedra.data.status import DatasetStatus, dataset_status

__all__ = [
    "DATASETS",
    "PARTITIONS",
    "Dataset",
    "DatasetError",
    "DatasetSpec",
    "DatasetStatus",
    "Partition",
    "PartitionStatistics",
    "RemoteFile",
    "Source",
    "dataset_status",
    "default_learning_rate",
    "default_model",
    "default_partition_seed",
    "download_dataset",
    "load_dataset",
    "lognormal_quantities",
    "partition",
    "partition_statistics",
    "resolve_data_dir",
    "statistics_table",
]
