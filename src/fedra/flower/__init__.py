"""fedra for Flower: `RobustStrategy`, any rule with any server optimizer, and `Guard`, a rule before any strategy.

Needs ``fedra[flower]``. The same two for `flwr.server.strategy`, Flower's older API, are in `fedra.flower.legacy`.
"""

try:
    import flwr  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "fedra.flower needs Flower; install it with: pip install 'fedra[flower]'", name=error.name
    ) from error

from fedra.audit import AuditLog
from fedra.flower.guard import Guard
from fedra.flower.strategy import RobustStrategy
from fedra.server import Observer, RoundRecord

__all__ = ["AuditLog", "Guard", "Observer", "RobustStrategy", "RoundRecord"]
