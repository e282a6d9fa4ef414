"""A federation as one TOML table."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedra.simulation import FEDERATION_SETTINGS, SimulationConfig, federation_of, read_federation
from fedra.simulation.federation_file import federation_settings

HOSPITALS = """
name = "three hospitals"
quantities = [400, 300, 20]
num-sampled = 3
malicious = "largest 1"
"""


def written(folder: Path, text: str, name: str = "federation.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_all_of_it_are_settings_of_a_run() -> None:
    assert set(FEDERATION_SETTINGS) <= {field.name for field in fields(SimulationConfig)}


def test_a_table_is_read_with_or_without_a_heading(tmp_path: Path) -> None:
    found = read_federation(written(tmp_path, HOSPITALS))
    assert found == {
        "name": "three hospitals",
        "quantities": "400,300,20",
        "num_sampled": 3,
        "malicious": "largest 1",
    }
    headed = written(tmp_path, f"[federation]{HOSPITALS}", "headed.toml")
    assert read_federation(headed) == found
    assert federation_of("federation.toml", tmp_path / "grid.toml") == found
    assert federation_of(found, None) == found


def test_files_lie_where_the_table_lies(tmp_path: Path) -> None:
    (tmp_path / "silos").mkdir()
    path = written(tmp_path / "silos", 'quantities = "q.txt"\nnum_sampled = 2')
    assert read_federation(path)["quantities"] == str(tmp_path / "silos" / "q.txt")
    held = written(tmp_path / "silos", 'partition = "who.csv"', "held.toml")
    assert read_federation(held)["partition"] == str(tmp_path / "silos" / "who.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num_client = 3", "no 'num_client'; did you mean 'num_clients'"),
        ("rounds = 3", "no 'rounds'"),
        ("name = ''", "name=''"),
        ("quantities = [3, 0]", "a number of quantities=0"),
        ("quantities = [1e400]", "a number of quantities=inf"),
        ("quantities = [nan]", "a number of quantities=nan"),
        ("a = ", "is not valid TOML"),
        ("[federation]\nrounds = 3", "no 'rounds'"),
        ("federation = 3", "federation of .*give a table"),
        ('dataset = "my_data:load"', "--trust"),
    ],
)
def test_a_mistake_names_the_file_and_the_remedy(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        read_federation(written(tmp_path, text))
    assert "federation.toml" in str(caught.value)


def test_hostile_files_are_one_error(tmp_path: Path) -> None:
    path = tmp_path / "federation.toml"
    for content in (b"\xff\xfe\x00\x01", b"a" * (2 << 20), b"a = " + b"[" * 5000):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"federation\.toml"):
            read_federation(path)
    with pytest.raises(ValueError, match=r"there is no federation file .*check the path"):
        read_federation(tmp_path / "none.toml")
    with pytest.raises(ValueError, match="a folder, not a file"):
        read_federation(tmp_path)


def test_what_is_no_federation() -> None:
    with pytest.raises(TypeError, match="federation=3; give a table"):
        federation_of(3, None)
    with pytest.raises(ValueError, match="my_data:load"):
        federation_of({"dataset": "my_data:load"}, Path("grid.toml"))
    assert federation_of({"dataset": "my_data:load"}, None) == {"dataset": "my_data:load"}


def test_a_configuration_is_read_with_its_federation(tmp_path: Path) -> None:
    written(tmp_path, HOSPITALS)
    config = written(tmp_path, 'federation = "federation.toml"\nrule = "fedavg"\nassumed_ratio = 0.2', "run.toml")
    expected = SimulationConfig(
        rule="fedavg", quantities="400,300,20", num_sampled=3, malicious="largest 1", assumed_ratio=0.2
    )
    assert SimulationConfig.read(config) == expected
    foreign = written(tmp_path, "[federation]\ndataset = 'my_data:load'", "foreign.toml")
    with pytest.raises(ValueError, match="--trust"):
        SimulationConfig.read(foreign)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(["name", *FEDERATION_SETTINGS]) | st.text(max_size=8), VALUES, max_size=4))
def test_what_is_read_is_no_more_than_a_run_takes(values: dict[str, Any]) -> None:
    """Whatever a table says becomes settings of a run, or a TypeError or ValueError."""
    try:
        found = federation_settings(values, Path("/nowhere"))
        found.pop("name", None)
        config = SimulationConfig.from_dict({**found, "rule": "fedavg"})
    except (ValueError, TypeError):
        return
    assert SimulationConfig.from_dict(config.to_dict()) == config


PIECES = [
    *("quantities", "num-sampled", "num_sampled", "malicious", "[federation]", "name", "=", "'", '"', "\n", "[", "]"),
    *("{", "}", ",", "1", "-", "nan", "1e400", "true", "9" * 40, "\x00", "\ufeff"),
]
CONTENTS = st.binary(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=14).map(lambda p: "".join(p).encode())


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], deadline=None)
@given(CONTENTS)
def test_whatever_a_file_holds_is_settings_or_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "federation.toml"
    path.write_bytes(content)
    try:
        found = read_federation(path)
        found.pop("name", None)
        SimulationConfig.from_dict({**found, "rule": "fedavg"})
    except (ValueError, TypeError):
        pass


def test_one_setting_in_two_spellings_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"federation\.toml: 'num_sampled' is given twice"):
        read_federation(written(tmp_path, "num-sampled = 3\nnum_sampled = 4"))
    with pytest.raises(ValueError, match="gives sigma twice"):
        SimulationConfig(quantities="lognormal sigma=1 sigma=2")


def test_a_mark_of_byte_order_and_a_number_too_long(tmp_path: Path) -> None:
    assert read_federation(written(tmp_path, "\ufeffquantities = [3, 4]"))["quantities"] == "3,4"
    with pytest.raises(ValueError, match="is not valid TOML: a number in it cannot be read"):
        read_federation(written(tmp_path, f"num_sampled = {'9' * 5000}"))


def test_a_long_text_that_is_no_list_is_refused_at_once(tmp_path: Path) -> None:
    values = read_federation(written(tmp_path, f"quantities = '{'1,' * 200_000}x'"))
    with pytest.raises(ValueError, match="is no list of numbers, and too long for a law"):
        SimulationConfig.from_dict(values)
