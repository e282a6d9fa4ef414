"""What any platform's server does with a round: the form of the model, defence, server step, state, records, observers.

Knows no platform: Flower, NVFlare and the simulation translate to and from it.
"""

from fedra.server.observers import Observer, RunInfo
from fedra.server.records import RoundRecord

__all__ = ["Observer", "RoundRecord", "RunInfo"]
