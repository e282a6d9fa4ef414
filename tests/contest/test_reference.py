"""What the contest adds to a report, and that it adds nothing to others."""

from tests.contest.contest_results import contest_results
from tests.paper.paper_results import grid_cells, paper_data
from tests.report.small_grid import small_grid

from fedra.contest import CONTEST, Contest
from fedra.experiments import Results
from fedra.paper import PAPER
from fedra.report import ReportData, build_report
from fedra.report.reference import combined

SILOS = {"settings": ("digits-silos",), "rules": ("fedavg", "median"), "added_rules": ("bulyan",)}


def test_the_contests_report(data):
    added = CONTEST.extension(data)
    assert added.grids == {Contest().name, Contest(broken=True).name}
    assert [(section.key, section.first) for section in added.sections] == [
        ("standings", True),
        ("broken-standings", True),
        ("clients", False),
        ("broken-clients", False),
    ]
    assert len(added.tables) == 4 + 5
    assert {"contest-leaderboard.md", "contest-leaderboard.csv", "contest-leaderboard.tex"} <= added.files.keys()
    assert "contest-broken-leaderboard.md" in added.files
    assert added.notes[0].startswith("contest: ")
    assert added.notes[1].startswith("contest, assumption broken: ")
    assert len(added.values["contest"]) == len(added.tables[0].rows)


def test_it_is_written_and_compact_results_give_the_same(tmp_path):
    results = contest_results(
        Contest(**SILOS, attacks=("none", "backdoor")), Contest(**SILOS, attacks=("decoys",), broken=True)
    )
    results.write(tmp_path / "compact")
    reports = []
    for out in ("one", "two"):
        made = build_report(tmp_path / "compact", tmp_path / out, reference=combined(CONTEST, PAPER))
        reports.append(made)
        assert made.missing == ()
        page, summary = made.page.read_text(encoding="utf-8"), made.summary.read_text(encoding="utf-8")
        assert page.index("Who is never far behind") < page.index("The contest&#39;s tables")
        assert summary.index("**Leaderboard.**") < summary.index("## The contest's tables")
        assert 'title="bulyan needs n &gt;= 4m+3' in page
        assert "| Bulyan | refuses | refuses |" in summary
        assert r"Bulyan & \textit{refuses}" in (out_table(made, "assumption-broken-digits-5-silos-iid.tex"))
        assert "Further comparisons" not in page
        assert {file.stem for file in made.figures} >= {"contest-regret", "contest-broken-regret"}
    first, second = reports
    assert first.page.read_bytes() == second.page.read_bytes()
    assert first.summary.read_bytes() == second.summary.read_bytes()


def out_table(made, name):
    (file,) = (file for file in made.tables if file.name == name)
    return file.read_text(encoding="utf-8")


def test_a_report_of_an_own_grid_says_nothing_of_the_contest(tmp_path):
    small_grid(tmp_path, name="small", leave_out=("seed1", "q10"))
    made = build_report(tmp_path, figures=False, reference=combined(CONTEST, PAPER))
    assert (made.missing, made.notes, made.values) == ((), (), {})
    assert "contest" not in made.summary.read_text(encoding="utf-8").lower()
    data = ReportData.of(Results.read(tmp_path))
    assert CONTEST.extension(data).tables == ()


def test_the_paper_beside_the_contest_is_as_it_is_alone():
    data = paper_data(grid_cells(targets=("table2",), datasets=("digits",)))
    alone, beside = PAPER.extension(data), combined(CONTEST, PAPER).extension(data)
    assert alone.grids == beside.grids
    assert [table.title for table in alone.tables] == [table.title for table in beside.tables]
    assert (alone.title, alone.heading, alone.notes) == (beside.title, beside.heading, beside.notes)
    assert dict(alone.names) == dict(beside.names)


def test_a_contest_is_not_taken_for_the_papers_runs():
    """These are runs of the paper's quick protocol as well."""
    contest = Contest(settings=("cifar10-iid",), rules=("fedavg", "rfa"), attacks=("label-flip", "lie", "optimize"))
    data = ReportData.of(contest_results(contest))
    assert PAPER.extension(data).tables != ()
    assert [table.group for table in combined(CONTEST, PAPER).extension(data).tables] == ["Contest"]
