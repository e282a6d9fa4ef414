"""What attackers got and honest clients lost, by hand and by a slow count."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.experiments.treatment import TREATMENT_CHECKS, TREATMENT_TYPES, treatment
from fedra.simulation import SimulationConfig, simulate

NAN = math.nan


def record(*lines: tuple[int, bool, int, bool, float]) -> dict[str, Any]:
    names = ("round", "malicious", "true_quantity", "kept", "weight")
    return {name: np.array([line[at] for line in lines]) for at, name in enumerate(names)}


def test_two_rounds_by_hand() -> None:
    found = treatment(
        record(
            (0, False, 60, True, 0.5),
            (0, False, 30, True, 0.02),
            (0, False, 10, False, 0.0),
            (0, True, 5, True, 0.48),
            (1, False, 50, True, 1.0),
            (1, True, 5, False, 0.0),
        )
    )
    # Of 0.52 for honest clients the one of 30 has a fair share of 0.156, and a tenth of that is less than its 0.02.
    assert found["malicious_weight"] == pytest.approx(0.24)
    assert found["honest_dropped"] == pytest.approx(1 / 4)
    assert found["honest_data_dropped"] == pytest.approx(10 / 150)
    assert found["honest_silenced"] == pytest.approx(1 / 4)
    less = treatment(record((0, False, 60, True, 0.5), (0, False, 30, True, 0.015), (0, True, 5, True, 0.485)))
    assert less["honest_silenced"] == pytest.approx(1 / 2)
    assert less["honest_dropped"] == 0


def test_who_has_no_weight_at_all_is_silenced_also_where_attackers_have_it_all() -> None:
    found = treatment(record((0, False, 60, True, 0.0), (0, True, 5, True, 1.0)))
    assert (found["malicious_weight"], found["honest_silenced"], found["honest_dropped"]) == (1.0, 1.0, 0.0)


def test_what_cannot_be_known_is_not_a_number() -> None:
    without_weights = treatment(record((0, False, 60, True, NAN), (0, True, 5, True, NAN)))
    assert math.isnan(without_weights["malicious_weight"])
    assert math.isnan(without_weights["honest_silenced"])
    assert without_weights["honest_dropped"] == 0
    without_attackers = treatment(record((0, False, 60, True, 1.0)))
    assert math.isnan(without_attackers["malicious_weight"])
    assert without_attackers["honest_silenced"] == 0
    nobody = treatment({name: values[:0] for name, values in record((0, False, 1, True, 1.0)).items()})
    assert all(math.isnan(value) for value in nobody.values())


def test_a_round_without_an_update_has_no_weights_and_drops_everybody() -> None:
    lines = [(0, False, 60, True, 1.0), (0, True, 5, False, 0.0), (1, False, 60, False, NAN), (1, True, 5, False, NAN)]
    found = treatment(record(*lines))
    assert (found["malicious_weight"], found["honest_dropped"], found["honest_silenced"]) == (0.0, 0.5, 0.5)


clients = st.tuples(
    st.integers(0, 3), st.booleans(), st.integers(1, 1000), st.booleans(), st.floats(0, 1) | st.just(NAN)
)


@given(st.lists(clients, min_size=1, max_size=30))
def test_as_a_slow_count_has_it(lines: list[Any]) -> None:
    lines.sort(key=lambda line: line[0])
    found = treatment(record(*lines))
    assert found.keys() == TREATMENT_TYPES.keys()
    for name, value in found.items():
        assert math.isnan(value) or TREATMENT_CHECKS[name](value), (name, value)
    honest = [line for line in lines if not line[1]]
    if honest:
        assert found["honest_dropped"] == pytest.approx(sum(not line[3] for line in honest) / len(honest))
        assert math.isnan(found["honest_silenced"]) or found["honest_silenced"] >= found["honest_dropped"] - 1e-12
    shares = []
    for number in {line[0] for line in lines}:
        weights = [(line[1], line[4]) for line in lines if line[0] == number and not math.isnan(line[4])]
        if (total := sum(weight for _, weight in weights)) > 0:
            shares.append(sum(weight for bad, weight in weights if bad) / total)
    if shares and len(honest) < len(lines):
        assert found["malicious_weight"] == pytest.approx(np.mean(shares))
    else:
        assert math.isnan(found["malicious_weight"])


def test_fedavg_gives_attackers_what_they_claim_and_silences_nobody() -> None:
    run = simulate(SimulationConfig(rule="fedavg", attack="lie", claimed_quantity=1, rounds=3, num_sampled=20))
    found = treatment({name: run.clients[name].to_numpy() for name in run.clients})
    claims = run.clients.assign(lie=run.clients["claimed_quantity"].where(run.clients["malicious"], 0))
    by_round = claims.groupby("round")[["lie", "claimed_quantity"]].sum()
    assert found["malicious_weight"] == pytest.approx((by_round["lie"] / by_round["claimed_quantity"]).mean())
    assert (found["honest_dropped"], found["honest_silenced"]) == (0, 0)
