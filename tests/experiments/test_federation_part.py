"""Federations in grids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedra.contest.programme import ContestSetting
from fedra.experiments import Grid

SILOS = {"name": "3 silos", "num_clients": 3, "quantities": "equal", "num_sampled": 3, "setting": "fixed"}


def expanded(**values: Any) -> Grid:
    return Grid.from_dict({"rules": ["fedavg"], **values})


def test_blocks_of_one_data_set_stand_side_by_side() -> None:
    five = {"name": "5 silos", "num_clients": 5, "quantities": "equal", "num_sampled": 5, "partition": "non-iid"}
    cells = expanded(blocks=[{"federation": SILOS}, {"federation": five}], attacks=["lie"]).cells
    assert [(c.dataset, c.partition, c.setting) for c in cells] == [
        ("Digits (3 silos)", "iid", "fixed"),
        ("Digits (5 silos)", "non-iid", "dynamic"),
    ]
    assert [cell.config.num_clients for cell in cells] == [3, 5]


def test_a_name_alone_does_not_make_another_run() -> None:
    named = expanded(federation=SILOS).cells[0]
    (plain,) = expanded(settings=["fixed"], fixed={"num_clients": 3, "quantities": "equal", "num_sampled": 3}).cells
    assert named.run == plain.run


def test_what_is_nearer_wins() -> None:
    blocks = [
        {},
        {"federation": {"num_clients": 4, "quantities": "equal", "num_sampled": 4}},
        {"fixed": {"num_sampled": 2}, "datasets": [{"dataset": "digits", "label": "two at a time"}]},
    ]
    cells = expanded(federation=SILOS, fixed={"num_malicious": 1}, blocks=blocks).cells
    assert [(c.config.num_clients, c.config.num_sampled) for c in cells] == [(3, 3), (4, 4), (3, 2)]
    assert [cell.dataset for cell in cells] == ["Digits (3 silos)", "digits", "two at a time"]
    assert {cell.config.num_malicious for cell in cells} == {1}


def test_a_file_beside_the_grid(tmp_path: Path) -> None:
    (tmp_path / "who.csv").write_text("a\nb\n", encoding="utf-8")
    (tmp_path / "f.toml").write_text("partition = 'who.csv'\nnum_sampled = 2\nmalicious = ['b']", encoding="utf-8")
    (tmp_path / "grid.toml").write_text("rules = ['fedavg']\nfederation = 'f.toml'", encoding="utf-8")
    (cell,) = Grid.read(tmp_path / "grid.toml").cells
    assert cell.partition == "who.csv"
    assert cell.config.partition.startswith(str(tmp_path / "who.csv#"))
    assert cell.config.malicious == "b"
    (tmp_path / "f.toml").write_text("dataset = 'my_data:load'", encoding="utf-8")
    with pytest.raises(ValueError, match=r"f\.toml has dataset = 'my_data:load'.*--trust"):
        Grid.read(tmp_path / "grid.toml")


def test_a_mistake_in_it_is_an_error() -> None:
    with pytest.raises(ValueError, match="a federation has no 'rounds'"):
        expanded(federation={"rounds": 3})
    with pytest.raises(TypeError, match="federation=3"):
        expanded(blocks=[{"federation": 3}])


def test_a_setting_of_the_contest_may_have_one() -> None:
    setting = ContestSetting(key="x", dataset="digits", partition="iid", fixed={"rounds": 3}, federation=SILOS)
    (cell,) = expanded(blocks=[setting.block(num_sampled=2)]).cells
    assert (cell.config.num_clients, cell.config.num_sampled, cell.dataset) == (3, 2, "digits")


def test_what_is_nearer_excludes_what_is_farther() -> None:
    blocks = [
        {"attacks": [{"attack": "lie", "fixed": {"num_malicious": 1}}]},
        {"fixed": {"malicious_ratio": 0.2}, "attacks": [{"attack": "lie", "label": "a fifth"}]},
    ]
    federation = {"name": "x", "num_clients": 8, "quantities": "equal", "num_sampled": 8, "malicious": "largest 2"}
    cells = expanded(federation=federation, blocks=blocks).cells
    stated = [(c.config.malicious, c.config.num_malicious, c.config.malicious_ratio) for c in cells]
    assert stated == [(None, 1, 0.1), (None, None, 0.2)]


def test_quantities_over_a_partition_that_a_federation_names() -> None:
    held = {"dataset": "shakespeare", "partition": "natural", "num_sampled": 3}
    fixed = {"num_clients": 3, "quantities": "equal"}
    (cell,) = expanded(federation=held, blocks=[{"fixed": fixed}]).cells
    assert (cell.partition, cell.config.partition, cell.config.num_clients) == ("iid", "iid", 3)
    (cell,) = expanded(federation={**fixed, "num_sampled": 3}, datasets=["shakespeare"], partitions=["natural"]).cells
    assert (cell.partition, cell.config.quantities, cell.config.num_clients) == ("natural", None, None)
    for same in (
        {"federation": {**held, **fixed}},
        {"datasets": ["shakespeare"], "partitions": ["natural"], "fixed": fixed},
        {"datasets": ["shakespeare"], "partitions": ["natural"], "blocks": [{"fixed": fixed}]},
        {"datasets": ["shakespeare"], "partitions": [{"partition": "natural", "fixed": fixed}]},
    ):
        with pytest.raises(ValueError, match="leave quantities out"):
            expanded(**same)


def test_another_folder_of_data_keeps_what_was_refused() -> None:
    values = {"rules": ["krum", "fedavg"], "fixed": {"num_sampled": 2, "num_malicious": 1}}
    grid = Grid.from_dict(values, leave_out_refused=True)
    assert len(grid.refused) == 1
    assert grid.with_data_dir("x").refused == grid.refused
