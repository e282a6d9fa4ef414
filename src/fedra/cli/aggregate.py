"""`fedra aggregate`: one round whose updates are files, larger than memory if need be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Column

from fedra.cli.console import console, errors, errors_reported, interruptible, is_terminal, now_and_then
from fedra.cli.options import AsJson, Engines, Parameters, Quiet, RayAddress
from fedra.cohort import display_id, number_text
from fedra.names import parse_parameter
from fedra.rules import DEFAULT_RULE, Family, Rule, make_rule

if TYPE_CHECKING:
    from fedra.cluster import RayWorkers
    from fedra.updates import UpdateFiles
    from fedra.updates.aggregation import Aggregated

# Called with what is being done, how many bytes of it are, and of how many.
Step = Callable[[str, int, int], None]


def aggregate(
    updates: Annotated[
        list[Path],
        typer.Argument(
            metavar="UPDATE...", help="One for each client: .safetensors, .npz, .npy, or a folder of shards."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The result, a file that ends in .safetensors.")],
    quantities: Annotated[
        Path | None, typer.Option(help="Samples that each client claims: CSV, JSON, or a name and a number per line.")
    ] = None,
    rule: Annotated[str, typer.Option(help="See fedra rules; or module:Class.")] = DEFAULT_RULE,
    rule_param: Parameters = None,
    before: Annotated[str | None, typer.Option(help="nnm, 'bucketing size=4' or arc before the rule.")] = None,
    base: Annotated[
        Path | None, typer.Option(help="The model that clients began with: updates are models, and so is the result.")
    ] = None,
    server_lr: Annotated[float, typer.Option(help="With --base: base + this x update.")] = 1.0,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print what became of each client, and append it to the audit trail.")
    ] = False,
    audit: Annotated[
        Path | None, typer.Option(help="The audit trail; default with --explain: OUT.audit.jsonl.")
    ] = None,
    no_checksum: Annotated[
        bool, typer.Option("--no-checksum", help="No SHA-256 of the files in the record: one reading of them less.")
    ] = False,
    threads: Annotated[int | None, typer.Option(min=1, help="Default: one for each core.")] = None,
    engine: Annotated[Engines, typer.Option(help="This machine, or an existing Ray cluster.")] = Engines.LOCAL,
    ray_address: RayAddress = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="With --engine ray: cores to use; default: all that the cluster has.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Look at the files' headers, and write nothing.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Aggregate the updates of a round from files; the same command goes on where one was killed."""
    with errors_reported():
        from fedra.updates import aggregation, open_updates

        parameters = dict(parse_parameter(text, "--rule-param") for text in rule_param or ())
        chosen = make_rule(rule, before=before, **parameters)
        if base is None and server_lr != 1.0:
            raise ValueError(
                f"--server-lr {server_lr:g} is for models, and there is no --base; give it, or leave it out"
            )
        _check_engine(engine, ray_address, workers, threads)
        claims = _claims(updates, quantities, chosen)
        if dry_run:
            aggregation.check_out(out, updates)
            with open_updates(updates, base) as opened:
                _show_plan(opened, claims, chosen, out, as_json=as_json)
            return
        trail = audit or (out.with_name(f"{out.name}.audit.jsonl") if explain else None)
        with (
            interruptible() as check,
            _workers(engine, ray_address, workers) as elsewhere,
            _progress(quiet=quiet or as_json) as show,
        ):

            def step(what: str, done: int, of: int) -> None:
                check()
                show(what, done, of)

            size = sum(map(_size, updates))
            done = aggregation.aggregate(
                *(updates, claims),
                rule=chosen,
                out=out,
                base=base,
                rate=server_lr,
                checksums=not no_checksum,
                threads=threads,
                progress=lambda number, read, of: step(f"pass {number}", size * read // max(1, of), size),
                hashing=lambda read, of: step("sha256", read, of),
                elsewhere=elsewhere,
            )
        if trail is not None:
            from fedra.audit import AuditLog

            AuditLog(trail).round(done.record)
    if as_json:
        typer.echo(json.dumps(_values(done, trail), indent=2))
    elif not quiet:
        _show(done, trail, explain=explain)
    if done.out is None:
        raise typer.Exit(1)


def _check_engine(engine: Engines, ray_address: str | None, workers: int | None, threads: int | None) -> None:
    """Refuse options of the other engine."""
    for option, value, of in (
        ("--ray-address", ray_address, Engines.RAY),
        ("--workers", workers, Engines.RAY),
        ("--threads", threads, Engines.LOCAL),
    ):
        if value is not None and engine is not of:
            raise ValueError(f"{option} {value} is for --engine {of}; this is --engine {engine}")


@contextmanager
def _workers(engine: Engines, ray_address: str | None, workers: int | None) -> Iterator[RayWorkers | None]:
    """Yield the workers of a cluster; None where this machine does it all."""
    if engine is Engines.LOCAL:
        yield None
        return
    from fedra.cluster import RayWorkers

    with RayWorkers(address=ray_address, workers=workers) as found:
        yield found


def _claims(paths: Sequence[Path], source: Path | None, rule: Rule) -> list[Any]:
    """Return what each client claims; without a file all claim the same, which only some rules can do with."""
    from fedra.updates.quantities import claims_of, read_quantities

    if source is not None:
        return claims_of(paths, read_quantities(source), source)
    if rule.family is not Family.IGNORANT:
        raise ValueError(f"rule {rule.name!r} looks at what clients claim; give --quantities FILE")
    return [1] * len(paths)


def _size(path: Path) -> int:
    files = path.glob("*.safetensors") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _show_plan(opened: UpdateFiles, claims: Sequence[Any], rule: Rule, out: Path, *, as_json: bool) -> None:
    clients = [
        {"client": name, "claims": claim, "problem": fault}
        for name, claim, fault in zip(opened.client_ids, claims, opened.faults, strict=True)
    ]
    form = opened.form
    if as_json:
        plan = {"rule": rule.name, "tensors": len(form.slots), "values": form.dimension, "clients": clients}
        typer.echo(json.dumps({**plan, "out": str(out)}, indent=2, default=str))
        return
    for client in clients:
        problem = f": {client['problem']}" if client["problem"] else ""
        typer.echo(f"{display_id(client['client'])} claims {display_id(client['claims'])}{problem}")
    usable = sum(not fault for fault in opened.faults)
    typer.echo(
        f"{usable} of {len(opened)} clients can be read: {len(form.slots)} tensors, {form.dimension:,} values; "
        f"{rule.name} would write {out}"
    )


def _values(done: Aggregated, trail: Path | None) -> dict[str, Any]:
    return {
        "out": None if done.out is None else str(done.out),
        "rule": done.record.rule,
        "kept": done.record.kept,
        "rejected": done.record.rejected,
        "num_malicious": done.record.num_malicious,
        "note": done.record.note,
        "warnings": list(done.record.warnings),
        "clients": list(done.record.clients),
        "left_out": list(done.left_out),
        "resumed_blocks": done.resumed,
        "audit": None if trail is None else str(trail),
    }


def _show(done: Aggregated, trail: Path | None, *, explain: bool) -> None:
    lines = [done.verdict.table() if explain else str(done.verdict).splitlines()[0]]
    if not explain:
        lines += [
            f"left out: {display_id(client['client'])}, which claims {number_text(client['claimed_quantity'])}: "
            f"{client['reason']}"
            for client in done.record.clients
            if not client["kept"]
        ]
        lines += [f"warning: {warning}" for warning in done.record.warnings]
    if done.left_out:
        lines.append(f"not in the result, since they are not of floats: {', '.join(map(display_id, done.left_out))}")
    if trail is not None:
        lines.append(f"audit: {trail}")
    lines.append(f"wrote {done.out}" if done.out is not None else "no result was written")
    for line in lines:
        console.print(line, soft_wrap=True, markup=False)


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Step]:
    """Yield what to call with how far it is: a bar on a terminal, a line now and then elsewhere."""
    if quiet:
        yield lambda what, done, of: None
        return
    if not is_terminal():
        yield now_and_then(lambda what, done, of: f"{what}: {done / 1e9:.1f} of {of / 1e9:.1f} GB")
        return
    plain = Column(no_wrap=True)
    # So that a line fits into a terminal of 60 columns.
    columns = (
        TextColumn("{task.description}", table_column=plain),
        BarColumn(bar_width=max(4, min(24, errors.width - 52))),
        DownloadColumn(table_column=plain),
        TransferSpeedColumn(table_column=plain),
        TimeRemainingColumn(compact=True, table_column=plain),
    )
    with Progress(*columns, console=errors, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def draw(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what)
            bars.update(tasks[what], completed=done, total=of)

        yield draw
