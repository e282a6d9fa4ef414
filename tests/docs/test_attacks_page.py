"""docs/attacks.md names what is there, and its snippet runs."""

from __future__ import annotations

import re
from pathlib import Path

from fedra.attacks import ATTACKS, QUANTITY_ATTACKS, attack_parameters

PAGE = (Path(__file__).parents[2] / "docs" / "attacks.md").read_text(encoding="utf-8")


def section(title: str) -> dict[str, str]:
    text = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `([a-z-]+)` \| ([a-z ]+) \|", text, re.MULTILINE))


def test_the_table_of_update_attacks_is_the_registry() -> None:
    expected = {
        name: "own or all" if "knowledge" in attack_parameters(name) else attack().knowledge
        for name, attack in ATTACKS.items()
    }
    assert section("Update attacks") == expected
    assert list(section("Update attacks")) == list(ATTACKS)


def test_the_table_of_quantity_attacks_is_the_registry() -> None:
    assert section("Quantity attacks") == {name: attack.knowledge for name, attack in QUANTITY_ATTACKS.items()}


def test_the_snippet_runs(capsys: object) -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(snippet, "attacks.md", "exec"), {})
