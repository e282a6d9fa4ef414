"""Data sets, downloads and partitions. To add a data set: one file with its DatasetSpec, and one entry in DATASETS."""

from fedra.data.dataset import Dataset, DatasetError
from fedra.data.download import download_dataset
from fedra.data.owners import (
    Owners,
    is_owner_file,
    owner_file_digest,
    owner_file_path,
    pinned_owner_file,
    read_owner_file,
)
from fedra.data.partition import (
    NATURAL,
    PARTITIONS,
    Partition,
    PartitionStatistics,
    partition,
    partition_by_owner,
    partition_statistics,
    statistics_table,
)
from fedra.data.quantities import (
    QUANTITY_LAWS,
    QuantityLaw,
    client_quantities,
    lognormal_quantities,
    parse_quantities,
    quantities_text,
    states_numbers,
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
from fedra.data.status import DatasetStatus, dataset_status, missing_datasets

__all__ = [
    "DATASETS",
    "NATURAL",
    "PARTITIONS",
    "QUANTITY_LAWS",
    "Dataset",
    "DatasetError",
    "DatasetSpec",
    "DatasetStatus",
    "Owners",
    "Partition",
    "PartitionStatistics",
    "QuantityLaw",
    "RemoteFile",
    "Source",
    "client_quantities",
    "dataset_status",
    "default_learning_rate",
    "default_model",
    "default_partition_seed",
    "download_dataset",
    "is_owner_file",
    "load_dataset",
    "lognormal_quantities",
    "missing_datasets",
    "owner_file_digest",
    "owner_file_path",
    "parse_quantities",
    "partition",
    "partition_by_owner",
    "partition_statistics",
    "pinned_owner_file",
    "quantities_text",
    "read_owner_file",
    "resolve_data_dir",
    "states_numbers",
    "statistics_table",
]
