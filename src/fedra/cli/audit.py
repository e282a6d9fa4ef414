"""`fedra audit`: who was left out of a deployment's rounds, how often, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedra.audit.command import audit as summarised
from fedra.cli.console import console, errors, errors_reported


def audit(
    file: Annotated[Path, typer.Argument(help="The audit trail that a strategy wrote, JSON Lines.")],
    html: Annotated[Path | None, typer.Option(help="Write a page: summary, charts, every client and round.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Print each round as it is written, until Ctrl-C.")] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Show the page of a running deployment on 127.0.0.1, until Ctrl-C.")
    ] = False,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Of --serve; default: a free one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Summarise an audit trail: who was dropped how often, and why."""
    with errors_reported():
        given = [
            f"--{flag}" for flag, on in (("follow", follow), ("serve", serve), ("html", html), ("json", as_json)) if on
        ]
        if (follow or serve) and len(given) > 1:
            raise ValueError(f"{' and '.join(given)} do not go together; give one of them")
        if port is not None and not serve:
            raise ValueError(f"--port {port} is for --serve; add --serve")
        if follow:
            _follow(file)
        elif serve:
            _serve(file, port or 0)
        else:
            typer.echo(summarised(file, html, as_json=as_json))


def _follow(file: Path) -> None:
    from fedra.audit.following import Follower
    from fedra.audit.terminal import follow

    try:
        for line in follow(Follower(file)):
            console.print(line, soft_wrap=True, markup=False)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _serve(file: Path, port: int) -> None:
    from fedra.audit.serving import serve

    with serve(file, port=port) as server:
        errors.print(f"the page is at {server.address} (Ctrl-C ends it)", soft_wrap=True, markup=False)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            raise typer.Exit(0) from None
