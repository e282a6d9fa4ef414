"""`fedra federation`: a federation that was described, drawn as text and as a picture before anything is run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Annotated

import typer

from fedra.cli.console import console, errors_reported
from fedra.cli.options import DataDir


def federation(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="TOML file with the table of the federation.")],
    dataset: Annotated[str | None, typer.Option(help="Another data set than the file's.")] = None,
    data_dir: DataDir = None,
    seed: Annotated[int, typer.Option(help="Draws the malicious clients, as that of a run.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Picture to write: .png, .svg or .pdf.")] = None,
    width: Annotated[
        int | None, typer.Option(min=40, max=1000, help="Columns of the drawing; default: the terminal's.")
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Import code that the file names, a data set module:function.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the description as JSON.")] = False,
) -> None:
    """Draw a federation: sizes, labels, what the largest hold, and what one liar could claim."""
    from fedra.data import load_dataset
    from fedra.federations import describe, description_text, write_picture
    from fedra.federations.picture import check_picture_name
    from fedra.simulation import SimulationConfig, overridden, read_federation

    with errors_reported():
        if out is not None:
            check_picture_name(out)
        settings = read_federation(file, trust=trust or dataset is not None)
        title = settings.pop("name", file.stem)
        if dataset is not None:
            settings = overridden(settings, {"dataset": dataset})
        # A rule that takes rounds of any size: which one a run has is not the federation's.
        config = SimulationConfig.from_dict({**settings, "rule": "fedavg", "seed": seed})
        data = load_dataset(config.dataset, data_dir, **config.dataset_params)
        description = describe(config, data, title=title)
        if out is not None:
            write_picture(description, out)
    if as_json:
        typer.echo(json.dumps(description.as_dict(), indent=2))
        return
    typer.echo(description_text(description, width=width or shutil.get_terminal_size((80, 24)).columns))
    if out is not None:
        console.print(f"picture: {out}", soft_wrap=True, markup=False)
