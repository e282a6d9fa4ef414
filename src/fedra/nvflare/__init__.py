"""fedra for NVFlare: `RobustAggregator`, any rule with any server optimizer as the aggregator of a FedAvg recipe.

Needs ``fedra[nvflare]``.
"""

try:
    import nvflare  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "fedra.nvflare needs NVFlare; install it with: pip install 'fedra[nvflare]'", name=error.name
    ) from error

from fedra.nvflare.aggregator import RobustAggregator
from fedra.server import Observer, RoundRecord

__all__ = ["Observer", "RobustAggregator", "RoundRecord"]
