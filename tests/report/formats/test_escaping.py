"""Hostile labels come out letter for letter, and break neither a Markdown table nor LaTeX."""

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from fedra.report.escaping import latex, markdown, one_line

LATEX = {
    r"\textbackslash{}": "\\",
    r"\textasciicircum{}": "^",
    r"\textasciitilde{}": "~",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    r"\`{}": "`",
    r"$\pm$": "±",
    "$-$": "\N{MINUS SIGN}",
    "{''}": '"',
    "{[}": "[",
    "{]}": "]",
    **{f"\\{letter}": letter for letter in "{}$&#%_"},
}
TOKENS = re.compile("|".join(re.escape(token) for token in sorted(LATEX, key=len, reverse=True)) + r"|[^\\{}$&#%_^~]")
LETTERS = [*"\\{}$&#%_^~<>|\"'`[]()*!+-= \n\r\tab±\u2028\u202e\x00é", "\ud800"]
nasty = st.text(st.sampled_from(LETTERS), max_size=40)


@given(nasty | st.text(max_size=40))
def test_latex_reads_as_the_text(text):
    escaped = latex(text)
    tokens = TOKENS.findall(escaped)
    assert "".join(tokens) == escaped
    assert "".join(LATEX.get(token, token) for token in tokens) == one_line(text)


@given(nasty | st.text(max_size=40))
def test_markdown_reads_as_the_text(text):
    escaped = markdown(text)
    assert html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", escaped)) == one_line(text)
    assert not re.search(r"(?<!\\)(?:\\\\)*[|`*_\[\]~$]", escaped)
    assert not re.search(r"[<>\n\r]", escaped)


@given(nasty)
def test_a_line_is_one_line(text):
    line = one_line(text)
    assert line.splitlines() == ([line] if line else [])
    line.encode("utf-8")
    assert one_line(line) == line


def test_examples():
    assert latex("50% of a_b & {c}") == r"50\% of a\_b \& \{c\}"
    assert markdown("a|b <img> *c*") == r"a\|b &lt;img&gt; \*c\*"
