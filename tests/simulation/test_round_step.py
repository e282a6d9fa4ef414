from __future__ import annotations

import dataclasses
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from tests.reference import attacks as reference

from fedra import RULES
from fedra.attacks import ATTACKS, UpdateAttack, readings_of
from fedra.cohort import Verdict
from fedra.data import Dataset, load_dataset
from fedra.optimizers import OPTIMIZERS
from fedra.seeding import generator
from fedra.simulation import ServerState, Simulation, SimulationConfig, simulate

CLASSES = 10


@cache
def digits() -> Dataset:
    return load_dataset("digits")


def prepared(**given: Any) -> Simulation:
    return Simulation(SimulationConfig.from_dict({"rounds": 2, **given}), digits())


def sent_in(simulation: Simulation, state: ServerState) -> tuple[Any, list[np.ndarray]]:
    """Run a round; return its outcome and what each client sent."""
    rule, rows = simulation.rule, []

    def listening(updates: Any, *arguments: Any, **options: Any) -> Verdict:
        rows.extend(np.array(update) for update in updates)
        return rule(updates, *arguments, **options)

    simulation.rule = listening  # type: ignore[assignment]
    _, outcome = simulation.step(state)
    simulation.rule = rule
    return outcome, rows


def trained(simulation: Simulation, rounds: int) -> ServerState:
    state = simulation.initial_state()
    for _ in range(rounds):
        state, _ = simulation.step(state)
    return state


def gradient_of(simulation: Simulation, client: int, weights: np.ndarray, labels: Any = None) -> np.ndarray:
    held = simulation.federation.partition.indices(client)
    taught = digits().train_labels[held] if labels is None else labels
    return reference.logistic_gradient(weights, digits().train_inputs[held], taught, CLASSES)


def test_honest_clients_send_the_gradient_of_their_mean_loss() -> None:
    simulation = prepared(num_sampled=8, rule="fedavg")
    state = trained(simulation, 3)
    outcome, rows = sent_in(simulation, state)
    assert outcome.round == 3
    for client, row in zip(outcome.clients, rows, strict=True):
        np.testing.assert_allclose(row, gradient_of(simulation, client, state.weights), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("mapping", ["reverse", "next", "random"])
def test_label_flippers_send_the_gradient_on_their_own_data_with_other_labels(mapping: str) -> None:
    simulation = prepared(attack="label-flip", attack_params={"mapping": mapping}, setting="fixed", rule="fedavg")
    state = trained(simulation, 2)
    outcome, rows = sent_in(simulation, state)
    own = outcome.clients[outcome.malicious]
    assert len(own) == 5
    held = [simulation.federation.partition.indices(client) for client in own]
    labels = digits().train_labels[np.concatenate(held)]
    flipped = reference.flipped(labels, mapping, CLASSES, generator(0, "simulation/attack", 2))
    parts = np.split(np.array(flipped), np.cumsum([len(part) for part in held])[:-1])
    lies = [row for row, bad in zip(rows, outcome.malicious, strict=True) if bad]
    for client, part, row in zip(own, parts, lies, strict=True):
        np.testing.assert_allclose(row, gradient_of(simulation, client, state.weights, part), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("attack", "params", "formula"),
    [
        ("lie", {}, lambda pool: reference.lie(pool, 1.5)),
        ("lie", {"z": "max"}, lambda pool: reference.lie(pool, reference.largest_z(50, 5))),
        ("optimize", {}, lambda pool: reference.optimize(pool, 3.0)),
    ],
)
def test_colluders_send_one_vector_made_of_all_malicious_clients_gradients(
    attack: str, params: dict[str, Any], formula: Any
) -> None:
    simulation = prepared(attack=attack, attack_params=params, setting="fixed", rule="fedavg")
    state = trained(simulation, 1)
    outcome, rows = sent_in(simulation, state)
    everyone = np.flatnonzero(simulation.federation.malicious)
    pool = [gradient_of(simulation, client, state.weights) for client in everyone]
    lies = [row for row, bad in zip(rows, outcome.malicious, strict=True) if bad]
    assert len(lies) == 5
    for row in lies:
        np.testing.assert_array_equal(row, lies[0])
    np.testing.assert_allclose(lies[0], formula(pool), rtol=1e-4, atol=1e-5)


def test_a_lone_attacker_sends_its_own_gradient_under_lie() -> None:
    simulation = prepared(attack="lie", setting="fixed", malicious_ratio=0.01, rule="fedavg")
    assert simulation.federation.malicious.sum() == 1
    state = simulation.initial_state()
    outcome, rows = sent_in(simulation, state)
    (place,) = np.flatnonzero(outcome.malicious)
    honest = gradient_of(simulation, outcome.clients[place], state.weights)
    np.testing.assert_allclose(rows[place], honest, rtol=1e-4, atol=1e-6)


def test_without_an_update_attack_malicious_clients_lie_about_the_quantity_alone() -> None:
    honest, liars = prepared(rule="fedavg"), prepared(rule="fedavg", alpha_q=10)
    state = honest.initial_state()
    expected, rows = sent_in(honest, state)
    outcome, lied = sent_in(liars, state)
    np.testing.assert_array_equal(outcome.clients, expected.clients)
    assert outcome.malicious.any()
    for row, other in zip(rows, lied, strict=True):
        np.testing.assert_allclose(other, row, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(outcome.claims[~outcome.malicious], expected.claims[~outcome.malicious])
    assert (outcome.claims[outcome.malicious] > outcome.true_quantities[outcome.malicious]).all()


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_runs_on_an_attacked_federation(rule: str) -> None:
    result = simulate(SimulationConfig(rule=rule, attack="lie", alpha_q=10, rounds=2), dataset=digits())
    assert result.rounds["note"].tolist() == ["", ""]
    assert np.isfinite(result.final_accuracy)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_learns(optimizer: str) -> None:
    lr = {"sgd": 0.5, "adam": 0.01, "fedadam": 0.01}[optimizer]
    config = SimulationConfig(optimizer=optimizer, lr=lr, rule="fedavg", rounds=25)
    assert simulate(config, dataset=digits()).final_accuracy > 75


@pytest.mark.parametrize("local", [{"local_epochs": 2}, {"local_steps": 4}])
def test_local_training_learns(local: dict[str, int]) -> None:
    config = SimulationConfig(**local, local_lr=0.1, optimizer="sgd", lr=1.0, rule="fedavg", rounds=6)  # type: ignore[arg-type]
    assert simulate(config, dataset=digits()).final_accuracy > 75


def test_one_local_step_over_all_data_is_the_scaled_gradient() -> None:
    plain = prepared(rule="fedavg", num_sampled=10)
    local = prepared(rule="fedavg", num_sampled=10, local_steps=1, local_lr=0.25, batch_size=10_000)
    state = plain.initial_state()
    for gradient, moved in zip(sent_in(plain, state)[1], sent_in(local, state)[1], strict=True):
        np.testing.assert_allclose(moved, 0.25 * gradient, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("partition", ["iid", "non-iid", "dirichlet"])
def test_every_partition_runs(partition: str) -> None:
    assert simulate(SimulationConfig(partition=partition, rounds=2), dataset=digits()).rounds["num_kept"].min() > 0


def test_an_own_data_set_with_its_options() -> None:
    config = SimulationConfig(
        dataset="tests.simulation.own:blobs", dataset_params={"samples": 1200}, num_sampled=20, rounds=30, lr=0.05
    )
    assert simulate(config).final_accuracy > 80


def test_a_model_with_its_options() -> None:
    config = SimulationConfig(model="logistic", rounds=1)
    assert simulate(config, dataset=digits()).summary["num_parameters"] == 650
    with pytest.raises(ValueError, match="needs images of 16x16 or more, got"):
        simulate(SimulationConfig(model="cnn28", rounds=1), dataset=digits())


@pytest.mark.parametrize(("optimizer", "lr"), [("sgd", 1e300), ("sgd", 1e38), ("adam", 1e300)])
def test_a_run_that_diverges_goes_on(optimizer: str, lr: float) -> None:
    config = SimulationConfig(rule="fedavg", optimizer=optimizer, lr=lr, attack="lie", alpha_q=10, rounds=8)
    result = simulate(config, dataset=digits())
    last = result.rounds.iloc[-1]
    assert len(result.rounds) == 8
    assert last["note"] == "nobody was left after screening"
    assert result.summary["rounds_without_update"] > 0
    assert result.clients["reason"].iloc[-1] != ""
    assert np.isfinite(result.final_accuracy)


def test_clients_who_send_no_numbers_are_rejected_and_the_rest_goes_on() -> None:
    config = SimulationConfig(rule="fedavg", attack="tests.simulation.own:not_a_number", setting="fixed", rounds=20)
    result = simulate(config, dataset=digits())
    assert result.summary["filtering_recall"] == 1
    assert result.summary["filtering_precision"] == 1
    assert result.final_accuracy > 75
    rejected = result.clients[result.clients["malicious"]]
    assert rejected["reason"].str.contains("finite").all()
    assert (rejected["weight"] == 0).all()


def test_a_round_whose_clients_are_all_rejected_changes_nothing_and_says_so() -> None:
    simulation = prepared(rule="fedavg")
    start = simulation.initial_state()
    broken = ServerState(round=0, weights=np.full_like(start.weights, np.nan), optimizer=start.optimizer)
    after, outcome = simulation.step(broken)
    assert outcome.verdict.update is None
    assert outcome.verdict.note == "nobody was left after screening"
    assert outcome.wrongly_rejected == 50
    assert after.round == 1
    assert after.weights.tobytes() == broken.weights.tobytes()
    assert after.optimizer is broken.optimizer


def test_what_a_rule_remembers_goes_from_round_to_round() -> None:
    simulation = prepared(rule="tests.simulation.own:Seniority", num_sampled=10)
    state = simulation.initial_state()
    seen: set[int] = set()
    for number in range(4):
        assert state.rule is not None
        assert (int(state.rule["rounds"]), set(state.rule["clients"].tolist())) == (number, seen)
        state, outcome = simulation.step(state)
        seen |= set(outcome.clients.tolist())
    assert len(seen) > 10
    assert prepared(rule="fedavg").initial_state().rule is None


def test_a_round_without_an_update_leaves_what_a_rule_remembers() -> None:
    simulation = prepared(rule="tests.simulation.own:Seniority")
    state = trained(simulation, 2)
    broken = dataclasses.replace(state, weights=np.full_like(state.weights, np.nan))
    after, outcome = simulation.step(broken)
    assert outcome.verdict.update is None
    assert after.rule is state.rule


def test_the_state_goes_in_and_comes_out_untouched() -> None:
    simulation = prepared(attack="lie")
    state = simulation.initial_state()
    before = state.weights.copy()
    first, _ = simulation.step(state)
    second, _ = simulation.step(state)
    np.testing.assert_array_equal(state.weights, before)
    assert first.weights.tobytes() == second.weights.tobytes() != before.tobytes()


def test_accuracy_is_measured_every_so_often_and_at_the_end() -> None:
    result = simulate(SimulationConfig(rounds=7, eval_every=3, rule="fedavg"), dataset=digits())
    assert result.rounds["accuracy"].notna().tolist() == [False, False, True, False, False, True, True]


def test_an_attack_of_the_wrong_shape_is_an_error() -> None:
    config = SimulationConfig(attack="tests.simulation.own:misshapen", setting="fixed", rounds=1)
    with pytest.raises(ValueError, match=r"own:misshapen' returned shape \(3,\); give \(5, 650\).*or \(650,\)"):
        simulate(config, dataset=digits())


def test_an_attack_may_return_float64_and_overflow() -> None:
    config = SimulationConfig(
        attack="tests.simulation.own:overwhelming", attack_params={"scale": 1e300}, setting="fixed", rounds=2
    )
    assert simulate(config, dataset=digits()).summary["filtering_recall"] == 1


def test_what_an_attack_claims_counts_and_the_quantity_attack_decides_on_the_rest() -> None:
    decoys = {"count": 2, "claim": 77}
    simulation = prepared(attack="decoys", attack_params=decoys, claimed_quantity=500, setting="fixed", num_sampled=50)
    _, outcome = simulation.step(simulation.initial_state())
    assert outcome.claims[outcome.malicious].tolist() == [77, 77, 500, 500, 500]
    np.testing.assert_array_equal(outcome.claims[~outcome.malicious], outcome.true_quantities[~outcome.malicious])


def test_as_much_as_passes_is_kept_and_a_little_more_is_not() -> None:
    def outcome_of(**claims: Any) -> Any:
        shared = {"attack": "none", "setting": "fixed", "rule_params": {"estimator": "mcne"}}
        simulation = prepared(**shared, **claims)
        return simulation.step(simulation.initial_state())[1]

    found = outcome_of(quantity_attack="as-much-as-passes")
    (claim,) = set(found.claims[found.malicious].tolist())
    least = outcome_of(claimed_quantity=1).missed
    assert 0 < least <= found.missed
    assert claim > 1
    assert outcome_of(claimed_quantity=1.1 * claim).missed < least


def test_the_success_of_a_backdoor_is_measured_with_accuracy_and_for_no_other_attack() -> None:
    shared = {"rule": "fedavg", "rounds": 30, "eval_every": 10, "claimed_quantity": 100, "lr": 0.02}
    found = simulate(SimulationConfig(attack="backdoor", attack_params={"target": 3}, **shared), dataset=digits())
    assert (found.rounds["attack_success"].isna() == found.rounds["accuracy"].isna()).all()
    assert found.summary["attack_success"] == found.rounds["attack_success"].iloc[-1] > 80
    honest = simulate(SimulationConfig(attack="label-flip", **shared), dataset=digits())
    assert honest.rounds["attack_success"].isna().all()
    assert honest.summary["attack_success"] is None


def test_success_is_the_share_of_other_classes_that_are_taken_for_the_target() -> None:
    simulation = prepared(attack="backdoor", attack_params={"target": 3})
    weights = np.zeros_like(simulation.initial_state().weights)
    weights[-10 + 3] = 1.0
    simulation._clients.load(weights)
    assert simulation._clients.attack_success(lambda inputs: inputs, 3) == 100
    assert simulation._clients.attack_success(lambda inputs: inputs, 4) == 0


def test_a_target_that_is_no_class_is_refused() -> None:
    with pytest.raises(ValueError, match="target=10 of attack 'backdoor', but digits has 10 classes"):
        prepared(attack="backdoor", attack_params={"target": 10})


OTHERS = [("ipm", {"knowledge": "all"}), ("min-max", {"knowledge": "all"}), ("decoys", {"attack": "ipm"})]


@pytest.mark.parametrize(("attack", "parameters"), [*((name, {}) for name in ATTACKS), *OTHERS])
def test_an_attack_reads_what_it_says_and_nothing_else_of_its_clients_honest_gradients(
    attack: str, parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation = prepared(attack=attack, attack_params=parameters, num_sampled=10, setting="fixed", alpha_q=10.0)
    state = trained(simulation, 3)
    malicious = simulation.federation.malicious
    clients = simulation.federation.sample(state.round)
    names = {tuple(clients[malicious[clients]]): "own", tuple(simulation.federation.pool(state.round)): "pool"}
    assert len(names) == 2
    asked = []
    updates = simulation._clients.updates

    def listening(clients: Any, round_number: int, **made: Any) -> Any:
        if not made:
            asked.append(names[tuple(clients)])
        return updates(clients, round_number, **made)

    monkeypatch.setattr(simulation._clients, "updates", listening)
    simulation.step(state)
    assert sorted(asked) == sorted(readings_of(simulation.attack))


@pytest.mark.parametrize("attack", ATTACKS)
def test_rounds_have_the_same_bits_with_any_number_of_threads(attack: str) -> None:
    given = {
        "rounds": 3,
        "dataset": "digits",
        "rule": "fedavg",
        "attack": attack,
        "num_sampled": 10,
        "setting": "fixed",
    }
    one, *others = (
        simulate(SimulationConfig.from_dict({**given, "threads": threads})).summary["weights_sha256"]
        for threads in (1, 2, 3)
    )
    assert others == [one, one]


@pytest.mark.parametrize(("attack", "early"), [("lie", ["pool"]), ("none", ["own"]), ("mimic", []), ("label-flip", [])])
def test_threads_share_out_what_an_attack_says_it_reads(
    attack: str, early: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation = prepared(attack=attack, num_sampled=10, setting="fixed", alpha_q=10.0, threads=2)
    state = trained(simulation, 2)
    federation, clients = simulation.federation, simulation.federation.sample(state.round)
    bad = federation.malicious[clients]
    cohorts = {"own": clients[bad], "pool": federation.pool(state.round)}
    asked: list[list[np.ndarray]] = []
    updates_of = simulation._clients.updates_of

    def listening(cohorts: Any, round_number: int) -> Any:
        asked.append(list(cohorts))
        return updates_of(cohorts, round_number)

    monkeypatch.setattr(simulation._clients, "updates_of", listening)
    simulation.step(state)
    (found,) = asked
    for one, expected in zip(found, [clients[~bad], *(cohorts[name] for name in early)], strict=True):
        np.testing.assert_array_equal(one, expected)


def test_what_an_attack_says_it_reads_must_be_something_it_can_read() -> None:
    class Curious(UpdateAttack):
        name = "curious"
        reads = ("honest_updates",)  # type: ignore[assignment]

        def __call__(self, view: Any, rng: np.random.Generator, *args: Any) -> Any:
            return view.own_gradients

    with pytest.raises(ValueError, match="reads='honest_updates'"):
        readings_of(Curious())


def test_a_function_says_what_it_reads_as_an_attribute() -> None:
    def mine(view: Any, rng: np.random.Generator) -> Any:
        return view.observed

    assert readings_of(mine) == set()
    mine.reads = ("observed", "own")  # type: ignore[attr-defined]
    assert readings_of(partial(mine)) == {"own", "pool"}
    mine.knowledge = "all"  # type: ignore[attr-defined]
    assert readings_of(mine) == {"own"}
