"""An assessment whose figures are stated, not computed: what pages and texts show does not depend on a search."""

from __future__ import annotations

from dataclasses import replace

from fedra.assess import (
    Assessment,
    Claim,
    Colluders,
    Cost,
    Federation,
    Formula,
    Found,
    OneLiar,
    Outlook,
    RuleFindings,
    Standing,
)
from fedra.assess.advice import advise

SILOS = (5200, 4100, 900, 800, 700, 300, 120, 60)


def found(attackers: int, cosine: float, **others: object) -> Found:
    values = {"displacement": 1 - cosine, "weight": 0.1 * attackers, "has_update": True, "claim": 800.0}
    words = {"direction": "against the plain mean" if attackers else ""}
    return Found(**{"attackers": attackers, "cosine": cosine, **values, **words, **others})


def findings(
    label: str,
    cosines: tuple[float, ...],
    *,
    error: float = 1.2,
    most: int | None = 2,
    ever: float = 0.0,
    **others: object,
) -> RuleFindings:
    """Return findings of a rule with these worst cosines for 0, 1, 2, ... attackers; None of a cosine: no step."""
    reached = tuple(found(number, cosine) for number, cosine in enumerate(cosines))
    turned = next((each.attackers for each in reached if each.turned), None)
    stands = len(reached) - 1 if turned is None else turned - 1
    shares = {"median": 0.01, "largest": 0.05, "all": 0.1, "billion": 0.0}
    values = {
        "label": label,
        "rule": label.split()[0],
        "refusal": "",
        "formula": Formula(condition="n > 2m+2", assumed=1, most=most),
        "liar": OneLiar(
            claims={name: Claim(claim=100.0, share=share) for name, share in shares.items()},
            best=Claim(claim=3500.0, share=0.12),
            by_pull=False,
        ),
        "standing": Standing(found=reached, stands=stands, turned_at=turned, stopped_at=None, limit=3),
        "outlook": Outlook(
            stands=stands, turned_at=turned, stopped_at=None, chance=ever, ever=ever, turned=ever, ever_turned=ever
        ),
        "cost": Cost(
            rounds=20, difference=0.5, error=error, dropped=0.1, data_dropped=0.02, silenced=0.2, without_update=0.0
        ),
    }
    return RuleFindings(**{**values, **others})


def refused(label: str) -> RuleFindings:
    return RuleFindings(
        label=label,
        rule=label,
        refusal=f"{label} needs n >= 4m+3 for m assumed malicious clients, but has n = 8 and m = 2",
        formula=Formula(condition="n >= 4m+3", assumed=2, most=1),
    )


def federation(**others: object) -> Federation:
    return Federation.of(SILOS, **{"num_malicious": 1, "known": "quantities are those of silos.txt", **others})


def assessment(label: str = "fedra") -> Assessment:
    """Return one with a rule of each kind: FedAvg, one that stands, one that is turned, one that refuses."""
    described = federation()
    plain = findings("fedavg", (1.0, -1.0), error=1.0, most=0, ever=1.0)
    billion = OneLiar(
        claims={name: Claim(claim=1e9, share=0.999999) for name in ("median", "largest", "all", "billion")},
        best=Claim(claim=1e9, share=0.999999),
        by_pull=False,
    )
    pulled = findings("median", (0.99, 0.9, 0.8, 0.4), error=1.6, most=3)
    assert pulled.liar is not None
    rules = (
        replace(plain, liar=billion, formula=Formula(condition="none: one claim decides", assumed=None, most=0)),
        findings(label, (1.0, 0.9, 0.5, -1.0), error=1.02),
        replace(pulled, liar=replace(pulled.liar, by_pull=True)),
        refused("bulyan"),
    )
    colluders = Colluders.of(described)
    return Assessment(
        federation=described,
        colluders=colluders,
        rules=rules,
        advice=advise(described, colluders, rules),
        assumptions=("Quantities are those of silos.txt.", "All clients take part in every round."),
        looked_at=8,
        searched_rounds=2,
        budget=100,
        seed=0,
    )
