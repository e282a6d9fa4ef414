"""`fedra rules` and `fedra attacks`: what there is, with parameters."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from fedra.attacks import ATTACKS, QUANTITY_ATTACKS, attack_parameters
from fedra.cli.console import console, print_table
from fedra.rules import RULES, rule_parameters

_SYMBOLS = {
    r"\,": " ",
    r"\|": "‖",
    r"\frac1n": "1/n",
    r"\mu": "μ",
    r"\sigma": "\N{GREEK SMALL LETTER SIGMA}",
    r"\lambda": "λ",
    r"\sum": "Σ",
    r"\to": "→",
    r"\varepsilon": "ε",
    r"\gamma": "\N{GREEK SMALL LETTER GAMMA}",
    r"\alpha": "\N{GREEK SMALL LETTER ALPHA}",
    r"\lfloor": "⌊",
    r"\rfloor": "⌋",
}


def rules() -> None:
    """List the aggregation rules, their families and parameters."""
    lines = [(name, str(rule.family), _first_sentence(rule), rule_parameters(name)) for name, rule in RULES.items()]
    _print_listing("Aggregation rules", ("rule", "family"), lines)


def attacks() -> None:
    """List the attacks on updates and on quantities, and what each must know."""
    lines = []
    for name, attack in ATTACKS.items():
        parameters = attack_parameters(name)
        knows = "own or all" if "knowledge" in parameters else str(attack().knowledge)
        lines.append((name, knows, _first_sentence(attack), parameters))
    _print_listing("Update attacks", ("attack", "knows"), lines)
    table = Table("attack", "knows", "what is claimed", "flag", title="Quantity attacks")
    for name, quantity in QUANTITY_ATTACKS.items():
        flags = [f"--{field.name.replace('_', '-')}" for field in fields(quantity)]  # type: ignore[arg-type]
        flag = flags[0] if flags else f"--quantity-attack {name}"
        table.add_row(name, quantity.knowledge, _first_sentence(quantity), flag)
    print_table(table)
    console.print(
        "own: the model and the attacker's own clients; all: also the round's honest updates and claims; rule: also "
        "the rule and what it remembers. Each update attack goes with a quantity attack; without a flag the truth is "
        "claimed."
    )


def _first_sentence(kind: type[Any]) -> str:
    """Return the first line of a docstring with its formula as text."""
    line = (kind.__doc__ or "").strip().splitlines()[0].replace(":math:", "").replace("`", "")
    line = re.sub(r"\\(?:operatorname|mathrm)\{(\w+)\}", r"\1", line)
    for symbol, text in _SYMBOLS.items():
        line = line.replace(symbol, text)
    return escape(line.replace("\\", ""))


def _print_listing(title: str, heads: tuple[str, str], lines: list[tuple[str, str, str, dict[str, Any]]]) -> None:
    """Print paragraphs with a line for each parameter on a terminal, elsewhere one line for each name."""
    if console.is_terminal:
        console.print(f"[bold]{title}[/]")
        for name, kind, what, parameters in lines:
            console.print(f"\n[bold]{name}[/]  [dim]{kind}[/]")
            console.print(Padding(what, (0, 0, 0, 2)))
            for each in _parameters(parameters):
                console.print(Padding(each, (0, 0, 0, 6)))
        console.print()
        return
    table = Table(*heads, "what it is", "parameters")
    for name, kind, what, parameters in lines:
        table.add_row(name, kind, what, ", ".join(_parameters(parameters)) or "-")
    print_table(table)


def _parameters(parameters: dict[str, Any]) -> list[str]:
    return [escape(f"{name}={default!r}") for name, default in parameters.items()]
