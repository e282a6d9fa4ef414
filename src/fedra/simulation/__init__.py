"""Simulating a federation under attack: fast, resumable, and the same bits for the same seed."""

from fedra.simulation.config import RoundTooSmall, SimulationConfig, to_toml
from fedra.simulation.federation_file import FEDERATION_SETTINGS, federation_of, read_federation
from fedra.simulation.precedence import overridden
from fedra.simulation.round_loop import resume, simulate
from fedra.simulation.round_step import RoundOutcome, ServerState, Simulation
from fedra.simulation.run_folder import RunFolder
from fedra.simulation.run_result import SimulationResult
from fedra.simulation.toml import read_toml, underscored
from fedra.simulation.trust import check_trusted, own_code

__all__ = [
    "FEDERATION_SETTINGS",
    "RoundOutcome",
    "RoundTooSmall",
    "RunFolder",
    "ServerState",
    "Simulation",
    "SimulationConfig",
    "SimulationResult",
    "check_trusted",
    "federation_of",
    "overridden",
    "own_code",
    "read_federation",
    "read_toml",
    "resume",
    "simulate",
    "to_toml",
    "underscored",
]
