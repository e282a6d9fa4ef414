"""Every fact of a data set is in its spec."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from fedra.data import DATASETS, DatasetError, DatasetSpec
from fedra.models import MODELS

PACKAGE = Path(__file__).parents[2] / "src" / "fedra"

# What results were computed with: model, learning rate, partition seed.
SETUPS = {
    "digits": ("logistic", 1e-2, 161),
    "mnist": ("cnn28", 1e-4, 9080),
    "fashion-mnist": ("cnn28", 1e-4, 9080),
    "cifar10": ("cnn32", 1e-3, 10566),
    "mind": ("text-cnn", 1e-4, 492),
    "huffpost": ("text-cnn", 1e-4, 988),
    "flights": ("logistic", 1e-2, None),
    "shakespeare": ("char-tree", 1e-2, None),
}


def test_how_runs_are_set_up_never_changes() -> None:
    found = {name: (spec.model, spec.learning_rate, spec.partition_seed) for name, spec in DATASETS.items()}
    assert found == SETUPS


@pytest.mark.parametrize("spec", DATASETS.values(), ids=list(DATASETS))
def test_a_spec_is_whole(spec: DatasetSpec, tmp_path: Path) -> None:
    assert DATASETS[spec.name] is spec
    assert spec.label
    assert spec.summary
    assert spec.model in MODELS
    needs_files = bool(spec.files(tmp_path))
    assert needs_files == bool(spec.remedy(tmp_path))
    packaged = spec.name == "flights"
    assert packaged or all(path.is_relative_to(tmp_path) for path in spec.files(tmp_path))


@pytest.mark.parametrize("spec", DATASETS.values(), ids=list(DATASETS))
def test_what_is_downloaded_is_what_is_looked_for(spec: DatasetSpec, tmp_path: Path) -> None:
    if spec.source is None:
        assert "{data_dir}" not in spec.remedy(tmp_path)
        return
    place = tmp_path / spec.source.folder
    arriving = {place / name for file in spec.source.files for name in (file.members or {file.name: file.md5})}
    assert arriving == set(spec.files(tmp_path))
    assert spec.remedy(tmp_path) == f"get it with: fedra data get {spec.name} --data-dir {tmp_path}"
    assert all(
        re.fullmatch("[0-9a-f]{32}", md5) for file in spec.source.files for md5 in (file.md5, *file.members.values())
    )


def test_the_remedy_names_the_directory_or_a_stand_in(tmp_path: Path) -> None:
    assert DATASETS["mind"].remedy(tmp_path).endswith(f" {tmp_path}/MIND/news.tsv")
    assert DATASETS["mind"].remedy(None).endswith(" DIR/MIND/news.tsv")
    assert DATASETS["mnist"].remedy(None).endswith(" --data-dir DIR")


def test_a_directory_is_required(tmp_path: Path) -> None:
    spec = DATASETS["mnist"]
    assert spec.require_dir(tmp_path) == tmp_path
    with pytest.raises(DatasetError, match="mnist: no data directory; give --data-dir or set FEDRA_DATA, or get it"):
        spec.require_dir(None)


def test_the_defaults_are_those_of_an_unknown_data_set() -> None:
    spec = DatasetSpec(name="x", label="X", summary="x", load=lambda data_dir: None)  # type: ignore[arg-type,return-value]
    assert (spec.model, spec.learning_rate, spec.partition_seed, spec.source) == (None, 1e-3, None, None)
    assert (spec.files(Path()), spec.note(Path()), spec.remedy(None)) == ((), "", "")
    assert replace(spec, instructions="see {data_dir}").remedy(Path("d")) == "see d"


def test_no_other_file_of_the_core_knows_a_data_set_by_name() -> None:
    """What is particular to a data set stands in the file of its spec; the digits are also the default and the demo."""
    own = {"digits.py", "idx.py", "cifar.py", "news.py", "flights.py", "shakespeare.py"}
    allowed = {"config.py": {"digits"}, "demo.py": {"digits"}, "run.py": {"digits"}}
    names = "|".join(DATASETS)
    files = [
        *(file for file in (PACKAGE / "data").glob("*.py") if file.name not in own),
        *(PACKAGE / "simulation").glob("*.py"),
        *(PACKAGE / "experiments").glob("*.py"),
        *(PACKAGE / "cli").glob("*.py"),
    ]
    for file in files:
        if file.name in ("paper.py", "reproduction.py"):
            continue
        found = set(re.findall(rf'"({names})"', file.read_text(encoding="utf-8")))
        assert found <= allowed.get(file.name, set()), f"{file} knows {found}"
