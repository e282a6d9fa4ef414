"""`fedra demo`: the paper's point on embedded data, in a minute."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from fedra.cli.console import console, errors_reported, print_table
from fedra.cli.progress import progress_bar
from fedra.data import load_dataset
from fedra.files import write_at

if TYPE_CHECKING:
    from fedra.simulation import SimulationResult

_RULES = {"FedAdam": "fedavg", "multi-krum": "multi-krum", "RFA": "rfa", "FedRA": "fedra"}
_ATTACKS = ("none", "lie", "optimize")


def demo(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each run.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Draws the malicious clients, and so what they claim.")] = 1,
    out: Annotated[Path, typer.Option(help="Picture of the accuracy curves.")] = Path("fedra-demo.png"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Digits, four rules, two attacks whose clients also claim too much data: who is captured?"""
    console.print(
        "Handwritten digits spread over 140 clients with long-tailed quantities; 50 of them a round, one in ten "
        "malicious.\nMalicious clients send a poisoned update [bold]and[/] claim far more data than they have "
        "(alpha_q = 10).\n"
    )
    from fedra.simulation import SimulationConfig, simulate

    dataset = load_dataset("digits")
    results: dict[tuple[str, str], SimulationResult] = {}
    with errors_reported():
        for attack in _ATTACKS:
            for label, rule in _RULES.items():
                config = SimulationConfig(
                    dataset="digits",
                    rule=rule,
                    attack=attack,
                    alpha_q=None if attack == "none" else 10,
                    setting="fixed",
                    rounds=rounds,
                    eval_every=max(1, rounds // 40),
                    seed=seed,
                )
                with progress_bar(f"{label} / {attack}", rounds, quiet=quiet) as observers:
                    results[label, attack] = simulate(config, dataset=dataset, observers=observers)
    print_table(_table(results))
    console.print(_claims(results, seed), soft_wrap=True)
    with errors_reported():
        _plot(results, out)
    console.print(f"accuracy curves: [bold]{escape(str(out))}[/]", soft_wrap=True)


def _table(results: dict[tuple[str, str], SimulationResult]) -> Table:
    table = Table("rule", *(f"{attack}, %" for attack in _ATTACKS), "attackers kept", title="Test accuracy, last round")
    for label in _RULES:
        accuracies = [results[label, attack].final_accuracy for attack in _ATTACKS]
        cells = [f"[{'green' if value > 80 else 'red'}]{value:.1f}[/]" for value in accuracies]
        attacked = [results[label, attack].rounds for attack in _ATTACKS[1:]]
        missed, malicious = (sum(int(frame[key].sum()) for frame in attacked) for key in ("missed", "num_malicious"))
        table.add_row(label, *cells, f"{missed} of {malicious}")
    return table


def _claims(results: dict[tuple[str, str], SimulationResult], seed: int) -> str:
    clients = results["FedRA", "lie"].clients
    malicious = clients[clients["malicious"]]
    true, claimed = malicious["true_quantity"].median(), malicious["claimed_quantity"].max()
    return (
        f"Seed {seed}: malicious clients hold {true:,.0f} samples (median) and claim {claimed:,.0f} each.\n"
        "The claim depends on which clients are drawn, and the damage on the claim: try another --seed."
    )


def _plot(results: dict[tuple[str, str], SimulationResult], out: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    for place, attack in zip(figure.subplots(1, len(_ATTACKS), sharey=True), _ATTACKS, strict=True):
        for label in _RULES:
            measured = results[label, attack].rounds.dropna(subset=["accuracy"])
            width = 2.4 if label == "FedRA" else 1.4
            place.plot(measured["round"] + 1, measured["accuracy"], label=label, linewidth=width)
        place.set_title("no attack" if attack == "none" else f"{attack}, alpha_q = 10")
        place.set_xlabel("round")
        place.set_ylim(0, 100)
        place.grid(alpha=0.3)
        place.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("test accuracy, %")
    figure.axes[0].legend(frameon=False, loc="lower right")
    picture = io.BytesIO()
    figure.savefig(picture, dpi=150, format=out.suffix.removeprefix(".") or None)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_at(out, picture.getvalue())
