"""Several references as one: what each adds in its order, and nothing twice."""

import dataclasses

from tests.report import synthetic

from fedra.report import ReportData
from fedra.report.model.comparison import grid_tables
from fedra.report.reference import Extension, Reference, Section, combined


def section(key):
    return Section(key=key, title=key, caption="", tables=(), markdown="")


def reference(word, seen, *, grids=frozenset(), published=None):
    def extension(data):
        seen.append((word, {outcome.grid for outcome in data.outcomes}))
        tables = grid_tables(dataclasses.replace(data, outcomes=data.outcomes[:1])) if grids else ()
        return Extension(
            title=f"{word}!",
            names={"lie": word, word: word},
            grids=grids,
            heading=word,
            tables=tables,
            sections=(section(word),),
            figures={word: lambda _data, _tables: ()},
            files={word: word},
            notes=(word,),
            values={word: 1},
        )

    return Reference(source=word, published=lambda _outcome: published, extension=extension)


def test_all_is_there_in_order_and_a_grid_belongs_to_the_first_that_has_it():
    data = ReportData.of(synthetic.results())
    grids = {outcome.grid for outcome in data.outcomes}
    seen = []
    both = combined(reference("one", seen, grids=frozenset(grids)), reference("two", seen, grids=frozenset({"other"})))
    added = both.extension(dataclasses.replace(data, outcomes=data.outcomes[:3]))
    assert seen == [("one", {outcome.grid for outcome in data.outcomes[:3]}), ("two", set())]
    assert (added.title, added.heading, both.source) == ("one!", "one, two", "one; two")
    assert (added.names["lie"], added.names["two"], added.names["fedra"]) == ("one", "two", "FedRA")
    assert added.grids == grids | {"other"}
    assert [one.key for one in added.sections] == ["one", "two"]
    assert list(added.figures) == list(added.files) == list(added.notes) == list(added.values) == ["one", "two"]


def test_one_that_has_nothing_to_show_adds_nothing():
    data = ReportData.of(synthetic.results())
    added = combined(reference("one", []), reference("two", [], grids=frozenset({"x"}))).extension(data)
    assert (added.title, added.notes) == ("two!", ("two",))
    assert combined().extension(data).title is None


def test_the_first_published_figure_counts():
    (outcome, *_) = ReportData.of(synthetic.results()).outcomes
    assert combined(reference("a", []), reference("b", [], published=1.5)).published(outcome) == 1.5
    assert combined(reference("a", [])).published(outcome) is None
