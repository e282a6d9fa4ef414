"""What the paper adds to a report, and that it adds nothing to a user's own."""

from tests.paper.paper_results import grid_cells, paper_data, paper_results
from tests.report.small_grid import small_grid

from fedra.paper import PAPER
from fedra.report import build_report

WORDS = ("paper", "published", "best qi", "wins", "winner", "figure 1", "table 1", "fedadam", "trimean", "kdd")


def test_the_papers_report(data):
    added = PAPER.extension(data)
    assert added.title.startswith("Robust quantity-aware aggregation")
    assert added.grids == {"paper-quick-x"}
    assert [section.key for section in added.sections] == ["winners", "statistics"]
    assert list(added.figures) == ["figure1", "figure2", "figure4", "figure5", "figure6"]
    assert list(added.files) == ["winners.csv"]
    same = sum(share["same"] for share in added.values["winners"].values())
    assert added.notes == (f"winner as published in {same} of 18 columns",)


def test_a_stand_in_alone_has_no_winners():
    added = PAPER.extension(paper_data(grid_cells(targets=("table2",), datasets=("digits",))))
    assert [section.key for section in added.sections] == ["statistics"]
    assert (added.files, added.notes, added.values) == ({}, (), {"winners": {}})


def test_nothing_of_the_paper_is_in_a_users_own_report(tmp_path):
    small_grid(tmp_path, name="small", leave_out=("seed1", "q10"))
    made = build_report(tmp_path, reference=PAPER)
    assert (made.missing, made.notes, made.values) == ((), (), {})
    texts = [made.summary.read_text(encoding="utf-8"), *(file.read_text(encoding="utf-8") for file in made.tables)]
    page = made.page.read_text(encoding="utf-8")
    # The page's script and style are the same for every report.
    texts += [page.partition("</style>")[2].partition('<script type="module">')[0]]
    for text in texts:
        body = text.lower().replace("published,difference,status", "")
        assert not [word for word in WORDS if word in body]
    assert {file.stem for file in made.figures} == {"curves-small-digits-iid-dynamic"}


def test_hundreds_of_cells_at_once(tmp_path):
    cells = grid_cells(datasets=("mnist",), num_seeds=2)
    assert len(cells) > 400
    paper_results(cells).write(tmp_path)
    steps = []
    made = build_report(tmp_path, figures=False, progress=lambda *step: steps.append(step), reference=PAPER)
    assert sum(share["columns"] for share in made.values["winners"].values()) == 18
    assert (tmp_path / "report" / "tables" / "winners.csv").is_file()
    assert made.page.stat().st_size < 5_000_000
    assert steps[-1] == ("writing the page", 1, 1)


def test_figures_that_have_no_results_are_missing(tmp_path):
    cells = [cell for cell in grid_cells(datasets=("mnist",)) if (cell.setting, cell.partition) == ("fixed", "iid")]
    paper_results(cells).write(tmp_path)
    made = build_report(tmp_path, reference=PAPER)
    assert made.missing == ("figure1", "figure4", "figure5", "figure6")
    assert "No results for figure1, figure4, figure5, figure6." in made.summary.read_text(encoding="utf-8")
    assert {"figure2.png", "figure2.svg"} <= {file.name for file in made.figures}
