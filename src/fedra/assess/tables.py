"""The tables of an assessment, as text and page both show them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fedra.assess.assessment import Assessment, RuleFindings
from fedra.assess.chances import over_rounds
from fedra.assess.liar import CLAIMS, OneLiar
from fedra.assess.standing import Found
from fedra.assess.wording import amount, cosine, distance, percent, times, whole

# Rows of the table of colluders: around what may well come.
_MOST_NUMBERS = 12
CONTEST = "docs/contest.md"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Headings, rows of texts, and what they are; the first column names the row."""

    key: str
    title: str
    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(assessment: Assessment) -> tuple[Table, ...]:
    """Return them in the order of the page."""
    return (
        _liar(assessment),
        _colluders(assessment),
        _stands(assessment),
        _chances(assessment),
        _worst(assessment),
        _cost(assessment),
    )


def _liar(assessment: Assessment) -> Table:
    names = {"median": "the median", "largest": "the largest", "all": "all of it", "billion": "a billion"}
    rows = []
    pulled = False
    for each in assessment.rules:
        if each.liar is None:
            rows.append((each.label, *["refused"] * (len(CLAIMS) + 2)))
            continue
        pulled = pulled or each.liar.by_pull
        mark = "*" if each.liar.by_pull else ""
        shares = [f"{percent(each.liar.claims[name].share)}{mark}" for name in CLAIMS]
        rows.append(
            (
                each.label,
                *shares,
                f"{percent(each.liar.best.share)}{mark}",
                _best_claim(each.liar),
            )
        )
    caption = (
        "The share of a round's result that one liar gets who sends the reverse of the honest mean and claims to hold "
        "as much "
        "as the median client, the largest, all others together, or a billion samples; the most that any claim got, "
        "and "
        "that claim."
    )
    if pulled:
        caption += " *: the rule has no weights; how far the result moves towards the liar."
    return Table(
        key="liar",
        title="What one liar gets",
        caption=caption,
        headings=("rule", *(names[name] for name in CLAIMS), "most", "with a claim of"),
        rows=tuple(rows),
    )


def _best_claim(liar: OneLiar) -> str:
    if not liar.best.share:
        return "-"
    return "any" if liar.any_claim else amount(liar.best.claim)


def _colluders(assessment: Assessment) -> Table:
    federation, colluders = assessment.federation, assessment.colluders
    last = min(len(colluders.probabilities) - 1, max(colluders.most + 1, 3))
    first = max(0, last - _MOST_NUMBERS + 1)
    rows = []
    for number in range(first, last + 1):
        more = colluders.more_than(number)
        chances = (colluders.probabilities[number], more, over_rounds(more, federation.rounds))
        rows.append((f"{number:,}", *map(percent, chances)))
    sampled = "all of them" if federation.everybody else f"{federation.num_sampled:,} of them"
    return Table(
        key="colluders",
        title="How many colluders a round may hold",
        caption=f"{federation.num_malicious:,} of {federation.num_clients:,} clients lie, and a round asks {sampled} "
        f"(hypergeometric). "
        f"Expected: {colluders.expected:.3g} in a round.",
        headings=("colluders", "in a round", "more in a round", f"more in any of {federation.rounds:,} rounds"),
        rows=tuple(rows),
    )


def _stands(assessment: Assessment) -> Table:
    rows = []
    for each in assessment.rules:
        formula = (whole(each.formula.assumed), whole(each.formula.most), each.formula.condition)
        outlook = each.outlook
        found = (
            ("refused", "-", "-")
            if outlook is None
            else (whole(outlook.stands), whole(outlook.turned_at), whole(outlook.stopped_at))
        )
        rows.append((each.label, *found, *formula))
    return Table(
        key="stands",
        title="How many attackers each rule stands",
        caption="By search: how many attackers who see everything it stood, and the first number that turned its step "
        "or stopped it. By formula: how many malicious clients the rule allows for as it is set up, the most that its "
        "condition admits, and that condition on n clients of which m are malicious.",
        headings=("rule", "stood", "turned by", "stopped by", "allows for", "at most", "condition"),
        rows=tuple(rows),
    )


def _chances(assessment: Assessment) -> Table:
    total = assessment.federation.rounds
    rows = []
    for each in assessment.rules:
        outlook = each.outlook
        chances: tuple[float | None, ...] = (None,) * 4
        if outlook is not None:
            chances = (outlook.chance, outlook.ever, outlook.turned, outlook.ever_turned)
        rows.append((each.label, "refused" if outlook is None else whole(outlook.stands), *map(percent, chances)))
    return Table(
        key="chances",
        title="How probable it is that more come",
        caption="The chance that a round holds more attackers than the rule stood, or enough to turn its step; and "
        f"that any of {total:,} rounds does.",
        headings=("rule", "stood", "more in a round", f"in any of {total:,}", "turned in a round", f"any of {total:,}"),
        rows=tuple(rows),
    )


def _worst(assessment: Assessment) -> Table:
    rows = []
    for each, found in _found(assessment):
        outcome = "no step" if found.stopped else "turned" if found.turned else ""
        rows.append(
            (
                each.label,
                whole(found.attackers),
                cosine(found.cosine),
                distance(found.displacement),
                percent(found.weight),
                amount(found.claim),
                found.direction or "-",
                outcome,
            )
        )
    return Table(
        key="worst",
        title="What attackers reached",
        caption=f"In rounds of {assessment.looked_at:,} clients: the cosine of the rule's step with the honest mean, "
        f"its distance from "
        "it in lengths of that mean, the attackers' share of the result, what each claimed and where they pushed.",
        headings=("rule", "attackers", "cosine", "distance", "their share", "claim", "direction", "outcome"),
        rows=tuple(rows),
    )


def _cost(assessment: Assessment) -> Table:
    rows = []
    rounds = 0
    for each in assessment.rules:
        if each.cost is None:
            rows.append((each.label, "refused", *["-"] * 5))
            continue
        cost, rounds = each.cost, each.cost.rounds
        shares = (cost.dropped, cost.data_dropped, cost.silenced, cost.without_update)
        rows.append((each.label, times(cost.error), times(cost.difference), *map(percent, shares)))
    many = "one round" if rounds == 1 else f"{rounds} rounds"
    return Table(
        key="cost",
        title="What each rule costs without attack",
        caption=f"Over {many} in which nobody attacks. Error: how far the step is from the truth, 1 being FedAvg's "
        f"own sampling error "
        "(2 is as if a quarter of the data had been used). Differs: how far it is from FedAvg's step, in the same "
        "unit. Then the shares of clients left out, of data they hold, of clients silenced (left out, or with less "
        "than a "
        f"tenth of what FedAvg would give them), and of rounds without a step. Whole trainings: {CONTEST}.",
        headings=("rule", "error", "differs", "left out", "their data", "silenced", "no step"),
        rows=tuple(rows),
    )


def _found(assessment: Assessment) -> Iterator[tuple[RuleFindings, Found]]:
    for each in assessment.rules:
        for found in () if each.standing is None else each.standing.found:
            yield each, found
