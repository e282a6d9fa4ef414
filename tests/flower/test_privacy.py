from __future__ import annotations

import flwr.serverapp.strategy as current
import pytest
from tests.flower.both import Accountant

from fedra.flower.privacy import is_private, needs_equal_weights

WRAPPERS = {
    "server fixed": lambda s: current.DifferentialPrivacyServerSideFixedClipping(s, 0.1, 1.0, 7),
    "server adaptive": lambda s: current.DifferentialPrivacyServerSideAdaptiveClipping(s, 0.1, 7),
    "client fixed": lambda s: current.DifferentialPrivacyClientSideFixedClipping(s, 0.1, 1.0, 7),
    "client adaptive": lambda s: current.DifferentialPrivacyClientSideAdaptiveClipping(s, 0.1, 7),
}


class Around(current.FedAvg):
    """Somebody's own wrapper."""

    def __init__(self, strategy) -> None:
        super().__init__()
        self.strategy = strategy


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_wrappers_are_known_also_when_wrapped(wrap):
    assert is_private(wrap(current.FedAvg()))
    assert is_private(Around(wrap(current.FedAvg())))
    assert not needs_equal_weights(wrap(current.FedAvg()))


def test_others_are_not_private():
    assert not is_private(current.FedAvg())
    assert not is_private(Around(current.FedAvg()))


def test_an_accountant_wants_equal_weights():
    strategy = current.FedAvg()
    assert not needs_equal_weights(strategy)
    strategy.accountant = Accountant()
    assert needs_equal_weights(strategy)
    assert needs_equal_weights(Around(strategy))
