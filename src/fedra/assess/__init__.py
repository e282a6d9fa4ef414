"""How exposed a federation is: what liars get under each rule, how many come, how many a rule stands, what it costs.

`assess` asks the rules themselves, on synthetic or real updates. It needs NumPy and Numba only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fedra import checks
from fedra.assess.advice import advise
from fedra.assess.assessment import Advice, Assessment, Outlook, RuleFindings
from fedra.assess.chances import RISK, Colluders, hypergeometric, over_rounds
from fedra.assess.cost import Cost, clean_cost
from fedra.assess.federation import Federation
from fedra.assess.formulas import Formula, stated
from fedra.assess.liar import Claim, OneLiar, one_liar
from fedra.assess.page import assessment_page
from fedra.assess.rounds import HonestRound, HonestRounds, RealRounds, SyntheticRounds
from fedra.assess.standing import Found, Standing, standing
from fedra.assess.text import assessment_text
from fedra.assess.values import assessment_values
from fedra.cohort import RuleState
from fedra.rules import FedAvg, Rule, make_rule
from fedra.rules.base import StatefulRule

__all__ = [
    "USUAL_BUDGET",
    "USUAL_RULES",
    "Advice",
    "Assessment",
    "Claim",
    "Colluders",
    "Cost",
    "Federation",
    "Formula",
    "Found",
    "HonestRound",
    "HonestRounds",
    "OneLiar",
    "Outlook",
    "RealRounds",
    "RuleFindings",
    "Standing",
    "SyntheticRounds",
    "assess",
    "assessment_page",
    "assessment_text",
    "assessment_values",
    "clean_cost",
    "hypergeometric",
    "one_liar",
    "over_rounds",
    "standing",
    "stated",
]

USUAL_RULES = ("fedavg", "fedra", "concord", "multi-krum", "median")
# As of the search itself: enough to try all published attacks, and to look around the best.
USUAL_BUDGET = 120

_SEARCHED_ROUNDS = 2
_CLEAN_ROUNDS = 20
# Rounds that a rule that remembers has seen before it is looked at, and where their numbers begin.
_REMEMBERED_ROUNDS, _REMEMBERED_FROM = 5, 1_000_000

# Called with the rule's label, and how far all of it is, from 0 to 1.
Progress = Callable[[str, float], None]


def assess(
    federation: Federation,
    rules: Mapping[str, Rule] | Sequence[str] = USUAL_RULES,
    *,
    rounds: HonestRounds | None = None,
    budget: int = USUAL_BUDGET,
    seed: int = 0,
    progress: Progress = lambda label, share: None,
) -> Assessment:
    """Assess a federation under each of several rules, and under FedAvg.

    Args:
        federation: what is known of it.
        rules: by label, or names of `fedra.RULES`; they are given the federation's ratio.
        rounds: what honest clients send; None: `SyntheticRounds` of the federation.
        budget: how often a rule is called in each search for the worst that attackers can do.
        seed: of everything drawn; the same seed gives the same answer.
        progress: called as it goes on.
    """
    checks.whole("budget", budget, 1)
    honest = SyntheticRounds(federation=federation, seed=seed) if rounds is None else rounds
    made = dict(rules) if isinstance(rules, Mapping) else {name: make_rule(name) for name in rules}
    if not any(type(rule) is FedAvg for rule in made.values()):
        made = {"fedavg": FedAvg(), **made}
    colluders = Colluders.of(federation)
    findings = []
    for place, (label, rule) in enumerate(made.items()):
        step = _Steps(progress, label, place, len(made), honest.size, budget)
        findings.append(_findings(federation, colluders, label, rule, honest, budget=budget, seed=seed, step=step))
    progress("", 1.0)
    return Assessment(
        federation=federation,
        colluders=colluders,
        rules=tuple(findings),
        advice=advise(federation, colluders, findings),
        assumptions=_assumptions(federation, honest, budget),
        looked_at=honest.size,
        searched_rounds=_SEARCHED_ROUNDS,
        budget=budget,
        seed=seed,
    )


class _Steps:
    """Tells how far it is, by the calls that a search for every number of attackers would make."""

    def __init__(self, progress: Progress, label: str, place: int, rules: int, size: int, budget: int) -> None:
        self._tell, self._label, self._place, self._rules = progress, label, place, rules
        limit = (size - 1) // 2
        searches = limit if limit <= 10 else 2 * limit.bit_length()
        self._all, self._done = max(1, searches * _SEARCHED_ROUNDS * budget), 0
        progress(label, place / rules)

    def __call__(self) -> None:
        self._done += 1
        self._tell(self._label, (self._place + min(self._done / self._all, 1.0)) / self._rules)


def _findings(
    federation: Federation,
    colluders: Colluders,
    label: str,
    rule: Rule,
    honest: HonestRounds,
    *,
    budget: int,
    seed: int,
    step: _Steps,
) -> RuleFindings:
    rule = federation.told(rule)
    formula = stated(rule, federation.num_sampled)
    if refusal := rule.refusal(federation.num_sampled) or rule.refusal(honest.size):
        return RuleFindings(label=label, rule=rule.name, refusal=refusal, formula=formula)
    state = _remembered(rule, honest)
    searched = [honest.round(number) for number in range(_SEARCHED_ROUNDS)]
    states: list[RuleState | None] = [state] * len(searched)
    found = standing(rule, searched, states, budget=budget, seed=seed, step=step)
    clean = [honest.round(number) for number in range(honest.different or _CLEAN_ROUNDS)]
    return RuleFindings(
        label=label,
        rule=rule.name,
        refusal="",
        formula=formula,
        liar=one_liar(rule, searched, states),
        standing=found,
        outlook=_outlook(federation, colluders, found, honest.size),
        cost=clean_cost(rule, clean, state),
    )


def _remembered(rule: Rule, honest: HonestRounds) -> RuleState | None:
    """Return what a rule that remembers knows after some honest rounds."""
    state: RuleState | None = None
    for number in range(_REMEMBERED_ROUNDS if isinstance(rule, StatefulRule) else 0):
        round_ = honest.round(_REMEMBERED_FROM + number)
        state = rule(round_.updates, round_.quantities, state=state, threads=1).state
    return state


def _outlook(federation: Federation, colluders: Colluders, found: Standing, looked_at: int) -> Outlook:
    def first_of(number: int) -> int:
        # In proportion, where the federation's rounds are larger or smaller than those that were looked at: the least
        # number that is more than the last one before it. What happens without attackers happens without attackers.
        return (number - 1) * federation.num_sampled // looked_at + 1 if number else 0

    # Beyond what was looked at every rule may be turned: half of the clients are the majority.
    end = first_of(found.limit + 1)
    turned_at = None if found.turned_at is None else first_of(found.turned_at)
    stopped_at = None if found.stopped_at is None else first_of(found.stopped_at)
    turning = end if turned_at is None else turned_at
    failing = turning if stopped_at is None else min(turning, stopped_at)
    return Outlook(
        stands=max(failing - 1, 0),
        turned_at=turned_at,
        stopped_at=stopped_at,
        chance=colluders.more_than(failing - 1),
        ever=colluders.ever_more_than(failing - 1),
        turned=colluders.more_than(turning - 1),
        ever_turned=colluders.ever_more_than(turning - 1),
    )


def _assumptions(federation: Federation, honest: HonestRounds, budget: int) -> tuple[str, ...]:
    drawn = (
        "All clients take part in every round."
        if federation.everybody
        else "Clients of a round are drawn at random, each round anew; attackers cannot choose to be drawn."
    )
    attackers = (
        f"Attackers see the honest updates of the round and know the rule (fedra.redteam.worst_case, {budget} calls "
        f"of the rule in each search, the worse of {_SEARCHED_ROUNDS} rounds). It is a search, not a proof: what it "
        "finds can be done, and more may be possible."
    )
    criterion = (
        "A rule is turned where its step has a negative cosine with the honest mean: to first order it then undoes "
        "what honest clients learn. It is stopped where attackers can leave a round without a step."
    )
    sentences = [
        f"{federation.known[:1].upper()}{federation.known[1:]}.",
        drawn,
        f"Rules assume a malicious share of {federation.malicious_ratio:.4g}, and are set up as a server would.",
        honest.assumption,
        attackers,
        criterion,
        f"What may well come: as many colluders as any of all rounds exceeds with a chance of {RISK:.0%} at most.",
    ]
    if honest.size != federation.num_sampled:
        sentences.append(
            f"Rules were asked on rounds of {honest.size} clients, and numbers of attackers were scaled to rounds of "
            f"{federation.num_sampled:,} in proportion."
        )
    return tuple(sentences)
