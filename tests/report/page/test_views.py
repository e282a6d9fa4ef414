from __future__ import annotations

import re

from fedra.report.model import Table
from fedra.report.page_contents import contents_html


def table(key: str, title: str, dataset: str, partition: str = "iid", setting: str = "fixed") -> Table:
    where = {"dataset": dataset, "partition": partition, "setting": setting}
    return Table(key=key, title=title, number=None, caption="", columns=(), rows=(), **where)


def lines(*tables: Table) -> list[str]:
    return [re.sub(r"<[^>]+>", "", line).strip() for line in contents_html(tables).split("</li>") if line]


def test_a_line_for_each_of_the_papers_tables() -> None:
    found = lines(
        table("table3-mnist", "Table 3: MNIST, IID, fixed ratio, quantity-ignorant rules", "mnist"),
        table("table3-cifar10", "Table 3: CIFAR-10, IID, fixed ratio, quantity-ignorant rules", "cifar10"),
        table("figure1-a", "Figure 1: MNIST, IID, dynamic ratio, without attack", "mnist", "iid", "dynamic"),
        table("figure1-b", "Figure 1: MNIST, non-IID, dynamic ratio, without attack", "mnist", "non-iid", "dynamic"),
        table("mnist-non-iid-fixed", "MNIST, non-IID, fixed ratio", "mnist", "non-iid"),
    )
    assert found == [
        "Table 3 MNIST CIFAR-10 IID, fixed ratio, quantity-ignorant rules",
        "Figure 1 MNIST, IID MNIST, non-IID dynamic ratio, without attack",
        "MNIST non-IID, fixed ratio",
    ]


def test_links_lead_to_the_tables_and_say_their_titles() -> None:
    text = contents_html([table("a b", "Table 2: <b>, IID, fixed ratio", "<b>")])
    assert 'href="#a%20b" title="Table 2: &lt;b&gt;, IID, fixed ratio">&lt;b&gt;</a>' in text
