"""`fedra assess`: how exposed a federation is, what liars get under each rule, and which rule to use."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column

from fedra.assess import USUAL_BUDGET, USUAL_RULES
from fedra.assess.federation import USUAL_RATIO, USUAL_ROUNDS, USUAL_SAMPLED
from fedra.assess.rounds import USUAL_DIMENSION, USUAL_SIGNAL
from fedra.cli.console import console, errors, errors_reported, interruptible, is_terminal, now_and_then
from fedra.cli.options import Quiet
from fedra.names import parse_spec
from fedra.rules import Rule, make_rule

if TYPE_CHECKING:
    from fedra.assess import Federation, HonestRounds
    from fedra.assess.sources import Source

_PLAIN_WIDTH = 120
_RULE_FORM = "write it as median, 'median before=nnm' or 'my_rules:Mine cap=50 label=Mine'"

# Called with the rule that is asked, and how far all of it is.
Step = Callable[[str, float], None]


def assess(
    source: Annotated[
        Path | None,
        typer.Argument(metavar="[RUN|TRAIL]", help="A run's folder or an audit trail, for what clients hold."),
    ] = None,
    quantities: Annotated[
        str | None,
        typer.Option(help="A file with a number for each client, numbers with commas, or a law: 'lognormal sigma=3'."),
    ] = None,
    num_clients: Annotated[int | None, typer.Option(help="N, where quantities are not stated one by one.")] = None,
    num_sampled: Annotated[
        int | None, typer.Option(help=f"n, clients in a round; default: all, at most {USUAL_SAMPLED}.")
    ] = None,
    malicious_ratio: Annotated[
        float | None, typer.Option(help=f"The share of clients that lies; default {USUAL_RATIO}.")
    ] = None,
    num_malicious: Annotated[int | None, typer.Option(help="M, how many lie, instead.")] = None,
    rounds: Annotated[
        int | None, typer.Option(help=f"T, rounds of the training; default {USUAL_ROUNDS}, or the run's.")
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="See fedra rules; or module:Class, and NAME=VALUE, before=nnm. Several times if you like; default: "
            f"{', '.join(USUAL_RULES)}.",
        ),
    ] = None,
    updates: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Real updates of honest clients instead of synthetic ones: a file for each, or a pattern "
            "'round/*.npz'. "
            "Several times if you like.",
        ),
    ] = None,
    base: Annotated[
        Path | None, typer.Option(help="The model that clients began with, where updates are models.")
    ] = None,
    signal: Annotated[
        float, typer.Option(help="Length of the synthetic mean, in deviations of one sample's gradient.")
    ] = USUAL_SIGNAL,
    difference: Annotated[
        float, typer.Option(help="How far clients' data differ, in the same unit; 0: data of one kind.")
    ] = 0.0,
    dimension: Annotated[int, typer.Option(help="Of synthetic updates.")] = USUAL_DIMENSION,
    budget: Annotated[int, typer.Option(help="Calls of the rule in each search for the worst attack.")] = USUAL_BUDGET,
    seed: Annotated[int, typer.Option(help="Of everything drawn.")] = 0,
    html: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
    trust: Annotated[bool, typer.Option("--trust", help="Import the code that a run's folder names.")] = False,
    quiet: Quiet = False,
) -> None:
    """Say how exposed a federation is: what liars get, how many come, how many each rule stands, what it costs."""
    with errors_reported():
        from fedra import assess as assessing

        if html is not None and not html.absolute().parent.is_dir():
            raise ValueError(f"--html {html}: there is no folder {html.absolute().parent}; make it first")
        rules = None if rule is None else _rules(rule)
        given = _source(source, quantities, num_clients=num_clients, seed=seed, trust=trust)
        honest = _real(updates, quantities, base, seed)
        federation = _federation(given, honest, num_clients, num_sampled, malicious_ratio, num_malicious, rounds)
        if honest is None:
            honest = assessing.SyntheticRounds(
                federation=federation, seed=seed, signal=signal, difference=difference, dimension=dimension
            )
        with interruptible() as check, _progress(quiet=quiet) as show:

            def step(label: str, share: float) -> None:
                check()
                show(label, share)

            found = assessing.assess(
                *(federation, USUAL_RULES if rules is None else rules),
                rounds=honest, budget=budget, seed=seed, progress=step,
            )  # fmt: skip
        if html is not None:
            from fedra.files import write_at

            write_at(html, assessing.assessment_page(found).encode("utf-8"))
    if as_json:
        typer.echo(json.dumps(assessing.assessment_values(found), indent=2))
    elif not quiet or html is None:
        width = console.width if console.is_terminal else _PLAIN_WIDTH
        typer.echo(assessing.assessment_text(found, width))
    if html is not None and not as_json and not quiet:
        typer.echo(f"\nwrote {html}")


def _rules(texts: Sequence[str]) -> dict[str, Rule]:
    """Return rules by label, in the order they were given."""
    found: dict[str, Rule] = {}
    for text in texts:
        name, parameters = parse_spec(text, "--rule", _RULE_FORM)
        label = str(parameters.pop("label", text.strip()))
        if label in found:
            raise ValueError(f"--rule {text!r} is there twice; give each rule once, or a label=TEXT")
        before = parameters.pop("before", None)
        found[label] = make_rule(name, before=None if before is None else str(before), **parameters)
    return found


def _source(
    path: Path | None, quantities: str | None, *, num_clients: int | None, seed: int, trust: bool
) -> Source | None:
    if path is not None and quantities is not None:
        raise ValueError(f"{path} and --quantities {quantities!r}; give one of them, both say what clients hold")
    if path is not None:
        if path.is_dir():
            from fedra.assess.runs import run_folder

            return run_folder(path, trust=trust).filled(num_clients, seed)
        from fedra.assess.sources import audit_trail

        return audit_trail(path).filled(num_clients, seed)
    if quantities is None:
        return None
    from fedra.assess.sources import stated_quantities

    return stated_quantities(quantities, num_clients=num_clients, seed=seed)


def _real(patterns: Sequence[str] | None, quantities: str | None, base: Path | None, seed: int) -> HonestRounds | None:
    if not patterns:
        if base is not None:
            raise ValueError(f"--base {base} is for --updates; add them, or leave it out")
        return None
    from fedra.assess.sources import real_rounds

    paths: list[Path] = []
    for pattern in patterns:
        found = sorted(Path().glob(pattern)) if "*" in pattern and not Path(pattern).is_absolute() else [Path(pattern)]
        if not found:
            raise ValueError(f"--updates {pattern!r}: no file has such a name; give the updates' files")
        paths += found
    return real_rounds(paths, None if quantities is None else Path(quantities), base=base, seed=seed)


def _federation(
    source: Source | None,
    honest: HonestRounds | None,
    num_clients: int | None,
    num_sampled: int | None,
    malicious_ratio: float | None,
    num_malicious: int | None,
    rounds: int | None,
) -> Federation:
    from fedra.assess import Federation
    from fedra.assess.rounds import RealRounds

    if source is None and isinstance(honest, RealRounds):
        return Federation.of(
            honest.quantities if num_clients is None else None,
            num_clients=num_clients,
            num_sampled=len(honest.quantities) if num_sampled is None else num_sampled,
            malicious_ratio=malicious_ratio,
            num_malicious=num_malicious,
            rounds=USUAL_ROUNDS if rounds is None else rounds,
        )
    if source is None:
        if num_clients is None:
            raise ValueError(
                "nothing is known of the federation; give a run's folder or an audit trail, --quantities, or "
                "--num-clients"
            )
        return Federation.of(
            num_clients=num_clients,
            num_sampled=num_sampled,
            malicious_ratio=malicious_ratio,
            num_malicious=num_malicious,
            rounds=USUAL_ROUNDS if rounds is None else rounds,
        )
    if malicious_ratio is None and num_malicious is None:
        num_malicious = source.num_malicious
    return Federation.of(
        source.quantities,
        num_clients=num_clients,
        num_sampled=source.num_sampled if num_sampled is None else num_sampled,
        malicious_ratio=malicious_ratio,
        num_malicious=num_malicious,
        rounds=(source.rounds or USUAL_ROUNDS) if rounds is None else rounds,
        known=source.known,
    )


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Step]:
    """Yield what to call with how far it is: a bar on a terminal, a line now and then elsewhere."""
    if quiet:
        yield lambda label, share: None
        return
    if not is_terminal():
        yield now_and_then(lambda label, share: f"asking {label}: {share:.0%} of all")
        return
    plain = Column(no_wrap=True)
    columns = (
        TextColumn("{task.description}", table_column=Column(no_wrap=True, max_width=24)),
        BarColumn(bar_width=max(4, min(24, errors.width - 42))),
        TaskProgressColumn(table_column=plain),
        TimeRemainingColumn(compact=True, table_column=plain),
    )
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task("asking rules", total=1.0)
        yield lambda label, share: bar.update(task, completed=share, description=f"asking {label}" if label else "done")
