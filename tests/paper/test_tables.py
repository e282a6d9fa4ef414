"""Tables: figures equal to what one computes by hand, rows and columns as the paper has them, nothing mixed up."""

import dataclasses
import json
import statistics

import pandas as pd
import pytest
from tests.paper.paper_results import accuracy_of, grid_cells, paper_data, paper_results
from tests.report.formats.making import check_latex

from fedra.experiments import Results
from fedra.paper import paper_tables, read_paper
from fedra.report import ReportData
from fedra.report.formats.latex import table_latex
from fedra.report.formats.markdown import table_markdown
from fedra.report.model import table_values

EVEN_ROWS = ["Best QI", "FedAdam", "Norm-Bound", "RFA", "Truncate", "FedRA"]
ODD_ROWS = ["Krum", "Median", "Trimean", "mKrum", "Bulyan"]
IGNORANT = ["krum", "median", "trimmed-mean", "multi-krum", "bulyan"]
ATTACKS = ["label-flip", "lie", "optimize"]


@pytest.fixture(scope="module")
def tables(data):
    return {table.key: table for table in paper_tables(data)}


def by_hand(cells, *, rule, attack, alpha_q, dataset="mnist", partition="iid", setting="fixed"):
    place = (dataset, partition, setting, rule, attack, alpha_q)
    found = [
        cell
        for cell in cells
        if (cell.dataset, cell.partition, cell.setting, cell.rule, cell.attack, cell.alpha_q) == place
    ]
    return [accuracy_of(cell) for cell in sorted(found, key=lambda cell: cell.seed)]


def test_which_tables_there_are(tables):
    numbered = [f"table{number}-{dataset}" for number in range(2, 8) for dataset in ("mnist", "huffpost")]
    others = [
        "mnist-non-iid-fixed",
        "figure1-mnist-iid-dynamic",
        "figure1-mnist-non-iid-dynamic",
        "figure1-huffpost-iid-dynamic",
        "figure1-huffpost-non-iid-dynamic",
        "figure5-mnist",
        "figure4-huffpost",
    ]
    assert list(tables) == numbered + others


def test_rows_and_columns_are_the_papers(tables):
    for number, (even, odd) in {2: (2, 3), 4: (4, 5), 6: (6, 7)}.items():
        compared, ignorant = tables[f"table{even}-mnist"], tables[f"table{odd}-mnist"]
        assert (compared.number, ignorant.number) == (number, number + 1)
        assert [row.label for row in compared.rows] == EVEN_ROWS
        assert [row.label for row in ignorant.rows] == ODD_ROWS
        assert [(c.attack, c.alpha_q) for c in compared.columns] == [(a, q) for a in ATTACKS for q in (0.0, 10.0)]
        assert [(c.attack, c.alpha_q) for c in ignorant.columns] == [(attack, None) for attack in ATTACKS]
        assert [c.attack_label for c in ignorant.columns] == ["Label Flip", "LIE", "Optimize"]


def test_means_and_spreads_are_over_seeds(tables, cells):
    table = tables["table2-mnist"]
    for row, rule in zip(table.rows[1:], ["fedavg", "norm-bound", "rfa", "truncate", "fedra"], strict=True):
        for column, entry in zip(table.columns, row.entries, strict=True):
            values = by_hand(cells, rule=rule, attack=column.attack, alpha_q=column.alpha_q)
            assert len(values) == 3
            assert entry.mean == pytest.approx(sum(values) / 3)
            assert entry.std == pytest.approx(statistics.stdev(values))
            assert (entry.rule, len(entry.runs)) == (rule, 3)


def test_published_figures_stand_beside_ours(tables):
    fedavg = tables["table2-mnist"].rows[1].entries
    assert [entry.published for entry in fedavg] == [98.68, 90.38, 92.52, 16.09, 9.82, 8.92]
    for entry in fedavg:
        assert entry.difference == pytest.approx(entry.mean - entry.published)
    published = {
        (p.rule, p.attack): p.accuracy for p in read_paper().accuracies if (p.table, p.dataset) == (7, "mnist")
    }
    for row, rule in zip(tables["table7-mnist"].rows, IGNORANT, strict=True):
        assert [entry.published for entry in row.entries] == [published[rule, attack] for attack in ATTACKS]


def test_best_quantity_ignorant_is_sought_in_each_column(tables, cells):
    table = tables["table4-mnist"]
    for column, entry in zip(table.columns, table.rows[0].entries, strict=True):
        means = {
            rule: statistics.fmean(
                by_hand(cells, rule=rule, attack=column.attack, alpha_q=column.alpha_q, setting="dynamic")
            )
            for rule in IGNORANT
        }
        assert entry.rule == max(means, key=means.get)
        assert entry.mean == pytest.approx(max(means.values()))
    published = {
        (p.attack, p.alpha_q): p.accuracy
        for p in read_paper().accuracies
        if (p.table, p.dataset, p.rule) == (4, "mnist", "best-quantity-ignorant")
    }
    assert [e.published for e in table.rows[0].entries] == [published[c.attack, c.alpha_q] for c in table.columns]


def test_a_stand_in_has_no_published_figures_and_says_so(tables):
    for key, table in tables.items():
        if "huffpost" in key:
            assert all(entry.published is None for row in table.rows for entry in row.entries if entry)
    assert "The paper has MIND in the place of HuffPost" in tables["table2-huffpost"].caption
    assert "HuffPost" in tables["table2-huffpost"].title
    assert "MIND" not in tables["table2-mnist"].caption


def test_captions_have_the_protocol(tables, cells):
    config = next(cell.config for cell in cells if (cell.dataset, cell.partition) == ("mnist", "iid"))
    caption = tables["table2-mnist"].caption
    assert f"{config.rounds:,} rounds" in caption
    assert f"learning rate {config.learning_rate:g}" in caption
    assert f"capped at {config.max_quantity}" in caption
    assert "3 seeds" in caption


def test_figures_have_tables_of_their_own(tables):
    clean = tables["figure1-mnist-iid-dynamic"]
    assert [(c.attack, c.alpha_q, c.attack_label) for c in clean.columns] == [("none", None, "No attack")]
    assert "Uniform" in {row.label for row in clean.rows}
    assert [row.label for row in tables["figure5-mnist"].rows] == [
        "FedRA with MCNE",
        "FedRA, under-estimated",
        "FedRA, over-estimated",
    ]
    assert tables["figure5-mnist"].number is None


def joined(frame, results):
    return ReportData.of(Results(cells=frame, curves=results.curves, scores=results.scores))


def only(cells, **wanted):
    return [cell for cell in cells if all(getattr(cell, key) in values for key, values in wanted.items())]


def test_a_row_is_there_if_any_of_its_rules_is(cells):
    chosen = only(cells, dataset=["mnist"], setting=["fixed"], partition=["iid"], rule=["median", "fedra"])
    tables = {table.key: table for table in paper_tables(paper_data(chosen))}
    assert [row.label for row in tables["table2-mnist"].rows] == ["Best QI", "FedRA"]
    assert {entry.rule for entry in tables["table2-mnist"].rows[0].entries} == {"median"}
    assert [row.label for row in tables["table3-mnist"].rows] == ["Median"]


def test_no_comparison_of_the_best_with_nobody(cells):
    chosen = only(cells, dataset=["mnist"], setting=["fixed"], partition=["iid"], rule=["median"])
    assert [table.key for table in paper_tables(paper_data(chosen))] == ["table3-mnist"]


def test_failed_and_missing_runs_stay_visible(cells):
    chosen = only(cells, dataset=["mnist"], setting=["fixed"], partition=["iid"], attack=["lie"], alpha_q=[10.0])
    bad = {cell.run: "failed" for cell in chosen if cell.rule == "fedra"}
    half = {cell.run: "missing" for cell in chosen if cell.rule == "rfa" and cell.seed > 0}
    (table,) = [t for t in paper_tables(paper_data(chosen, statuses={**bad, **half})) if t.number == 2]
    entries = {row.label: row.entries[0] for row in table.rows}
    assert (entries["FedRA"].mean, entries["FedRA"].std, len(entries["FedRA"].runs)) == (None, None, 3)
    assert entries["FedRA"].difference is None
    assert entries["FedRA"].published == 99.20
    assert (entries["RFA"].std, len(entries["RFA"].runs)) == (None, 3)
    assert entries["RFA"].mean == pytest.approx(by_hand(chosen, rule="rfa", attack="lie", alpha_q=10.0)[0])


def test_grids_of_the_paper_are_pooled_and_a_shared_run_counts_once(cells):
    chosen = only(cells, dataset=["mnist"], setting=["fixed"], partition=["iid"], attack=["lie"])
    first, second = paper_results(chosen), paper_results(only(chosen, rule=["fedra"]), grid="paper-quick-y")
    both = Results(
        cells=pd.concat([first.cells, second.cells], ignore_index=True), curves=first.curves, scores=first.scores
    )
    assert paper_tables(ReportData.of(both)) == paper_tables(ReportData.of(first))


def test_of_two_runs_in_one_place_the_last_that_is_done_counts(cells):
    chosen = only(
        cells, dataset=["mnist"], setting=["fixed"], partition=["iid"], attack=["lie"], rule=["fedra"], seed=[0]
    )
    longer = [dataclasses.replace(cell, run=f"{cell.run}-longer") for cell in chosen]
    unfinished = [dataclasses.replace(cell, run=f"{cell.run}-longest") for cell in chosen]
    parts = [
        paper_results(chosen),
        paper_results(longer, grid="paper-b"),
        paper_results(unfinished, grid="paper-c", statuses={cell.run: "unfinished" for cell in unfinished}),
    ]
    frame = pd.concat([part.cells for part in parts], ignore_index=True)
    (table,) = paper_tables(joined(frame, parts[0]))
    assert [entry.runs for entry in table.rows[0].entries] == [(cell.run,) for cell in longer]


def own_rule(cells, label, *, looks):
    """The cells of FedRA, under another name and class."""
    made = []
    for cell in only(cells, dataset=["mnist"], setting=["fixed"], partition=["iid"], rule=["fedra"]):
        config = {**cell.config.to_dict(), "rule": "nowhere_to_be_found:Mine"}
        if not looks:
            config["alpha_q"] = None
        made.append((dataclasses.replace(cell, rule=label, run=f"{label}-{cell.run}"), config))
    results = paper_results([cell for cell, _ in made])
    texts = [json.dumps({k: v for k, v in config.items() if v is not None}) for _, config in made]
    return results.cells.assign(config=pd.array(texts, dtype="string"))


@pytest.mark.parametrize(("looks", "in_odd"), [(True, False), (False, True)])
def test_an_own_rule_is_the_last_row_without_its_code(cells, looks, in_odd):
    paper = paper_results(only(cells, dataset=["mnist"], setting=["fixed"], partition=["iid"]))
    frame = pd.concat([own_rule(cells, "mine", looks=looks), paper.cells], ignore_index=True)
    tables = {t.key: t for t in paper_tables(joined(frame, paper))}
    assert [row.label for row in tables["table2-mnist"].rows] == [*EVEN_ROWS, "mine"]
    assert all(entry.published is None for entry in tables["table2-mnist"].rows[-1].entries)
    assert {entry.rule for entry in tables["table2-mnist"].rows[0].entries} <= set(IGNORANT)
    assert ([row.label for row in tables["table3-mnist"].rows] == [*ODD_ROWS, "mine"]) is in_odd


def test_a_rule_that_the_paper_has_in_a_figure_only_can_be_added_to_its_tables():
    added = grid_cells(targets=("table2", "figure1"), rules=("fedavg",), added_rules=("uniform",))
    tables = {table.key: table for table in paper_tables(paper_data(added))}
    assert "uniform" in {cell.rule for cell in added}
    assert len(tables["table2-mnist"].rows) == 2


def test_quantities_are_columns_of_what_was_run():
    cells = grid_cells(targets=("table2",), alpha_q=(0.0, 1.0, 5.0), rules=("fedra",))
    (table,) = paper_tables(paper_data(cells))
    assert [column.alpha_q for column in table.columns] == [0.0, 1.0, 5.0] * 3
    assert [entry.published for entry in table.rows[0].entries][:3] == [99.30, 99.25, 99.25]


def test_the_best_of_several_is_named(tables):
    first = next(line for line in table_markdown(tables["table2-mnist"]).splitlines() if "Best QI" in line)
    assert tables["table2-mnist"].rows[0].several
    for place, found in zip(first.split("|")[2:-1], tables["table2-mnist"].rows[0].entries, strict=True):
        names = {"multi-krum": "mKrum", "trimmed-mean": "Trimean"}
        assert place.strip().endswith(f") {names.get(found.rule, found.rule.title())}")


def test_nothing_done_is_still_a_table(cells):
    chosen = only(cells, dataset=["mnist"], setting=["fixed"], partition=["iid"])
    for made in paper_tables(paper_data(chosen, statuses={cell.run: "unfinished" for cell in chosen})):
        assert "unfinished" in table_markdown(made)
        check_latex(table_latex(made), width=1 + len(made.columns))


def test_entries_as_plain_values(tables):
    values = table_values(tables["table2-mnist"])
    assert len(values) == 6 * 6
    entry = tables["table2-mnist"].rows[1].entries[0]
    assert values[6] == {
        "table": 2,
        "dataset": "mnist",
        "partition": "iid",
        "setting": "fixed",
        "row": "FedAdam",
        "attack": "label-flip",
        "alpha_q": 0.0,
        "mean": entry.mean,
        "std": entry.std,
        "runs": entry.runs,
        "published": 98.68,
        "rule": "fedavg",
        "difference": entry.mean - 98.68,
    }
