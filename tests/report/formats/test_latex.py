"""LaTeX of tables: the figures in their places, and whole whatever the labels are."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.formats.making import check_latex, entry, hostile_tables, nasty, row, table

from fedra.report.formats.latex import escaped, table_latex
from fedra.report.model import Column
from fedra.untrusted import one_line

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


@given(nasty | st.text(max_size=40))
def test_a_text_reads_as_it_was(text):
    made = escaped(text)
    tokens = TOKENS.findall(made)
    assert "".join(tokens) == made
    assert "".join(LATEX.get(token, token) for token in tokens) == one_line(text)


def test_an_example():
    assert escaped("50% of a_b & {c}") == r"50\% of a\_b \& \{c\}"


def test_it_is_a_booktabs_table():
    columns = [
        Column(attack="lie", alpha_q=0.0, attack_label="LIE"),
        Column(attack="lie", alpha_q=10.0, attack_label="LIE"),
        Column(attack="none", alpha_q=None, attack_label="No attack"),
    ]
    rows = [
        row("FedRA", entry(97.456, 0.123, 99.2), entry(None, None, 1.0, statuses=("failed",)), None),
        row("RFA", entry(12.0, None, 8.92), entry(5.0), entry(3.0, statuses=("done", "failed"))),
    ]
    text = table_latex(table(rows, columns))
    lines = text.splitlines()
    assert r"\begin{tabular}{lrrr}" in lines
    assert r" & \multicolumn{2}{c}{LIE} & \multicolumn{1}{c}{No attack} \\" in lines
    assert r"\cmidrule(lr){2-3}\cmidrule(lr){4-4}" in lines
    assert r" & $\alpha_q=0$ & $\alpha_q=10$ &  \\" in lines
    fedra = next(line for line in lines if line.startswith("FedRA"))
    assert fedra.split(" & ") == [
        "FedRA",
        r"\textbf{97.46}{\scriptsize\,$\pm$\,0.12} {\scriptsize(99.20)}",
        r"\textit{failed} {\scriptsize(1.00)}",
        r"-- \\",
    ]
    assert lines.index(r"\midrule") == lines.index(fedra) - 1
    assert r"{\scriptsize\ 1/2 seeds}" in text
    check_latex(text, width=4)


@pytest.mark.parametrize(
    ("title", "number", "published", "begins"),
    [
        ("Table 2: MNIST, IID", 2, 99.2, "MNIST, IID. C. In parentheses: published in Table 2."),
        ("Figure 1: MNIST, IID", None, None, "MNIST, IID. C."),
        ("mine: MNIST, IID", None, 99.2, "mine: MNIST, IID. C. In parentheses: published."),
    ],
)
def test_the_caption_leaves_the_number_to_latex(title, number, published, begins):
    text = table_latex(table([row("FedRA", entry(97.0, None, published))], title=title, number=number))
    assert rf"\caption{{{begins}}}" in text.splitlines()


@given(hostile_tables)
def test_hostile_labels_leave_the_table_whole(made):
    check_latex(table_latex(made), width=1 + len(made.columns))
