"""FedRA's scorer and its two settings."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests import reference
from tests.comparing import assert_near, clear_best, clear_cut
from tests.reference.fedra import assumed_malicious
from tests.strategies import make_round, rounds

import fedra
from fedra.rules.fedra import _scores as scores_of

RATIOS = st.sampled_from(["0", "0.05", "0.1", "0.25"])
GAMMAS = st.sampled_from([0, 0.1, 0.5])


def federation(cohort, choice):
    return {"unknown": None, "everyone": len(cohort), "large": 3025}[choice]


@given(rounds(), st.integers(0, 8), GAMMAS)
def test_scores_weigh_distances_by_both_quantities(cohort, num_malicious, gamma):
    assume(len(cohort) > 2 * num_malicious + 2)
    scores = fedra.quantity_robust_scores(cohort.updates, cohort.quantities, num_malicious=num_malicious, gamma=gamma)
    expected = reference.quantity_robust_scores(cohort.updates, cohort.quantities, num_malicious, gamma)
    np.testing.assert_allclose(scores, expected, rtol=2e-7 if cohort.updates.dtype == np.float32 else 1e-12)


@given(rounds(), RATIOS, GAMMAS, st.sampled_from(["unknown", "everyone", "large"]))
def test_fixed_keeps_all_but_the_largest_scores(cohort, ratio, gamma, known):
    num_clients = federation(cohort, known)
    assume(len(cohort) > 2 * assumed_malicious(len(cohort), ratio, num_clients) + 2)
    scores, num_malicious, kept, update = reference.fedra(
        cohort.updates, cohort.quantities, ratio=ratio, num_clients=num_clients, gamma=gamma, setting="fixed"
    )
    assume(clear_cut(scores, len(kept)))
    rule = fedra.FedRA(malicious_ratio=float(ratio), num_clients=num_clients, gamma=gamma, setting="fixed")
    verdict = rule(cohort.updates, cohort.quantities)
    assert verdict.num_malicious == num_malicious
    assert np.flatnonzero(verdict.kept).tolist() == kept
    assert len(kept) == len(cohort) - num_malicious - 1
    assert_near(verdict.update, update, cohort.updates)
    assert verdict.cut == verdict.scores[verdict.kept].max()


@given(
    rounds(),
    RATIOS,
    GAMMAS,
    st.sampled_from(["unknown", "everyone", "large"]),
    st.sampled_from(["separate", "pooled", "pooled-root"]),
    st.sampled_from(["number", "set"]),
)
def test_dynamic_drops_as_many_as_it_estimates(cohort, ratio, gamma, known, variance, prior):
    num_clients = federation(cohort, known)
    assume(len(cohort) > 2 * assumed_malicious(len(cohort), ratio, num_clients) + 2)
    options = {"ratio": ratio, "num_clients": num_clients, "variance": variance, "prior": prior}
    scores, num_malicious, kept, update = reference.fedra(cohort.updates, cohort.quantities, gamma=gamma, **options)
    assume(clear_best(reference.log_likelihoods(scores, **options)))
    assume(clear_cut(scores, len(kept)))
    rule = fedra.FedRA(
        malicious_ratio=float(ratio),
        num_clients=num_clients,
        gamma=gamma,
        estimator="mcne",
        variance=variance,
        prior=prior,
    )
    verdict = rule(cohort.updates, cohort.quantities)
    assert verdict.num_malicious == num_malicious
    assert np.flatnonzero(verdict.kept).tolist() == kept
    assert_near(verdict.update, update, cohort.updates)


@given(rounds(least_clients=5, dtypes=st.just(np.float64)), st.sampled_from(["separate", "pooled", "pooled-root"]))
def test_iterating_scores_again_with_the_estimate(cohort, variance):
    scores, num_malicious, kept, update = reference.fedra(
        cohort.updates, cohort.quantities, variance=variance, iterate=True
    )
    assume(clear_best(reference.log_likelihoods(scores, variance=variance), margin=1e-6))
    verdict = fedra.FedRA(estimator="mcne", variance=variance, iterate=True)(cohort.updates, cohort.quantities)
    assert verdict.num_malicious == num_malicious
    np.testing.assert_allclose(verdict.scores, scores, rtol=1e-12)
    assert np.flatnonzero(verdict.kept).tolist() == kept
    assert_near(verdict.update, update, cohort.updates)


def test_iterating_changes_some_round():
    changed = 0
    for seed in range(40):
        cohort = make_round(seed, 20, 30, liars=4)
        once = fedra.FedRA(estimator="mcne")(cohort.updates, cohort.quantities)
        again = fedra.FedRA(estimator="mcne", iterate=True)(cohort.updates, cohort.quantities)
        changed += once.scores.tolist() != again.scores.tolist()
    assert changed > 0


def test_scores_by_hand():
    updates = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 3.0], [5.0, 5.0]])
    scores = fedra.quantity_robust_scores(updates, [4, 4, 4, 12], num_malicious=0, gamma=0.5)
    # sqrt(1/(1/4 + 1/4)) = sqrt 2, sqrt(1/(1/4 + 1/12)) = sqrt 3; the two least of each client's three.
    two, three = np.sqrt(2), np.sqrt(3)
    expected = [2 * 5 * two, 2 * 5 * two, 2 * 6 * two, np.sqrt(12) * (8 * three + 7 * three)]
    np.testing.assert_allclose(scores, expected, rtol=1e-14)


def test_neighbours_are_ranked_by_scaled_distance_not_by_distance():
    """A far client with a small claim is nearer in Q than a close one with a large claim."""
    updates = np.array([[0.0], [1.0], [1.5]])
    scores = fedra.quantity_robust_scores(updates, [10**6, 10**6, 1], num_malicious=0, gamma=0)
    assert scores[0] == pytest.approx(1.5, rel=1e-5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("gamma", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("liars", [1, 2, 5])
def test_scores_of_huge_quantities_stay_finite_and_the_largest(gamma, liars):
    cohort = make_round(3, 12, 20)
    quantities = cohort.quantities.copy()
    quantities[:liars] = 1.7e308
    cohort.updates[:liars] *= 1e100
    scores = scores_of(reference.pairwise_l1(cohort.updates), quantities, 2, gamma)
    assert np.isfinite(scores).all()
    assert scores[:liars].min() > scores[liars:].max()


def test_the_papers_numbers():
    rule = fedra.FedRA(malicious_ratio=0.1, num_clients=3025, setting="fixed")
    assert rule.expected_malicious(50) == 5
    cohort = make_round(0, 50, 20)
    verdict = rule(cohort.updates, cohort.quantities)
    assert verdict.num_malicious == 5
    assert verdict.kept.sum() == 50 - 5 - 1


@pytest.mark.parametrize(("clients", "expected"), [(30, 3), (70, 7), (50, 5), (51, 6), (1, 1)])
def test_the_ceiling_is_of_the_exact_product(clients, expected):
    assert fedra.FedRA(malicious_ratio=0.1).expected_malicious(clients) == expected


def test_five_identical_colluders_are_all_dropped():
    """Their scores tie, so a variance without a floor would be 0 and keep all but two of them."""
    rng = np.random.default_rng(7)
    updates = rng.standard_normal((50, 200))
    updates[[3, 11, 12, 30, 49]] = 3.0 + rng.standard_normal(200)
    quantities = np.floor(np.exp(rng.uniform(0, 3, 50))) + 1
    quantities[[3, 11, 12, 30, 49]] = 500
    for variance in ("separate", "pooled", "pooled-root"):
        verdict = fedra.FedRA(num_clients=3025, estimator="mcne", variance=variance)(updates, quantities)
        assert len(set(verdict.scores[[3, 11, 12, 30, 49]])) == 1
        assert not verdict.kept[[3, 11, 12, 30, 49]].any()
        assert verdict.num_malicious >= 5


def test_excluding_every_liar_makes_the_claim_irrelevant():
    """With every attacker left out, the update has the same bits whatever they claim."""
    rng = np.random.default_rng(2)
    updates = rng.standard_normal((30, 60))
    updates[:3] += 20
    quantities = rng.integers(1, 50, 30).astype(float)
    results = []
    for claim in (1.0, 20.0, 1e6, 2.0**53):
        quantities[:3] = claim
        verdict = fedra.FedRA(setting="fixed")(updates, quantities)
        assert not verdict.kept[:3].any()
        results.append(verdict)
    same = [result for result in results if (result.kept == results[-1].kept).all()]
    assert len(same) >= 2
    assert len({result.update.tobytes() for result in same}) == 1


@pytest.mark.parametrize("gamma", [-0.01, 0.51, float("nan"), float("inf")])
def test_gamma_outside_its_range_is_refused(gamma):
    with pytest.raises(ValueError, match=rf"gamma={gamma!r}; give a number in \[0, 0.5\]"):
        fedra.FedRA(gamma=gamma)
    with pytest.raises(ValueError, match=rf"gamma={gamma!r}; give a number in \[0, 0.5\]"):
        fedra.quantity_robust_scores(np.eye(5), [1] * 5, num_malicious=1, gamma=gamma)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"gamma": "0.1"}, TypeError, "gamma='0.1'; give a number"),
        ({"setting": "static"}, ValueError, "setting='static'; valid: dynamic, fixed"),
        ({"variance": "both"}, ValueError, "variance='both'; valid: separate, pooled, pooled-root"),
        ({"prior": "both"}, ValueError, "prior='both'; valid: number, set"),
        ({"num_clients": 0}, ValueError, "num_clients=0; give a whole number of at least 1"),
        ({"num_clients": 30.5}, TypeError, "num_clients=30.5"),
        ({"iterate": "no"}, TypeError, "iterate='no'; give True or False"),
        ({"clamp": 1}, TypeError, "clamp=1; give True or False"),
        ({"iterate": True, "setting": "fixed"}, ValueError, "iterate=True"),
        ({"iterate": True}, ValueError, "estimator='evidence' does not make; set estimator='mcne'"),
        ({"estimator": "guess"}, ValueError, "estimator='guess'; valid: evidence, mcne"),
    ],
)
def test_parameters_that_make_no_sense_are_named(parameters, error, message):
    with pytest.raises(error, match=message):
        fedra.FedRA(**parameters)


def test_a_round_larger_than_the_federation_is_the_callers_mistake():
    with pytest.raises(ValueError, match="num_clients = 10, but the round has n = 12"):
        fedra.FedRA(num_clients=10)(np.eye(12), [1] * 12)


def test_the_scorer_alone_names_an_unusable_client():
    updates = np.eye(5)
    updates[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"client 2 is not usable: .*not finite"):
        fedra.quantity_robust_scores(updates, [1] * 5, num_malicious=1)
    with pytest.raises(
        ValueError, match=r"need n > 2m\+2 for m assumed malicious clients, but have n = 5 and m = 2; give more clients"
    ):
        fedra.quantity_robust_scores(np.eye(5), [1] * 5, num_malicious=2)
