"""One round: sample, compute, attack, screen and decide, step; state in, state out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from fedra.attacks import AttackerView, make_attack
from fedra.attacks.view import Matrix, Relabel
from fedra.cohort import RuleState, Verdict
from fedra.data import Dataset, load_dataset
from fedra.optimizers import OptimizerState
from fedra.rules.base import initial_state
from fedra.seeding import generator
from fedra.simulation.clients import Clients
from fedra.simulation.config import SimulationConfig
from fedra.simulation.federation import Ids, make_federation


@dataclass(frozen=True, eq=False, kw_only=True)
class ServerState:
    """All that goes from one round to the next; `rule` is what a stateful rule remembers, None for others."""

    round: int
    weights: npt.NDArray[np.float32]
    optimizer: OptimizerState
    rule: RuleState | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundOutcome:
    """What happened in a round, for the records."""

    round: int
    clients: Ids
    malicious: npt.NDArray[np.bool_]
    true_quantities: npt.NDArray[np.int64]
    claims: npt.NDArray[np.float64]
    verdict: Verdict
    accuracy: float | None

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
        self._optimizer = config.make_optimizer()
        self._clients = Clients(config, self.dataset, self.federation.partition)

    def initial_state(self) -> ServerState:
        """Return the state before the first round."""
        weights = self._clients.initial_weights()
        return ServerState(
            round=0,
            weights=weights,
            optimizer=self._optimizer.init(len(weights)),
            rule=initial_state(self.rule, len(weights)),
        )

    def step(self, state: ServerState) -> tuple[ServerState, RoundOutcome]:
        """Run one round."""
        self._clients.load(state.weights)
        clients = self.federation.sample(state.round)
        malicious = self.federation.malicious[clients]
        claims = self.federation.claims_of(clients)
        rows = self._rows(state, clients, malicious)
        verdict = self.rule(rows, claims, clients.tolist(), state=state.rule, threads=self.config.threads)
        weights, optimizer, remembered = state.weights, state.optimizer, state.rule
        if verdict.update is not None:
            remembered = verdict.state
            # A run that diverges goes on: its clients are screened out, and the records say so.
            with np.errstate(over="ignore", invalid="ignore"):
                stepped, optimizer = self._optimizer.step(weights, verdict.update, optimizer)
                weights = stepped.astype(np.float32, copy=False)
        after = ServerState(round=state.round + 1, weights=weights, optimizer=optimizer, rule=remembered)
        outcome = RoundOutcome(
            round=state.round,
            clients=clients,
            malicious=malicious,
            true_quantities=self.federation.partition.quantities[clients],
            claims=claims,
            verdict=verdict,
            accuracy=self._accuracy(after),
        )
        return after, outcome

    def _rows(self, state: ServerState, clients: Ids, malicious: npt.NDArray[np.bool_]) -> list[Matrix]:
        """Return each client's update, in the clients' order; rows of two matrices, not stacked."""
        honest = iter(self._clients.updates(clients[~malicious], state.round))
        if not malicious.any():
            return list(honest)
        own = clients[malicious]
        updates = partial(self._clients.updates, round_number=state.round)

        def relabelled(relabel: Relabel) -> Matrix:
            return updates(own, relabel=relabel)

        view = AttackerView(
            round=state.round,
            weights=state.weights.copy(),
            num_sampled=len(clients),
            num_malicious=len(own),
            num_classes=self.dataset.num_classes,
            own=lambda: updates(own),
            pool=lambda: updates(self.federation.pool(state.round)),
            relabelled=relabelled,
        )
        # Gradients of a diverged model are not finite; screening deals with what becomes of them.
        with np.errstate(over="ignore", invalid="ignore"):
            sent = self._attack(view, generator(self.config.seed, "simulation/attack", state.round))
            lies = iter(self._checked(sent, (len(own), len(state.weights))))
        return [next(lies) if bad else next(honest) for bad in malicious]

    def _checked(self, sent: Matrix, shape: tuple[int, int]) -> Matrix:
        found = np.shape(sent)
        if found not in (shape, shape[1:]):
            raise ValueError(
                f"attack {self.config.attack!r} returned shape {found}; give {shape}, an update for each malicious "
                f"client of the round, or {shape[1:]}, one for all of them"
            )
        return np.broadcast_to(np.asarray(sent, dtype=np.float32), shape)

    def _accuracy(self, state: ServerState) -> float | None:
        if state.round % self.config.eval_every and state.round != self.config.rounds:
            return None
        self._clients.load(state.weights)
        return self._clients.accuracy()
