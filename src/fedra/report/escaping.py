"""Texts that others chose, made harmless in Markdown and LaTeX."""

from __future__ import annotations

import re

from fedra.untrusted import one_line

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "{''}",
    "`": r"\`{}",
    "\N{MINUS SIGN}": "$-$",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
}


def markdown(text: str) -> str:
    """Return a text as Markdown that shows it letter for letter, also in a table."""
    escaped = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]()#+!|~$])", r"\\\1", escaped)


def latex(text: str) -> str:
    """Return a text as LaTeX that prints it letter for letter."""
    # A bracket after a line break would be taken for its length.
    return "".join(_LATEX.get(c, c) for c in one_line(text)).replace("[", "{[}").replace("]", "{]}")
