"""Who holds what: by name, by the data, by a file; and what cannot be, refused before any work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedra.data import Dataset, Owners, load_dataset
from fedra.experiments.grid import run_name
from fedra.simulation import SimulationConfig, resume, simulate
from fedra.simulation.federation import make_federation
from fedra.simulation.holdings import make_holdings

SMALL: dict[str, Any] = {"rule": "fedavg", "num_sampled": 2}


def digits(**owners: Owners) -> Dataset:
    return replace(load_dataset("digits"), owners=owners)


def wards(count: int = 1438) -> Owners:
    return Owners.of([("north", "south", "west")[number % 3] for number in range(count)])


def own(**given: Any) -> SimulationConfig:
    return SimulationConfig(dataset="my_data:load", partition="natural", **SMALL, **given)


def test_the_data_say_who_holds_what() -> None:
    held = make_holdings(own(), digits(ward=wards()))
    assert held.names == ("north", "south", "west")
    np.testing.assert_array_equal(held.partition.quantities, [480, 479, 479])
    np.testing.assert_array_equal(held.partition.indices(1), np.arange(1, 1438, 3))
    capped = make_holdings(own(max_quantity=7), digits(ward=wards()))
    np.testing.assert_array_equal(capped.partition.quantities, [7, 7, 7])


def test_a_key_is_needed_where_there_are_several() -> None:
    other = Owners.of(["a"] * 700 + ["b"] * 738)
    assert make_holdings(own(client_key="half"), digits(ward=wards(), half=other)).names == ("a", "b")
    with pytest.raises(ValueError, match=r"needs a key: give client_key, one of ward, half"):
        make_holdings(own(), digits(ward=wards(), half=other))
    with pytest.raises(ValueError, match=r"no client_key 'wards'; did you mean 'ward'"):
        make_holdings(own(client_key="wards"), digits(ward=wards(), half=other))
    with pytest.raises(ValueError, match=r"does not say who holds what.*no key.*iid"):
        make_holdings(own(), digits())


def test_what_cannot_be_is_refused_when_it_is_described() -> None:
    with pytest.raises(ValueError, match="digits does not say who holds what"):
        SimulationConfig(partition="natural", **SMALL)
    with pytest.raises(ValueError, match="goes with partition 'natural'"):
        SimulationConfig(client_key="ward", **SMALL)
    with pytest.raises(ValueError, match="leave quantities out"):
        own(quantities="equal", num_clients=3)
    with pytest.raises(ValueError, match="partition='naturl'; did you mean 'natural'"):
        SimulationConfig(partition="naturl", **SMALL)


def test_a_number_of_clients_must_be_theirs() -> None:
    assert make_holdings(own(num_clients=3), digits(ward=wards())).partition.num_clients == 3
    with pytest.raises(ValueError, match="num_clients=4, but there are 3 clients"):
        make_holdings(own(num_clients=4), digits(ward=wards()))


def test_owners_of_another_length_are_no_data_set() -> None:
    with pytest.raises(ValueError, match="owners by ward are of 5 samples"):
        digits(ward=wards(5))


def test_a_partition_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "wards.csv"
    path.write_text("\n".join(str(number % 4) for number in range(1438)), encoding="utf-8")
    config = SimulationConfig(partition=str(path), malicious=[3], attack="lie", **SMALL)
    assert config.short_name == "digits-file-fedavg-lie-seed0"
    assert SimulationConfig.from_dict(config.to_dict()) == config
    made = make_federation(config, load_dataset("digits"))
    assert made.malicious.tolist() == [False, False, False, True]
    np.testing.assert_array_equal(made.partition.indices(3), np.arange(3, 1438, 4))
    # What a file says makes the run, not where it lies.
    moved = tmp_path / "elsewhere.txt"
    moved.write_bytes(path.read_bytes())
    same = replace(config, partition=str(moved))
    assert run_name(same) == run_name(config)
    assert run_name(config).startswith("digits-file-dynamic-fedavg-lie-seed0-")
    moved.write_text("\n".join(str(number % 5) for number in range(1438)), encoding="utf-8")
    assert run_name(replace(config, partition=str(moved))) != run_name(config)
    with pytest.raises(ValueError, match="does not say what it said"):
        make_federation(same, load_dataset("digits"))
    moved.write_text("0\n1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="clients of 2 samples, but there are 1,438"):
        make_federation(replace(config, partition=str(moved)), load_dataset("digits"))


def test_a_run_goes_on_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wards.csv").write_text("\n".join(str(number % 4) for number in range(1438)), encoding="utf-8")
    simulate(SimulationConfig(partition="wards.csv", rounds=1, **SMALL), out=tmp_path / "x")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert resume(tmp_path / "x", rounds=2).summary["rounds"] == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"quantities": "zipf s=1.20", "num_clients": 9}, {"quantities": "zipf  s=1.2", "num_clients": 9}),
        ({"quantities": "zipf s=-0.0", "num_clients": 9}, {"quantities": "zipf s=0", "num_clients": 9}),
        ({"quantities": "lognormal sigma=3.0"}, {}),
        ({"quantities": [30, 20, 10], "num_clients": 3}, {"quantities": "30, 20,10"}),
        ({"malicious": ["3", 1]}, {"malicious": "1,03"}),
        ({"assumed_ratio": 0}, {"assumed_ratio": -0.0}),
        ({"assumed_ratio": 0.1}, {}),
        ({"dirichlet_alpha": 1, "partition": "dirichlet"}, {"dirichlet_alpha": 1.0, "partition": "dirichlet"}),
        (
            {"dataset": "shakespeare", "partition": "natural", "client_key": "role"},
            {"dataset": "shakespeare", "partition": "natural"},
        ),
    ],
)
def test_two_spellings_are_one_run(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert run_name(SimulationConfig(**SMALL, **one)) == run_name(SimulationConfig(**SMALL, **other))
