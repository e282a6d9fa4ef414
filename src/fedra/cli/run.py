"""`fedra run`: one simulated run, from flags, a TOML file, or where an earlier one stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from fedra import checks
from fedra.cli.console import console, errors, errors_reported, interruptible, print_table
from fedra.cli.options import DataDir, Parameters, Track
from fedra.cli.progress import progress_bar
from fedra.names import parse_parameter
from fedra.server import Observer, RoundRecord, RunInfo

if TYPE_CHECKING:
    from fedra.simulation import SimulationConfig, SimulationResult

# So many classes have their accuracies shown.
_MOST_CLASSES = 20
_NO_SETTINGS = ("config", "federation", "resume_", "out", "track", "trust", "quiet", "as_json")
_TABLES = ("rule_params", "attack_params", "optimizer_params", "model_params", "dataset_params")


def run(
    config: Annotated[
        Path | None, typer.Option(help="TOML file with any of these settings; a flag overrides it.")
    ] = None,
    federation: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML file that describes the federation; a flag overrides it.")
    ] = None,
    resume_: Annotated[
        Path | None,
        typer.Option("--resume", metavar="DIR", help="Resume the run in this folder; --rounds MORE extends it."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the run; default: a new one in runs/.")] = None,
    dataset: Annotated[
        str | None, typer.Option(help="digits, mnist, ..., or module:function.", show_default="digits")
    ] = None,
    data_dir: DataDir = None,
    dataset_param: Parameters = None,
    partition: Annotated[
        str | None,
        typer.Option(
            help="iid, non-iid, dirichlet, natural, or a .txt or .csv file: a client a line.", show_default="iid"
        ),
    ] = None,
    client_key: Annotated[
        str | None, typer.Option(help="Whose data are whose in partition natural, such as carrier.")
    ] = None,
    partition_seed: Annotated[int | None, typer.Option(help="Default: the data set's stated seed.")] = None,
    dirichlet_alpha: Annotated[
        float | None, typer.Option(help="Concentration of the label skew.", show_default="0.5")
    ] = None,
    num_clients: Annotated[int | None, typer.Option(help="Clients of the federation.")] = None,
    quantities: Annotated[
        str | None, typer.Option(help="'lognormal sigma=3', 'zipf s=1.2', equal, 90,40,7, or a .txt or .csv file.")
    ] = None,
    max_quantity: Annotated[int | None, typer.Option(help="Cap on a client's data and quantity together.")] = None,
    model: Annotated[
        str | None, typer.Option(help="cnn28, cnn32, logistic, text-cnn, char-tree, or module:function.")
    ] = None,
    model_param: Parameters = None,
    setting: Annotated[
        str | None, typer.Option(help="fixed or dynamic share of malicious clients.", show_default="dynamic")
    ] = None,
    num_sampled: Annotated[int | None, typer.Option(help="Clients in a round.", show_default="50")] = None,
    malicious_ratio: Annotated[
        float | None, typer.Option(help="Share of malicious clients, which the rule assumes too.", show_default="0.1")
    ] = None,
    num_malicious: Annotated[int | None, typer.Option(help="Malicious clients, instead of their share.")] = None,
    malicious: Annotated[
        str | None, typer.Option(help="Who they are instead: 0,5,12, names with commas between, or 'largest 2'.")
    ] = None,
    assumed_ratio: Annotated[
        float | None,
        typer.Option(help="The share that the rule assumes; default: --malicious-ratio, so 0.1 with the two above."),
    ] = None,
    rule: Annotated[str | None, typer.Option(help="See fedra rules; or module:Class.", show_default="fedra")] = None,
    rule_param: Parameters = None,
    before: Annotated[str | None, typer.Option(help="nnm, 'bucketing size=4' or arc before the rule.")] = None,
    optimizer: Annotated[str | None, typer.Option(help="adam, fedadam or sgd.", show_default="adam")] = None,
    optimizer_param: Parameters = None,
    lr: Annotated[float | None, typer.Option(help="The server's learning rate; default: the data set's.")] = None,
    attack: Annotated[str | None, typer.Option(help="See fedra attacks; or module:name.", show_default="none")] = None,
    attack_param: Parameters = None,
    alpha_q: Annotated[float | None, typer.Option(help="Malicious clients claim mean + this x std.")] = None,
    quantity_statistics: Annotated[
        str | None,
        typer.Option(help="Mean and std of all malicious clients (run) or of the sampled (round).", show_default="run"),
    ] = None,
    claimed_quantity: Annotated[float | None, typer.Option(help="Malicious clients claim this quantity.")] = None,
    quantity_attack: Annotated[
        str | None, typer.Option(help="honest, as-much-as-passes; default: what the two above stand for.")
    ] = None,
    local_epochs: Annotated[int | None, typer.Option(help="Local SGD epochs instead of one gradient.")] = None,
    local_steps: Annotated[int | None, typer.Option(help="Local SGD steps instead of one gradient.")] = None,
    local_lr: Annotated[float | None, typer.Option(help="Learning rate of local SGD.", show_default="0.01")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Batch of local SGD.", show_default="32")] = None,
    rounds: Annotated[int | None, typer.Option(help="How many rounds.", show_default="100")] = None,
    eval_every: Annotated[
        int | None, typer.Option(help="Rounds between measurements of accuracy.", show_default="25")
    ] = None,
    checkpoint_every: Annotated[int | None, typer.Option(help="Rounds between checkpoints.", show_default="25")] = None,
    seed: Annotated[int | None, typer.Option(help="Of everything but the partition.", show_default="0")] = None,
    threads: Annotated[
        int | None, typer.Option(help="Threads of this run; with local SGD its bits depend on them.", show_default="1")
    ] = None,
    track: Track = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Import code that the file or folder names, such as a rule module:Class.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no table.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Simulate a federation under attack, and record every round."""
    given = {key: value for key, value in locals().items() if value is not None and key not in _NO_SETTINGS}
    from fedra.simulation import RunFolder, own_code, resume, simulate
    from fedra.simulation.run_folder import CONFIG
    from fedra.trackers import make_trackers

    with errors_reported():
        if resume_ is not None:
            if given.keys() - {"rounds"} or config is not None or federation is not None or out is not None:
                raise ValueError("--resume takes its settings from the run folder; give no others than --rounds")
            folder, settings = resume_, RunFolder.existing(resume_, trust=trust)[1]
            settings = replace(settings, rounds=given.get("rounds", settings.rounds))
        else:
            values = _file_values(config, federation, given, trust)
            quiet = checks.switch("quiet", values.pop("quiet", False)) or quiet
            as_json = checks.switch("json", values.pop("json", False)) or as_json
            stated = checks.text("out", values.pop("out", ""), "the name of a folder")
            settings = _settings(values, given)
            folder = out or (Path(stated) if stated else _new_folder(settings))
        before = "" if settings.before is None else f"{settings.before}+"
        label = f"{before}{settings.rule} / {settings.attack}"
        trackers, seen = make_trackers(track or ()), _Begun()
        try:
            with interruptible() as check, progress_bar(label, settings.rounds, quiet=quiet or as_json) as bars:
                observers = (_Stopping(check), *bars, *trackers)
                if resume_ is not None:
                    result = resume(resume_, observers=(*observers, seen), trust=trust, rounds=given.get("rounds"))
                else:
                    result = simulate(settings, out=folder, observers=observers)
        except KeyboardInterrupt:
            begun = (folder / CONFIG).is_file()
            again = f"fedra run --resume {folder}{' --trust' if own_code(settings.to_dict()) else ''}"
            kept = f"all finished rounds are kept. Resume with: {again}" if begun else "nothing was run"
            errors.print(f"stopped; {kept}", soft_wrap=True, markup=False)
            raise typer.Exit(130) from None
    if as_json:
        typer.echo(json.dumps(result.summary, indent=2, sort_keys=True))
    elif not quiet:
        if resume_ is not None and not seen.begun:
            errors.print("all rounds are done already; --rounds MORE extends the run", soft_wrap=True, markup=False)
        print_table(_table(result))
        console.print(f"records: {folder}", soft_wrap=True, markup=False)


class _Stopping(Observer):
    """Asks after every round whether an interrupt was lost in it."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check

    def round(self, record: RoundRecord) -> None:
        """Ask."""
        self._check()


class _Begun(Observer):
    """Notices whether there was anything to run."""

    begun = False

    def start(self, run: RunInfo) -> None:
        """Notice it."""
        self.begun = True


def _file_values(config: Path | None, federation: Path | None, given: dict[str, Any], trust: bool) -> dict[str, Any]:
    """Return what the files say: a federation named by flag wins over the configuration, which wins over its own."""
    from fedra.simulation import check_trusted, federation_of, overridden, read_federation, read_toml

    values = {} if config is None else read_toml(config)
    own = values.pop("federation", None)
    if config is not None and not trust:
        # What a flag names instead is the user's own word.
        check_trusted({key: value for key, value in values.items() if key not in given}, config)
    # A data set that a flag names takes the place of the file's, which then is not imported.
    trusted = trust or "dataset" in given
    described = {} if own is None or federation is not None else federation_of(own, config, trust=trusted)
    named = {} if federation is None else read_federation(federation, trust=trusted)
    merged = overridden(overridden(described, values), named)
    return {key: value for key, value in merged.items() if key != "name"}


def _settings(values: dict[str, Any], given: dict[str, Any]) -> SimulationConfig:
    from fedra.simulation import SimulationConfig, overridden

    tables = {table: given.pop(table.removesuffix("s"), None) for table in _TABLES}
    values = overridden(values, given)
    for table, flags in tables.items():
        name = table.removesuffix("s")
        if flags:
            option = f"--{name.replace('_', '-')}"
            values[table] = {
                **checks.table(table, values.get(table, {})),
                **dict(parse_parameter(flag, option) for flag in flags),
            }
    if "before" in given:
        values.pop("before_params", None)
    return SimulationConfig.from_dict(values)


def _new_folder(config: SimulationConfig) -> Path:
    name = config.short_name
    candidates = [name, *(f"{name}-{number}" for number in range(2, 10_000))]
    return next(path for path in (Path("runs") / candidate for candidate in candidates) if not path.exists())


def _table(result: SimulationResult) -> Table:
    figures = result.summary
    table = Table(show_header=False, title="Result")
    for label, key, form in (
        ("test accuracy, last round", "final_accuracy", "{:.2f} %"),
        ("test accuracy, best", "best_accuracy", "{:.2f} %"),
        ("AUC, last round", "auc", "{:.4f}"),
        ("test accuracy of the worst class, last round", "worst_class_accuracy", "{:.2f} %"),
        ("triggered test samples classified as the target", "attack_success", "{:.2f} %"),
        ("filtering precision", "filtering_precision", "{:.3f}"),
        ("filtering recall", "filtering_recall", "{:.3f}"),
        ("mean error of the estimated number of malicious clients", "mean_abs_error_malicious", "{:.2f}"),
        ("rounds without an update", "rounds_without_update", "{}"),
        ("clients", "num_clients", "{:,}"),
        ("of them malicious", "num_malicious_clients", "{:,}"),
        ("rounds", "rounds", "{:,}"),
        ("seconds", "seconds", "{:.1f}"),
    ):
        value = figures.get(key)
        if value is None and key in ("attack_success", "auc", "worst_class_accuracy"):
            continue
        table.add_row(label, "-" if value is None else form.format(value))
        if key == "worst_class_accuracy" and (classes := figures["class_accuracy"].count(",") + 1) <= _MOST_CLASSES:
            table.add_row(f"of each of {classes} classes (%)", figures["class_accuracy"].replace(",", " "))
    if warned := int((result.rounds["warnings"] != "").sum()):
        table.add_row("rounds with warnings, see rounds.parquet", f"{warned:,}")
    return table
