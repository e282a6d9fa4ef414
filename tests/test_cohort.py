"""How a verdict reads: the table and the records."""

import json

import numpy as np
import pytest

import fedra
from fedra.cohort import number_text, shares


@pytest.fixture
def verdict():
    rng = np.random.default_rng(4)
    true = rng.integers(5, 60, 12).astype(float)
    updates = 0.1 * rng.standard_normal(500) + rng.standard_normal((12, 500)) / np.sqrt(true)[:, np.newaxis]
    claims = true.tolist()
    claims[7] = 9000.0
    claims[2] = "many"
    ids = [f"phone-{i}" for i in range(12)]
    return fedra.FedRA(setting="fixed")(updates, claims, ids)


def test_the_table_shows_the_most_suspicious_first(verdict):
    lines = str(verdict).splitlines()
    assert lines[0].startswith("fedra: 8 of 12 clients kept, 2 assumed malicious, cut at score")
    assert lines[1].split() == ["client", "claims", "behaves", "like", "score", "weight", "kept", "why"]
    assert set(lines[2]) == {"-", " "}
    assert lines[3].split()[0] == "phone-2"
    assert "quantity 'many' is of type str" in lines[3]
    assert lines[4].split()[0] == "phone-7"
    assert "claims 9,000 samples and behaves like" in lines[4]
    assert len(lines) == 3 + 12
    assert not any(line.endswith(" ") for line in lines)


def test_suspicion_falls_along_the_table(verdict):
    order = verdict.by_suspicion()
    assert sorted(order) == list(range(12))
    assert order[:2] == [2, 7]
    assert verdict.kept[order].tolist() == [False] * 4 + [True] * 8
    scores = verdict.scores[order][1:]
    assert (np.diff(scores) <= 0).all()


def test_records_are_plain_and_in_the_clients_order(verdict):
    records = json.loads(json.dumps(verdict.to_records()))
    assert [record["client"] for record in records] == [f"phone-{i}" for i in range(12)]
    assert records[2] == {
        "client": "phone-2",
        "claimed_quantity": None,
        "implied_quantity": None,
        "score": None,
        "cut": verdict.cut,
        "kept": False,
        "weight": 0.0,
        "reason": "quantity 'many' is of type str, not a number",
    }
    assert records[7]["claimed_quantity"] == 9000
    assert records[7]["implied_quantity"] < 100
    assert sum(record["weight"] for record in records) == pytest.approx(1)


def test_records_of_numpy_identifiers_are_plain():
    records = fedra.Median()(np.eye(3), [1, 2, 3], np.array([7, 8, 9])).to_records()
    assert json.dumps(records)
    assert [type(record["client"]) for record in records] == [int] * 3
    assert [record["weight"] for record in records] == [None] * 3


def test_a_long_table_is_cut_and_says_so():
    verdict = fedra.FedRA()(np.random.default_rng(0).standard_normal((30, 5)), range(1, 31))
    assert str(verdict).splitlines()[-1] == "... and 10 more clients"
    assert len(verdict.table().splitlines()) == 3 + 30
    assert verdict.table(limit=1).splitlines()[-1] == "... and 29 more clients"


def test_rules_without_scores_show_no_score():
    table = str(fedra.Median()(np.eye(3), [1, 2, 3]))
    assert "score" not in table
    assert "weight" not in table
    assert table.splitlines()[0] == "median: 3 of 3 clients kept"


def test_a_round_without_update_says_why():
    text = str(fedra.FedAvg()([np.array([np.nan])], [1]))
    assert "0 of 1 clients kept, no update: nobody was left after screening" in text


def test_numbers_stay_short_however_large():
    verdict = fedra.FedAvg()(np.eye(3), [2**53, 1234567, 1.25])
    claims = [line.split()[1] for line in str(verdict).splitlines()[3:6]]
    assert sorted(claims) == sorted(["9.01e+15", "1,234,567", "1.25"])
    assert number_text(1e308) == "1e+308"


def test_identifiers_are_safe_and_short_in_the_table():
    class Silent:
        def __str__(self):
            raise RuntimeError

    table = str(fedra.Median()(np.eye(4), [1] * 4, ["\x1b[2Jred\nalert", "x" * 500, 10**5000, Silent()]))
    assert table.replace("\n", "").isprintable()
    names = [line.split("  ")[0] for line in table.splitlines()[3:]]
    assert names == ["[2Jred alert", "x" * 59 + "\N{HORIZONTAL ELLIPSIS}", "a number of thousands of digits", "Silent"]


def test_shares_add_up_for_any_claims():
    for quantities in ([1.0], [1.0, 3.0], [1.7e308] * 5, [1.0, 1e308]):
        assert shares(np.array(quantities)).sum() == pytest.approx(1)
    assert shares(np.array([1.0, 3.0])).tolist() == [0.25, 0.75]
    assert shares(np.empty(0)).tolist() == []


def test_a_verdict_cannot_be_changed(verdict):
    with pytest.raises(AttributeError):
        verdict.note = "fine"
