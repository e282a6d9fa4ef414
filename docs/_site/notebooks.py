"""Run the notebooks and keep what their cells print.

python docs/_site/notebooks.py
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def executed(path: Path) -> dict[str, Any]:
    """Return a notebook with what its cells print, run in the working directory; only printing is looked at."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cell for cell in notebook["cells"] if cell["cell_type"] == "code"):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), f"{path.name}, cell {number + 1}", "exec"), names)
        lines = printed.getvalue().splitlines(keepends=True)
        # What Ray says of its own processes is nothing that the notebook prints.
        lines = [line for line in lines if "(raylet)" not in line]
        cell["execution_count"] = number + 1
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
    return notebook


def main() -> None:
    """Run all of them."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(os.fspath(folder)):
            notebook = executed(path)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
