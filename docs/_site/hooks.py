"""What the site needs beyond MkDocs: formulas as MathML, pages made from notebooks and from the command line.

Everything is made while the site is built, so that its pages load nothing from elsewhere.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import re
from functools import cache
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

LOGGER = logging.getLogger("mkdocs.hooks.fedra")
ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "docs" / "notebooks"
COMMAND_LINE = "reference/command-line.md"
_NO_PAGES = ("README", "SECURITY", "CONTRIBUTING", "CHANGELOG", "examples", "benchmarks", "src", "tests", "results")


@cache
def mathml(formula: str, display: str) -> str:
    """Return a LaTeX formula as MathML."""
    # The converter knows neither spacing braces nor these names.
    for name, text in {r"\lVert": r"\|", r"\rVert": r"\|", r"\lvert": "|", r"\rvert": "|"}.items():
        formula = formula.replace(name, text)
    made = convert(re.sub(r"\s+", " ", formula.strip()), display=display)
    if "Error" in made or "<mtext>\\" in made:
        raise ValueError(f"the formula {formula!r} cannot be shown")
    kind = "span" if display == "inline" else "div"
    return f'<{kind} class="formula">{made}</{kind}>'


class _Formula(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:
        return self.md.htmlStash.store(mathml(m.group(1), "inline")), m.start(0), m.end(0)


class _Blocks(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        text = re.sub(
            r"\$\$(.+?)\$\$",
            lambda found: "\n\n" + self.md.htmlStash.store(mathml(found[1], "block")) + "\n\n",
            "\n".join(lines),
            flags=re.DOTALL,
        )
        return text.split("\n")


class Formulas(Extension):
    """$formulas$, $$formulas$$ and :math:`formulas` as MathML, which browsers show without a script."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.preprocessors.register(_Blocks(md), "formula-blocks", 20)
        # Before code spans, which would take the backticks, and after them.
        md.inlinePatterns.register(_Formula(r":math:`([^`]+)`", md), "formula-role", 195)
        md.inlinePatterns.register(_Formula(r"(?<![\\$\w])\$(?![\s$])([^$]+?)(?<!\s)\$(?!\w)", md), "formula", 185)


@event_priority(100)
def on_config(config: Any) -> Any:
    """Add formulas, for pages and docstrings alike."""
    config.markdown_extensions.append(Formulas())
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made, and leave out what they are made from."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=notebook_page(path)))
    files.append(File.generated(config, COMMAND_LINE, content=command_page()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Show as text what links to files of the repository that are no pages."""
    return re.sub(rf"\[([^\]]+)\]\((?:(?:\.\./)+(?:{'|'.join(_NO_PAGES)})[^)]*|studies)\)", r"\1", markdown)


def on_post_build(config: Any) -> None:
    """Look through what was built; a fault is a warning, and thereby an error."""
    spec = importlib.util.spec_from_file_location("links", Path(__file__).with_name("links.py"))
    assert spec is not None
    assert spec.loader is not None
    links = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(links)
    for fault in links.faults(Path(config.site_dir).resolve()):
        LOGGER.warning(fault)


def notebook_page(path: Path) -> str:
    """Return a notebook as Markdown: texts, code, and what it printed."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        printed = "".join("".join(output.get("text", ())) for output in cell["outputs"])
        if printed:
            parts.append(f"```text\n{printed.rstrip()}\n```")
    parts.append(f"*This page is the notebook `docs/notebooks/{path.name}`.*")
    return "\n\n".join(parts)


def command_page() -> str:
    """Return all commands with their options and defaults."""
    import typer

    from fedra.cli import app

    group = typer.main.get_command(app)
    parts = ["# The command line\n\n`fedra --version` and `fedra COMMAND --help` say the same on a terminal."]
    commands = [(name, command) for name, command in group.commands.items()]  # type: ignore[attr-defined]
    for name, command in commands:
        inner = getattr(command, "commands", None)
        commands_of = [(f"{name} {key}", each) for key, each in inner.items()] if inner else [(name, command)]
        if inner:
            parts.append(f"## fedra {name}\n\n{_text(command.help)}")
        parts += [_command(key, each, "###" if inner else "##") for key, each in commands_of]
    return "\n\n".join(parts)


def _command(name: str, command: Any, level: str) -> str:
    rows = ["| option | what it is | default |", "|---|---|---|"]
    arguments = []
    for each in command.params:
        if each.param_type_name == "argument":
            arguments.append(each.human_readable_name.upper())
            rows.append(f"| `{arguments[-1]}` | {_text(getattr(each, 'help', ''))} | |")
        elif each.name != "help":
            shown = each.show_default if isinstance(each.show_default, str) else each.default
            default = (
                "" if shown is None or shown is False or callable(shown) else f"`{getattr(shown, 'value', shown)}`"
            )
            rows.append(f"| {', '.join(f'`{flag}`' for flag in each.opts)} | {_text(each.help)} | {default} |")
    table = "\n".join(rows) if len(rows) > 2 else ""
    usage = " ".join([f"fedra {name}", *arguments, "[OPTIONS]"])
    return f"{level} fedra {name}\n\n{_text(command.help)}\n\n```text\n{usage}\n```\n\n{table}"


def _text(text: str | None) -> str:
    line = " ".join((text or "").split()).replace("<", "&lt;")
    return re.sub(r"([|*$])", r"\\\1", line)
