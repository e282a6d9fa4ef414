"""Simulating a federation under attack: fast, resumable, and the same bits for the same seed."""

from fedra.simulation.config import SimulationConfig, read_toml, to_toml
from fedra.simulation.folder import RunFolder
from fedra.simulation.rounds import RoundOutcome, ServerState, Simulation
from fedra.simulation.run import Progress, SimulationResult, resume, simulate
from fedra.simulation.trust import check_trusted, own_code

__all__ = [
    "Progress",
    "RoundOutcome",
    "RunFolder",
    "ServerState",
    "Simulation",
    "SimulationConfig",
    "SimulationResult",
    "check_trusted",
    "own_code",
    "read_toml",
    "resume",
    "simulate",
    "to_toml",
]
