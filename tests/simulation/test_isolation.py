"""Attackers see nothing that the threat model does not show them."""

from __future__ import annotations

import dataclasses
import types
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import torch

from fedra import RULES, Rule
from fedra.attacks import AttackerView, InformedView, WhiteBoxView, make_attack
from fedra.data import Dataset, Partition, load_dataset
from fedra.seeding import generator
from fedra.simulation import ServerState, Simulation, SimulationConfig, simulate
from fedra.simulation.clients import Clients
from fedra.simulation.federation import Federation

ATTACKS = [
    *(
        "none",
        "label-flip",
        "lie",
        "optimize",
        "sign-flip",
        "gaussian",
        "ipm",
        "min-max",
        "min-sum",
        "backdoor",
        "decoys",
    ),
    "tests.simulation.own:overwhelming",
]


@cache
def digits() -> Dataset:
    return load_dataset("digits")


def config(**given: Any) -> SimulationConfig:
    return SimulationConfig.from_dict({"setting": "fixed", "alpha_q": 10, **given})


def later_state() -> ServerState:
    """A model that is not the initial one, at a round that is not the first."""
    start = Simulation(config(), digits()).initial_state()
    weights = start.weights + generator(0, "isolation").normal(0, 0.05, len(start.weights)).astype(np.float32)
    return dataclasses.replace(start, round=4, weights=weights)


def seen_and_sent(made: SimulationConfig, dataset: Dataset) -> tuple[AttackerView, bytes, np.ndarray]:
    """Run a round; return the attacker's view, what it sent, and its claims."""
    simulation = Simulation(made, dataset)
    caught: dict[str, Any] = {}
    attack = make_attack(made.attack, **made.attack_params)

    def listening(view: AttackerView, rng: np.random.Generator) -> np.ndarray:
        sent = attack(view, rng)
        caught.update(view=view, sent=np.array(sent).tobytes())
        return sent

    simulation._attack = listening
    _, outcome = simulation.step(later_state())
    return caught["view"], caught["sent"], outcome.claims[outcome.malicious]


def with_other_benign_data(made: SimulationConfig) -> Dataset:
    federation = Simulation(made, digits()).federation
    held = [federation.partition.indices(client) for client in np.flatnonzero(~federation.malicious)]
    benign = np.concatenate(held)
    rng = np.random.default_rng(0)
    inputs, labels = digits().train_inputs.copy(), digits().train_labels.copy()
    inputs[benign] = rng.normal(size=inputs[benign].shape)
    labels[benign] = rng.integers(0, 10, len(benign))
    return dataclasses.replace(digits(), train_inputs=inputs, train_labels=labels)


@pytest.mark.parametrize("attack", ATTACKS)
def test_other_benign_data_change_nothing_an_attacker_sends(attack: str) -> None:
    made = config(attack=attack)
    _, expected, claims = seen_and_sent(made, digits())
    other = with_other_benign_data(made)
    _, found, same_claims = seen_and_sent(made, other)
    assert found == expected
    np.testing.assert_array_equal(same_claims, claims)
    honest = [Simulation(made, data).step(later_state())[1].verdict.update for data in (digits(), other)]
    assert (honest[0] != honest[1]).any()


@pytest.mark.parametrize("attack", ["none", "label-flip", "lie", "optimize"])
def test_other_data_of_its_own_change_what_an_attacker_sends(attack: str) -> None:
    made = config(attack=attack)
    federation = Simulation(made, digits()).federation
    held = [federation.partition.indices(client) for client in np.flatnonzero(federation.malicious)]
    inputs = digits().train_inputs.copy()
    inputs[np.concatenate(held)] *= 0.5
    changed = dataclasses.replace(digits(), train_inputs=inputs)
    assert seen_and_sent(made, changed)[1] != seen_and_sent(made, digits())[1]


@pytest.mark.parametrize("attack", ATTACKS)
def test_another_rule_changes_nothing_an_attacker_sends(attack: str) -> None:
    expected = seen_and_sent(config(attack=attack), digits())[1]
    for rule in RULES:
        assert seen_and_sent(config(attack=attack, rule=rule), digits())[1] == expected, rule


@pytest.mark.parametrize("given", [{"optimizer": "sgd"}, {"lr": 0.5}, {"rule_params": {"gamma": 0.5}}, {"threads": 2}])
def test_the_servers_other_settings_change_nothing_an_attacker_sends(given: dict[str, Any]) -> None:
    expected = seen_and_sent(config(attack="lie"), digits())[1]
    assert seen_and_sent(config(attack="lie", **given), digits())[1] == expected


def test_a_view_has_what_the_threat_model_allows_and_nothing_else() -> None:
    view, _, _ = seen_and_sent(config(attack="lie"), digits())
    assert {name for name in dir(view) if not name.startswith("_")} == {
        "round",
        "weights",
        "num_sampled",
        "num_malicious",
        "num_classes",
        "own",
        "pool",
        "relabelled",
        "own_gradients",
        "pool_gradients",
        "relabelled_gradients",
        "poisoned",
        "poisoned_gradients",
        "observed",
    }
    assert (view.round, view.num_sampled, view.num_malicious, view.num_classes) == (4, 50, 5, 10)
    assert view.own_gradients.shape == (5, 650)
    assert view.pool_gradients.shape == (14, 650)


def test_an_attack_that_reads_more_than_it_states_fails() -> None:
    for attack, missing in (("reads_honest", "honest_updates"), ("reads_rule", "judge")):
        with pytest.raises(AttributeError, match=f"no attribute '{missing}'"):
            simulate(config(attack=f"tests.simulation.own:{attack}", rounds=1), dataset=digits())


@pytest.mark.parametrize(
    ("attack", "kind"), [("ipm", AttackerView), ("mimic", InformedView), ("adaptive", WhiteBoxView)]
)
def test_the_view_is_of_exactly_the_type_that_an_attack_states(attack: str, kind: type) -> None:
    simulation = Simulation(config(attack=attack), digits())
    asked: list[Any] = []
    called = type(simulation._attack).__call__

    class Listening(type(simulation._attack)):  # type: ignore[misc]
        def __call__(self, view: Any, *others: Any) -> Any:
            asked.append(view)
            return called(self, view, *others)

    simulation._attack = Listening()
    _, outcome = simulation.step(simulation.initial_state())
    assert type(asked[0]) is kind
    if kind is not AttackerView:
        honest = ~outcome.malicious
        np.testing.assert_array_equal(asked[0].honest_claims, outcome.claims[honest])
        assert asked[0].honest_updates.shape == (honest.sum(), 650)
        with pytest.raises(ValueError, match="read-only"):
            asked[0].honest_updates[0] = 0


def test_what_the_white_box_judges_is_what_the_rule_then_decides() -> None:
    simulation = Simulation(config(attack="adaptive", attack_params={"budget": 8}, rule="centered-clipping"), digits())
    state, _ = simulation.step(simulation.initial_state())
    judged: list[Any] = []

    class Listening(type(simulation._attack)):  # type: ignore[misc]
        def __call__(self, view: Any, rng: Any, state: Any) -> Any:
            sent, after = super().__call__(view, rng, state)
            judged.append(view.judge(sent.updates, sent.claims))
            return sent, after

    simulation._attack = Listening(budget=8)
    _, outcome = simulation.step(state)
    np.testing.assert_array_equal(judged[0].update, outcome.verdict.update)
    np.testing.assert_array_equal(judged[0].kept, outcome.verdict.kept[outcome.malicious])


def test_no_attribute_of_a_view_leads_to_benign_clients_or_the_rule() -> None:
    forbidden = (Rule, Simulation, SimulationConfig, Federation, Partition, Clients, Dataset)
    view, _, _ = seen_and_sent(config(attack="lie"), digits())
    waiting, known = [view], set()
    while waiting:
        thing = waiting.pop()
        if id(thing) in known or isinstance(thing, (int, float, str, bytes, type)) or callable_of_python(thing):
            continue
        known.add(id(thing))
        assert not isinstance(thing, forbidden), type(thing)
        if isinstance(thing, np.ndarray | torch.Tensor):
            assert thing.shape in {(650,), (5, 650), (14, 650)}
            waiting.extend([thing.base] if getattr(thing, "base", None) is not None else [])
        elif isinstance(thing, partial):
            waiting.extend([thing.func, *thing.args, *thing.keywords.values()])
        elif isinstance(thing, types.MethodType):
            waiting.append(thing.__self__)
        else:
            waiting.extend(getattr(thing, name) for name in dir(thing) if not name.startswith("_"))
    assert id(view) in known


def callable_of_python(thing: object) -> bool:
    """Functions offer nothing but to be called; what they close over is Python's to keep."""
    return isinstance(thing, (types.FunctionType, types.BuiltinFunctionType))


def test_only_the_attackers_own_labels_pass_through_relabelling() -> None:
    made = config(attack="label-flip")
    simulation = Simulation(made, digits())
    view, _, _ = seen_and_sent(made, digits())
    labels: list[np.ndarray] = []
    view.relabelled_gradients(lambda seen: labels.append(seen.copy()) or seen)  # type: ignore[func-returns-value]
    clients = simulation.federation.sample(4)
    own = clients[simulation.federation.malicious[clients]]
    held = np.concatenate([simulation.federation.partition.indices(client) for client in own])
    np.testing.assert_array_equal(labels[0], digits().train_labels[held])


def test_an_attacker_cannot_reach_into_the_server() -> None:
    """One that overwrites all it was given and sends its honest gradient does as one that lies about nothing else."""
    shared = {"setting": "fixed", "alpha_q": 10, "rounds": 4, "rule": "fedavg"}
    honest = simulate(SimulationConfig(attack="none", **shared), dataset=digits())  # type: ignore[arg-type]
    vandal = simulate(SimulationConfig(attack="tests.simulation.own:vandal", **shared), dataset=digits())  # type: ignore[arg-type]
    assert vandal.summary["weights_sha256"] == honest.summary["weights_sha256"]
