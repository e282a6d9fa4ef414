"""`fedra rules` and `fedra attacks`: what there is, with parameters."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from rich.markup import escape
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
    table = Table("rule", "family", "what it is", "parameters", title="Aggregation rules")
    for name, rule in RULES.items():
        table.add_row(name, str(rule.family), _first_sentence(rule), _parameters(rule_parameters(name)))
    print_table(table)


def attacks() -> None:
    """List the attacks on updates and on quantities, and what each must know."""
    table = Table("attack", "knows", "what it is", "parameters", title="Update attacks")
    for name, attack in ATTACKS.items():
        parameters = attack_parameters(name)
        knows = "own or all" if "knowledge" in parameters else str(attack().knowledge)
        table.add_row(name, knows, _first_sentence(attack), _parameters(parameters))
    print_table(table)
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


def _parameters(parameters: dict[str, Any]) -> str:
    return escape(", ".join(f"{name}={default!r}" for name, default in parameters.items())) or "-"
