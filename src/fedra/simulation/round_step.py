"""One round: sample, compute, attack, screen and decide, step; state in, state out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.attacks import (
    VIEWS,
    Attack,
    AttackerView,
    AttackState,
    Sent,
    StatefulAttack,
    TargetedAttack,
    initial_attack_state,
    knowledge_of,
    make_attack,
    readings_of,
)
from fedra.attacks.view import Knowledge, Matrix, Reading
from fedra.cohort import Floats, RuleState, Verdict
from fedra.data import Dataset, load_dataset
from fedra.optimizers import OptimizerState
from fedra.redteam import Judgement
from fedra.rules.base import initial_state
from fedra.seeding import generator
from fedra.simulation.clients import Clients, model_name
from fedra.simulation.config import SimulationConfig
from fedra.simulation.federation import Ids, make_federation
from fedra.simulation.holdings import partition_seed
from fedra.simulation.measures import Measured


@dataclass(frozen=True, eq=False, kw_only=True)
class ServerState:
    """All that goes from one round to the next; `rule` and `attack` are what these remember, None where nothing."""

    round: int
    weights: npt.NDArray[np.float32]
    optimizer: OptimizerState
    rule: RuleState | None = None
    attack: AttackState | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundOutcome:
    """What happened in a round, for the records.

    Where they were measured, `accuracy` is the share of test samples that are classified right, and `attack_success`
    that of triggered ones, of other classes, that are taken for an attack's target; both in percent. `class_accuracy`
    and `auc` are those of `fedra.simulation.measures.Measured`.
    """

    round: int
    clients: Ids
    malicious: npt.NDArray[np.bool_]
    true_quantities: npt.NDArray[np.int64]
    claims: npt.NDArray[np.float64]
    verdict: Verdict
    accuracy: float | None
    attack_success: float | None = None
    class_accuracy: tuple[float | None, ...] | None = None
    auc: float | None = None

    @property
    def caught(self) -> int:
        """Malicious clients that were left out."""
        return int((self.malicious & ~self.verdict.kept).sum())

    @property
    def missed(self) -> int:
        """Malicious clients that are part of the aggregate."""
        return int((self.malicious & self.verdict.kept).sum())

    @property
    def wrongly_rejected(self) -> int:
        """Honest clients that were left out."""
        return int((~self.malicious & ~self.verdict.kept).sum())


class Simulation:
    """A federation ready to run: everything that stays the same from round to round."""

    def __init__(self, config: SimulationConfig, dataset: Dataset | None = None) -> None:
        self.config = config
        self.dataset = dataset or load_dataset(config.dataset, config.data_dir, **config.dataset_params)
        self.federation = make_federation(config, self.dataset)
        self.rule = config.make_rule(self.federation.num_clients)
        self._attack = make_attack(config.attack, **config.attack_params)
        self._quantity_attack = config.make_quantity_attack()
        self._optimizer = config.make_optimizer()
        self._clients = Clients(config, self.dataset, self.federation.partition)
        if isinstance(self._attack, TargetedAttack) and self._attack.target >= self.dataset.num_classes:
            raise ValueError(
                f"target={self._attack.target} of attack {config.attack!r}, but {config.dataset} has "
                f"{self.dataset.num_classes} classes; give one of 0 to {self.dataset.num_classes - 1}"
            )

    @property
    def chosen(self) -> dict[str, Any]:
        """The settings that a configuration may leave to the data set, as they are in this run."""
        return {
            "model": model_name(self.config, self.dataset),
            "lr": self.config.learning_rate,
            "partition_seed": partition_seed(self.config),
        }

    @property
    def attack(self) -> Attack:
        """The update attack."""
        return self._attack

    @property
    def honest_updates(self) -> Callable[..., Matrix]:
        """What clients compute from the loaded model, see `Clients.updates`."""
        return self._clients.updates

    def initial_state(self) -> ServerState:
        """Return the state before the first round."""
        weights = self._clients.initial_weights()
        return ServerState(
            round=0,
            weights=weights,
            optimizer=self._optimizer.init(len(weights)),
            rule=initial_state(self.rule, len(weights)),
            attack=initial_attack_state(self._attack, len(weights)),
        )

    def step(self, state: ServerState) -> tuple[ServerState, RoundOutcome]:
        """Run one round."""
        self._clients.load(state.weights)
        clients = self.federation.sample(state.round)
        malicious = self.federation.malicious[clients]
        claims = self.federation.claims_of(clients)
        rows, attack_state = self._sent(state, clients, malicious, claims)
        verdict = self.rule(rows, claims, clients.tolist(), state=state.rule, threads=self.config.threads)
        weights, optimizer, remembered = state.weights, state.optimizer, state.rule
        if verdict.update is not None:
            remembered = verdict.state
            # A run that diverges goes on: its clients are screened out, and the records say so.
            with np.errstate(over="ignore", invalid="ignore"):
                stepped, optimizer = self._optimizer.step(weights, verdict.update, optimizer)
                weights = stepped.astype(np.float32, copy=False)
        after = ServerState(
            round=state.round + 1, weights=weights, optimizer=optimizer, rule=remembered, attack=attack_state
        )
        measured, attack_success = self._measured(after)
        outcome = RoundOutcome(
            round=state.round,
            clients=clients,
            malicious=malicious,
            true_quantities=self.federation.partition.quantities[clients],
            claims=claims,
            verdict=verdict,
            accuracy=None if measured is None else measured.accuracy,
            attack_success=attack_success,
            class_accuracy=None if measured is None else measured.class_accuracy,
            auc=None if measured is None else measured.auc,
        )
        return after, outcome

    def _sent(
        self, state: ServerState, clients: Ids, malicious: npt.NDArray[np.bool_], claims: Floats
    ) -> tuple[list[Matrix], AttackState | None]:
        """Return each client's update, in the clients' order, and what the attack remembers; malicious claims are set.

        The updates are rows of two matrices, not stacked.
        """
        honest, early = self._honest(state, clients, malicious)
        if not malicious.any():
            return list(honest), state.attack
        round_ = _AttackedRound(self, state, clients, malicious, honest, claims)
        shape = (int(malicious.sum()), len(state.weights))
        rng = generator(self.config.seed, "simulation/attack", state.round)
        remembered = state.attack
        # Gradients of a diverged model are not finite; screening deals with what becomes of them.
        with np.errstate(over="ignore", invalid="ignore"):
            view = round_.view(knowledge_of(self._attack), early)
            if isinstance(self._attack, StatefulAttack):
                sent, remembered = self._attack(view, rng, state.attack or self._attack.init(shape[1]))
            else:
                sent = self._attack(view, rng)
            given = sent if isinstance(sent, Sent) else Sent(updates=sent)
            updates = self._checked(given.updates, shape)
            view = round_.view(self._quantity_attack.knowledge)
            planned = self._quantity_attack.claims_in_round(view, updates, claims[malicious])
        claims[malicious] = self._claimed(given.claims, planned)
        return round_.rows(updates), remembered

    def _honest(
        self, state: ServerState, clients: Ids, malicious: npt.NDArray[np.bool_]
    ) -> tuple[Matrix, dict[Reading, Matrix]]:
        """Return the honest clients' updates and, where threads can share the work, what the attack says it reads."""
        early: dict[Reading, Ids] = {}
        if self.config.threads > 1 and malicious.any():
            reads = readings_of(self._attack)
            if "own" in reads:
                early["own"] = clients[malicious]
            if "pool" in reads:
                early["pool"] = self.federation.pool(state.round)
        honest, *others = self._clients.updates_of([clients[~malicious], *early.values()], state.round)
        return honest, dict(zip(early, others, strict=True))

    def _checked(self, sent: Matrix, shape: tuple[int, int]) -> Matrix:
        found = np.shape(sent)
        if found not in (shape, shape[1:]):
            raise ValueError(
                f"attack {self.config.attack!r} returned shape {found}; give {shape}, an update for each malicious "
                f"client of the round, or {shape[1:]}, one for all of them"
            )
        return np.broadcast_to(np.asarray(sent, dtype=np.float32), shape)

    def _claimed(self, stated: Floats | None, planned: Floats) -> Floats:
        if stated is None:
            return planned
        if np.shape(stated) != planned.shape:
            raise ValueError(
                f"attack {self.config.attack!r} returned claims of shape {np.shape(stated)}; give {planned.shape}, one "
                "for each malicious client of the round, NaN where the quantity attack decides"
            )
        return np.where(np.isnan(stated), planned, stated)

    def _measured(self, state: ServerState) -> tuple[Measured | None, float | None]:
        """Return what is measured of the model, and the attack's success, where it is time to."""
        if state.round % self.config.eval_every and state.round != self.config.rounds:
            return None, None
        self._clients.load(state.weights)
        measured = self._clients.measure()
        if not isinstance(self._attack, TargetedAttack):
            return measured, None
        return measured, self._clients.attack_success(self._attack.trigger, self._attack.target)


class _AttackedRound:
    """A round as its attackers may see it: a view of just the type that an attack states."""

    def __init__(
        self,
        simulation: Simulation,
        state: ServerState,
        clients: Ids,
        malicious: npt.NDArray[np.bool_],
        honest: Matrix,
        claims: Floats,
    ) -> None:
        self._simulation, self._state = simulation, state
        self._clients, self._malicious = clients, malicious
        self._honest, self._claims = honest, claims

    def rows(self, updates: Matrix) -> list[Matrix]:
        """Return all clients' updates in order, with these of the malicious ones."""
        honest, lies = iter(self._honest), iter(updates)
        return [next(lies) if bad else next(honest) for bad in self._malicious]

    def view(self, knowledge: Knowledge, early: Mapping[Reading, Matrix] | None = None) -> AttackerView:
        """Return what an attacker with this knowledge sees, and nothing else; `early` is what was computed of it."""
        simulation, state, own = self._simulation, self._state, self._clients[self._malicious]
        updates = partial(simulation.honest_updates, round_number=state.round)
        seen: dict[str, Any] = {
            "round": state.round,
            "weights": state.weights.copy(),
            "num_sampled": len(self._clients),
            "num_malicious": len(own),
            "num_classes": simulation.dataset.num_classes,
            "own": lambda: updates(own),
            "pool": lambda: updates(simulation.federation.pool(state.round)),
            "relabelled": lambda relabel: updates(own, relabel=relabel),
            "poisoned": lambda poison: updates(own, poison=poison),
        }
        seen |= {name: partial(_given, rows) for name, rows in (early or {}).items()}
        if knowledge != "own":
            seen |= {
                "honest_updates": _read_only(self._honest),
                "honest_claims": _read_only(self._claims[~self._malicious]),
            }
        if knowledge == "rule":
            seen |= {"rule": simulation.rule, "rule_state": state.rule, "judge": self._judge}
        return VIEWS[knowledge](**seen)

    def _judge(self, updates: Matrix, claims: Floats) -> Judgement:
        everyone = self._claims.copy()
        everyone[self._malicious] = claims
        verdict = self._simulation.rule(
            self.rows(updates),
            everyone,
            self._clients.tolist(),
            state=self._state.rule,
            threads=self._simulation.config.threads,
        )
        return Judgement.of(verdict, self._malicious)


def _given(rows: Matrix) -> Matrix:
    return rows


def _read_only(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    seen = values.view()
    seen.flags.writeable = False
    return seen
