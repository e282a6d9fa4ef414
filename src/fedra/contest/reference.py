"""The contest as something that a report shows."""

from __future__ import annotations

from fedra.contest.entering import is_contest
from fedra.contest.figures import regret_map
from fedra.contest.leaderboard import (
    Board,
    by_setting,
    leaderboard,
    measure_boards,
    price_board,
    standing_values,
    treatment_board,
)
from fedra.contest.standings import standings
from fedra.contest.tables import contest_names, contest_tables
from fedra.report.model import Table
from fedra.report.model.outcomes import ReportData
from fedra.report.reference import Extension, Reference, Section

TITLE = "The contest: rules against attacks"


def boards(tables: tuple[Table, ...], *, broken: bool) -> list[Board]:
    """Return the tables that sum the contest up: who leads, where, and at what price; none without results."""
    if not standings(tables):
        return []
    prefix, where = ("contest-broken", ", assumption broken") if broken else ("contest", "")
    return [
        leaderboard(tables, key=f"{prefix}-leaderboard", title=f"Leaderboard{where}"),
        # Where an assumption is broken, columns are numbers of attackers, and there is nothing to pay for.
        *(
            []
            if broken
            else [price_board(tables, key="contest-price", title="What each rule costs, and what it holds")]
        ),
        by_setting(tables, key=f"{prefix}-settings", title=f"Each setting{where}"),
        treatment_board(tables, key=f"{prefix}-clients", title=f"Attackers and honest clients{where}"),
    ]


def contest_extension(data: ReportData) -> Extension:
    """Return what the contest adds to a report: nothing unless `fedra contest` has made a part of the results."""
    plain, broken = contest_tables(data), contest_tables(data, broken=True)
    every = (*plain, *broken)
    if not every:
        return Extension()
    summaries = {False: boards(plain, broken=False), True: boards(broken, broken=True)}
    details = [[board for table in tables for board in measure_boards(table)] for tables in (plain, broken)]
    shown = (*summaries[False], *summaries[True], *details[0], *details[1])
    sections = [
        *_summary(summaries[False], key="standings", title="Who is never far behind"),
        *_summary(summaries[True], key="broken-standings", title="Where an assumption is broken"),
        *_details(details[0], key="clients", where=""),
        *_details(details[1], key="broken-clients", where=", assumption broken"),
    ]
    return Extension(
        title=TITLE,
        names=contest_names(),
        grids=frozenset(
            outcome.grid for outcome in data.outcomes if any(is_contest(outcome.grid, broken=b) for b in (False, True))
        ),
        heading="The contest's tables",
        tables=every,
        sections=tuple(sections),
        figures={"contest-regret": regret_map},
        files={name: text for board in shown for name, text in board.files().items()},
        notes=tuple(_note(tables, where) for tables, where in ((plain, ""), (broken, ", assumption broken")) if tables),
        values={"contest": standing_values(plain), "contest_broken": standing_values(broken)},
    )


CONTEST = Reference(extension=contest_extension)


def _summary(found: list[Board], *, key: str, title: str) -> list[Section]:
    if not found:
        return []
    return [
        Section(
            key=key,
            title=title,
            caption="",
            tables=tuple(board.text_table(folded=False if at else None) for at, board in enumerate(found)),
            markdown="\n\n".join(board.markdown() for board in found),
            first=True,
        )
    ]


def _details(found: list[Board], *, key: str, where: str) -> list[Section]:
    if not found:
        return []
    return [
        Section(
            key=key,
            title=f"Attackers' weight and honest clients, cell by cell{where}",
            caption="In percent; a dash where a rule has no weights or there is nobody to count.",
            tables=tuple(board.text_table(folded=True) for board in found),
            markdown="\n\n".join(board.markdown() for board in found),
        )
    ]


def _note(tables: tuple[Table, ...], where: str) -> str:
    found = standings(tables)
    if not found:
        return f"contest{where}: no two rules have results in one cell yet"
    best = found[0]
    lacking = sum(not standing.whole for standing in found)
    among = f", of {len(found) - lacking} rules with a result in every cell" if 0 < lacking < len(found) else ""
    return f"contest{where}: {best.label} has the least worst regret, {best.worst.points:.1f} points{among}"
