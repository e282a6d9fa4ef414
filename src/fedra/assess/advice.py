"""Which rule to use, derived from the figures, and why."""

from __future__ import annotations

from collections.abc import Sequence

from fedra.assess.assessment import Advice, RuleFindings
from fedra.assess.chances import RISK, Colluders
from fedra.assess.cost import Cost
from fedra.assess.federation import Federation
from fedra.assess.wording import amount, attackers, percent, times

# Errors that differ by less are the same: of two such rules the one that stands more is better.
_SAME_ERROR = 0.05


def advise(federation: Federation, colluders: Colluders, findings: Sequence[RuleFindings]) -> Advice:
    """Choose: the cheapest rule that stands what may well come; else one that is not turned; else the least exposed."""
    needed = colluders.most
    usable = [each for each in findings if each.outlook is not None]
    if not usable:
        return Advice(
            rule=None,
            enough=False,
            headline=f"None of these rules takes rounds of {federation.num_sampled} clients.",
            reasons=("Sample more clients in a round, or assume fewer malicious ones.",),
            others=tuple(_refused(each) for each in findings),
        )
    standing = [each for each in usable if _stands(each, needed)]
    unturned = [each for each in usable if _not_turned(each, needed)]
    if standing:
        best = _cheapest(standing)
        headline = f"Use {best.label}."
    elif unturned:
        best = min(unturned, key=lambda each: (_ever(each), _error(each)))
        headline = f"Use {best.label}: attackers can stop rounds, but not turn them."
    else:
        best = min(usable, key=lambda each: (_turned(each), _ever(each), _error(each)))
        headline = f"No rule here stands what may come; {best.label} comes nearest."
    reasons = [_coming(federation, colluders), _what_it_stands(best, needed), *_what_it_costs(best)]
    if not federation.num_malicious:
        reasons.insert(0, "You state that nobody lies. Where somebody might, state at least one.")
    if not standing:
        reasons.append(
            "To be safer: know who takes part (one client, one organisation), have larger rounds, and check "
            "quantities by "
            "other means than what clients claim."
        )
    return Advice(
        rule=best.label,
        enough=bool(standing),
        headline=headline,
        reasons=tuple(reasons),
        others=tuple(_other(each, best, needed) for each in findings if each is not best),
    )


def _stands(each: RuleFindings, needed: int) -> bool:
    outlook = each.outlook
    # A rule that makes no step of honest rounds stands nobody, not even where nobody comes.
    return outlook is not None and outlook.stands >= needed and outlook.turned_at != 0 and outlook.stopped_at != 0


def _not_turned(each: RuleFindings, needed: int) -> bool:
    outlook = each.outlook
    if outlook is None or each.standing is None:
        return False
    # Where no number turned it, that was looked at up to just below half of the round.
    return outlook.turned_at > needed if outlook.turned_at is not None else outlook.ever_turned <= RISK


def _ever(each: RuleFindings) -> float:
    return 1.0 if each.outlook is None else each.outlook.ever


def _turned(each: RuleFindings) -> float:
    return 1.0 if each.outlook is None else each.outlook.turned


def _error(each: RuleFindings) -> float:
    return 0.0 if each.cost is None else _error_of(each.cost)


def _error_of(cost: Cost) -> float:
    """Return the error against the truth; where that is not known, of independent sampling error and difference."""
    return (1 + cost.difference**2) ** 0.5 if cost.error is None else cost.error


def _cheapest(findings: Sequence[RuleFindings]) -> RuleFindings:
    least = min(map(_error, findings))
    near = [each for each in findings if _error(each) <= (1 + _SAME_ERROR) * least]
    # The first of those asked for, where they stand the same.
    return max(near, key=lambda each: each.outlook.stands if each.outlook else 0)


def _coming(federation: Federation, colluders: Colluders) -> str:
    if federation.everybody:
        return f"All clients take part in every round, so every round holds {attackers(federation.num_malicious)}."
    return (
        f"A round holds {colluders.expected:.3g} colluders on average; the chance that any of {colluders.rounds:,} "
        f"rounds "
        f"holds more than {colluders.most:,} is {percent(colluders.ever_more_than(colluders.most))}."
    )


def _what_it_stands(best: RuleFindings, needed: int) -> str:
    assert best.outlook is not None
    outlook = best.outlook
    if _stands(best, needed):
        known = "that know everything" if outlook.stands != 1 else "that knows everything"
        return f"It stands {attackers(outlook.stands)} {known}; {needed:,} may come."
    turned = f"turned by {outlook.turned_at:,}" if outlook.turned_at is not None else "turned by none that was tried"
    stopped = f", stopped by {outlook.stopped_at:,}" if outlook.stopped_at is not None else ""
    return (
        f"Of the {needed:,} colluders that may come it stands {outlook.stands:,}: it is {turned}{stopped}. "
        f"{percent(outlook.turned)} of rounds hold enough to turn it."
    )


def _what_it_costs(best: RuleFindings) -> list[str]:
    lines = []
    if best.cost is not None:
        lines.append(
            f"Where nobody attacks its error is {times(_error_of(best.cost))} times FedAvg's, and it leaves out "
            f"{percent(best.cost.dropped)} of the clients."
        )
    if best.liar is not None:
        lines.append(
            f"One liar gets at most {percent(best.liar.best.share)} of the result, "
            + ("whatever it claims." if best.liar.any_claim else f"with a claim of {amount(best.liar.best.claim)}.")
        )
    return lines


def _refused(each: RuleFindings) -> str:
    # What a rule refuses begins with its name.
    named = each.refusal.startswith(each.label)
    return f"{each.refusal}." if named else f"{each.label}: {each.refusal}."


def _other(each: RuleFindings, best: RuleFindings, needed: int) -> str:
    if each.outlook is None:
        return _refused(each)
    words = [f"error without attack {times(_error(each))} times FedAvg's"]
    if _stands(each, needed):
        words.insert(0, f"stands {each.outlook.stands:,} as well" if each.outlook.stands else "needs to stand nobody")
    elif each.outlook.stopped_at == 0:
        words.insert(0, "has rounds without a step where nobody attacks")
    elif each.outlook.turned_at is not None:
        words.insert(0, f"turned by {attackers(each.outlook.turned_at)}")
    else:
        words.insert(0, f"stands {each.outlook.stands:,}, then attackers stop its rounds")
    return f"{each.label}: {', '.join(words)}."
