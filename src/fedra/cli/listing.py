"""`fedra rules` and `fedra attacks`: what there is, with parameters."""

from __future__ import annotations

import re
from typing import Any

from rich.markup import escape
from rich.table import Table

from fedra.attacks import ATTACKS, attack_parameters
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
}


def rules() -> None:
    """List the aggregation rules, their families and parameters."""
    table = Table("rule", "family", "what it is", "parameters", title="Aggregation rules")
    for name, rule in RULES.items():
        table.add_row(name, str(rule.family), _first_sentence(rule), _parameters(rule_parameters(name)))
    print_table(table)


def attacks() -> None:
    """List the attacks on updates; --alpha-q or --claimed-quantity adds the attack on quantities."""
    table = Table("attack", "what it is", "parameters", title="Update attacks")
    for name, attack in ATTACKS.items():
        table.add_row(name, _first_sentence(attack), _parameters(attack_parameters(name)))
    print_table(table)
    console.print(
        "Each goes with a quantity attack: [bold]--alpha-q A[/] claims mean + A std of the malicious clients' true "
        "quantities, [bold]--claimed-quantity Q[/] claims Q, neither claims the truth."
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
