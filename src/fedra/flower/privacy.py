"""Flower's privacy wrappers, as Guard must know them."""

from __future__ import annotations

from typing import Any

import flwr.serverapp.strategy as current

from fedra.flower.inner import accountants, layers

_PRIVATE = (
    current.DifferentialPrivacyServerSideFixedClipping,
    current.DifferentialPrivacyServerSideAdaptiveClipping,
    current.DifferentialPrivacyClientSideFixedClipping,
    current.DifferentialPrivacyClientSideAdaptiveClipping,
)


def is_private(inner: Any) -> bool:
    """Tell whether one of Flower's privacy wrappers is at work."""
    return any(isinstance(strategy, _PRIVATE) for strategy in layers(inner))


def needs_equal_weights(inner: Any) -> bool:
    """Tell whether the strategy accounts for privacy, for which Flower wants all clients weighed alike."""
    return bool(accountants(inner))
