"""The snippets of docs/data.md run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fedra.data import DATASETS, Dataset

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def test_every_python_snippet_runs() -> None:
    snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(snippets) == 4
    names: dict[str, Any] = {}
    for snippet in snippets:
        exec(snippet, names)
    assert isinstance(names["load"](None), Dataset)
    assert isinstance(names["spec"].load(None), Dataset)
    for name in DATASETS:
        assert f"| `{name}` |" in PAGE.read_text(encoding="utf-8")
