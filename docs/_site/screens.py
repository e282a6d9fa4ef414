"""Take the picture of docs/assess.md: the page that `fedra assess` writes for eight silos, in Chromium.

python docs/_site/screens.py
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from typer.testing import CliRunner

from fedra.cli import app

IMAGES = Path(__file__).parents[1] / "images"
SILOS = "5200,4100,900,800,700,300,120,60"


def main() -> None:
    """Write it."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "exposed.html"
        arguments = [
            "assess",
            "--quantities",
            SILOS,
            "--num-malicious",
            "1",
            "--rounds",
            "200",
            "--html",
            str(page_file),
        ]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = chromium.new_page(viewport={"width": 1000, "height": 1250}, color_scheme="light")
        page.goto(page_file.as_uri())
        page.wait_for_selector("html[data-ready]")
        page.screenshot(path=str(IMAGES / "assess.png"))
        chromium.close()


if __name__ == "__main__":
    main()
