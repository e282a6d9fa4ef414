"""Look at the wheel and the source archive in dist/, and use the wheel as a user would: in an environment of its own.

python .ci/wheel.py
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
IN_THE_WHEEL = (
    "fedra/py.typed",
    "fedra/pages/assets/base.css",
    "fedra/audit/page/assets/page.js",
    "fedra/report/page/templates/report.html",
)
IN_THE_ARCHIVE = (
    "pyproject.toml",
    "src/fedra/__init__.py",
    "tests/conftest.py",
    "docs/index.md",
    "LICENSE",
    "CITATION.cff",
)


def built(pattern: str) -> Path:
    """Return the one file in dist/ that this build made."""
    found = sorted((ROOT / "dist").glob(pattern))
    if len(found) != 1:
        sys.exit(f"dist/ has {len(found)} files {pattern}, one is expected; remove dist/ and build again")
    return found[0]


def check_contents(wheel: Path, archive: Path) -> None:
    """Exit where something that must be inside is not, or the other way round."""
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
    missing = [name for name in IN_THE_WHEEL if name not in names]
    strange = [name for name in names if not re.match(r"fedra(/|-[\d.]+\w*\.dist-info/)", name)]
    with tarfile.open(archive) as packed:
        inside = {name.partition("/")[2] for name in packed.getnames()}
    missing += [name for name in IN_THE_ARCHIVE if name not in inside]
    if missing or strange:
        sys.exit(f"missing: {missing}; not to be in the wheel: {strange}")


def main() -> None:
    """Check, install, use."""
    wheel, archive = built("*.whl"), built("*.tar.gz")
    check_contents(wheel, archive)
    (snippet,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")

        def run(*command: str) -> str:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
            return done.stdout

        def install(what: str) -> None:
            run(python, "-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt"), what)

        install(str(wheel))
        printed = run(python, "-I", "-c", snippet)
        if "claims 9,000 samples" not in printed:
            sys.exit(f"the snippet of docs/index.md prints something else:\n{printed}")
        install(f"{wheel}[cli]")
        fedra = str(Path(folder) / "bin" / "fedra")
        version = run(fedra, "--version").strip()
        if f"-{version.removeprefix('fedra ')}-" not in wheel.name:
            sys.exit(f"{wheel.name} calls itself {version}")
        (Path(folder) / "audit.jsonl").touch()
        run(fedra, "rules")
        run(fedra, "audit", "audit.jsonl", "--html", "audit.html")
    print(f"{wheel.name} and {archive.name} are whole; {version} installs alone and answers")


if __name__ == "__main__":
    main()
