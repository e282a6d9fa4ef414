"""Tables made by hand, and labels that mean harm."""

import re

from hypothesis import strategies as st

from fedra.report.model import Column, Entry, Row, Table

LETTERS = [*"\\{}$&#%_^~<>|\"'`[]()*!+-= \n\r\tab±\u2028\u202e\x00é", "\ud800"]
nasty = st.text(st.sampled_from(LETTERS), max_size=40)
labels = st.text(st.sampled_from(list("\\{}$&#%_^~<>|\"'`[]\n ab")), min_size=1, max_size=20)
hostile_tables = st.builds(
    lambda rows, attacks, title: table(
        [row(name, *[entry(1.0, rule=name)] * len(attacks)) for name in rows],
        [Column(attack=name, alpha_q=None, attack_label=name) for name in attacks],
        title=title,
        caption=title,
    ),
    rows=st.lists(labels, min_size=1, max_size=3),
    attacks=st.lists(labels, min_size=1, max_size=3),
    title=labels,
)


def entry(mean=None, std=None, published=None, rule="fedra", statuses=("done",), **others):
    runs = tuple(f"run{number}" for number in range(len(statuses)))
    return Entry(mean=mean, std=std, runs=runs, statuses=statuses, published=published, rule=rule, **others)


def table(rows, columns=None, **others):
    width = len(rows[0].entries)
    columns = columns or [Column(attack=f"a{n}", alpha_q=10.0, attack_label=f"A{n}") for n in range(width)]
    values = {"key": "t", "title": "T", "number": None, "dataset": "mnist", "partition": "iid", "setting": "fixed"}
    return Table(**{**values, "caption": "C.", **others}, columns=tuple(columns), rows=tuple(rows))


def row(label, *entries, family="quantity-robust"):
    return Row(label=label, family=family, rule=label, entries=entries)


def check_latex(text, *, width):
    """Every group is closed, every environment ends, and every line of the table has as many cells as the others."""
    bare = re.sub(r"\\[\\{}$&#%_]", "", text.replace("\\\\\n", "\n"))
    depth = 0
    for letter in bare:
        depth += (letter == "{") - (letter == "}")
        assert depth >= 0
    assert depth == 0
    assert bare.count("$") % 2 == 0
    opened = re.findall(r"\\begin\{(\w+)\}", text)
    assert opened == re.findall(r"\\end\{(\w+)\}", text)[::-1]
    rows = [line for line in text.splitlines() if line.endswith(r" \\")]
    spans = [re.sub(r"\\multicolumn\{(\d+)\}", lambda found: "&" * (int(found[1]) - 1), line) for line in rows]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in spans} == {width - 1}
