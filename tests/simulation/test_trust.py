from __future__ import annotations

import pytest

from fedra.simulation import SimulationConfig, check_trusted, own_code

OWN = {"rule": "mine:Rule", "attack": "mine:attack", "dataset": "mine:data", "model": "mine:model"}


def test_only_what_names_code_counts_as_own() -> None:
    assert own_code(SimulationConfig().to_dict()) == {}
    assert own_code({**OWN, "optimizer": "mine:other", "data_dir": "c:/data"}) == OWN
    assert own_code({"rule": ["mine:Rule"], "attack": None, "model": "cnn28", "dataset": "mnist"}) == {}


@pytest.mark.parametrize("setting", OWN)
def test_code_that_a_file_names_is_refused_with_the_files_name(setting: str) -> None:
    with pytest.raises(ValueError, match=rf"^a\.toml has {setting} = '{OWN[setting]}': code .* add --trust"):
        check_trusted({"rounds": 3, setting: OWN[setting]}, "a.toml")


def test_settings_without_code_need_no_trust() -> None:
    check_trusted(SimulationConfig(rule="krum", attack="lie").to_dict(), "a.toml")
