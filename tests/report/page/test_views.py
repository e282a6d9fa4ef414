from __future__ import annotations

from tests.report import synthetic

from fedra.report import ReportData
from fedra.report.model import Table
from fedra.report.page.views import ContentsLine, contents, difference_text

MINUS = "\N{MINUS SIGN}"
DATA = ReportData.of(synthetic.results())


def table(key: str, title: str, dataset: str, partition: str = "iid", setting: str = "fixed") -> Table:
    group = title.rpartition(": ")[0]
    where = {"dataset": dataset, "partition": partition, "setting": setting}
    return Table(key=key, title=title, group=group, caption="", columns=(), rows=(), **where)


def text(line: ContentsLine) -> str:
    return " ".join(filter(None, [line.name, *(link.text for link in line.links), line.shared]))


def test_a_line_for_each_of_the_papers_tables() -> None:
    lines = [
        table("table3-mnist", "Table 3: MNIST, IID, fixed ratio, quantity-ignorant rules", "mnist"),
        table("table3-cifar10", "Table 3: CIFAR-10, IID, fixed ratio, quantity-ignorant rules", "cifar10"),
        table("figure1-a", "Figure 1: MNIST, IID, dynamic ratio, without attack", "mnist", "iid", "dynamic"),
        table("figure1-b", "Figure 1: MNIST, non-IID, dynamic ratio, without attack", "mnist", "non-iid", "dynamic"),
        table("mnist-non-iid-fixed", "MNIST, non-IID, fixed ratio", "mnist", "non-iid"),
    ]
    assert [text(line) for line in contents(lines, DATA)] == [
        "Table 3 MNIST CIFAR-10 IID, fixed ratio, quantity-ignorant rules",
        "Figure 1 MNIST, IID MNIST, non-IID dynamic ratio, without attack",
        "MNIST non-IID, fixed ratio",
    ]


def test_a_hostile_group_does_not_hide_the_rest() -> None:
    (line,) = contents([table("k", "a: b: MNIST, IID, fixed ratio", "mnist")], DATA)
    assert (line.name, [link.text for link in line.links], line.shared) == ("a: b", ["MNIST"], "IID, fixed ratio")


def test_differences_as_typographers_set_them() -> None:
    texts = [difference_text(value) for value in (1.234, -1.234, 0.001, -0.001)]
    assert texts == ["+1.23", f"{MINUS}1.23", "±0.00", "±0.00"]
