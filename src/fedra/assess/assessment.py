"""What was found out about a federation, as values."""

from __future__ import annotations

from dataclasses import dataclass

from fedra.assess.chances import Colluders
from fedra.assess.cost import Cost
from fedra.assess.federation import Federation
from fedra.assess.formulas import Formula
from fedra.assess.liar import OneLiar
from fedra.assess.standing import Standing


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """A rule's number of attackers in rounds of the federation's size, and the chance that more come.

    Attributes:
        stands: how many in a round of n clients, by the search.
        turned_at: the first number that turns its step; None: none below half of the round.
        stopped_at: the first number that leaves a round without a step.
        chance: that a round holds more than it stands.
        ever: that at least one of all rounds does.
        turned: that a round holds enough to turn its step.
        ever_turned: that at least one of all rounds holds enough to turn its step.
    """

    stands: int
    turned_at: int | None
    stopped_at: int | None
    chance: float
    ever: float
    turned: float
    ever_turned: float


@dataclass(frozen=True, kw_only=True)
class RuleFindings:
    """What was found out about one rule; where it refuses rounds of this size, why, and nothing else.

    Attributes:
        label: how it was asked for.
        rule: its registry name.
        refusal: why it takes no rounds of so few clients; empty where it does.
        formula: what is stated of it.
        liar: what one liar gets.
        standing: what adaptive attackers reached, in the rounds that were looked at.
        outlook: what follows for rounds of the federation.
        cost: what it costs where nobody attacks.
    """

    label: str
    rule: str
    refusal: str
    formula: Formula
    liar: OneLiar | None = None
    standing: Standing | None = None
    outlook: Outlook | None = None
    cost: Cost | None = None


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Which of the rules to use, and why.

    Attributes:
        rule: its label; None where no rule takes such rounds.
        enough: whether it stands as many colluders as may well come.
        headline: one sentence.
        reasons: sentences, each with its figures.
        others: a sentence for each other rule.
    """

    rule: str | None
    enough: bool
    headline: str
    reasons: tuple[str, ...]
    others: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """The whole of it.

    Attributes:
        federation: what was assessed.
        colluders: how many a round may hold.
        rules: findings, in the order they were asked for.
        advice: which to use.
        assumptions: sentences.
        looked_at: clients in the rounds that rules were asked on.
        searched_rounds: rounds in which attackers were searched for.
        budget: calls of the rule in each search.
        seed: of everything drawn.
    """

    federation: Federation
    colluders: Colluders
    rules: tuple[RuleFindings, ...]
    advice: Advice
    assumptions: tuple[str, ...]
    looked_at: int
    searched_rounds: int
    budget: int
    seed: int
