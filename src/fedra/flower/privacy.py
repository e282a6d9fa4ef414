"""What Flower's privacy wrappers ask of the replies that Guard hands them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import flwr.server.strategy as legacy
import flwr.serverapp.strategy as current
import numpy as np

from fedra.flower.inner import layers
from fedra.flower.model import ModelForm
from fedra.flower.replies import Reply

# The metric in which a client says whether it clipped.
KEY_NORM_BIT = "norm_bit"

_PRIVATE = (
    current.DifferentialPrivacyServerSideFixedClipping,
    current.DifferentialPrivacyServerSideAdaptiveClipping,
    current.DifferentialPrivacyClientSideFixedClipping,
    current.DifferentialPrivacyClientSideAdaptiveClipping,
)
_CLIPPING = (
    current.DifferentialPrivacyServerSideFixedClipping,
    current.DifferentialPrivacyServerSideAdaptiveClipping,
    legacy.DifferentialPrivacyServerSideFixedClipping,
    legacy.DifferentialPrivacyServerSideAdaptiveClipping,
)

_LEARNING = (
    current.DifferentialPrivacyClientSideAdaptiveClipping,
    legacy.DifferentialPrivacyClientSideAdaptiveClipping,
)


def accountants(inner: Any) -> dict[tuple[str, str], Any]:
    """Return the privacy accountants of a strategy and those it wraps, by depth and attribute."""
    return {
        (str(depth), attribute): value
        for depth, strategy in enumerate(layers(inner))
        for attribute, value in vars(strategy).items()
        if hasattr(value, "get_privacy_spent") and hasattr(value, "compose")
    }


def is_private(inner: Any) -> bool:
    """Tell whether one of Flower's privacy wrappers is at work."""
    return any(isinstance(strategy, _PRIVATE) for strategy in layers(inner))


def needs_equal_weights(inner: Any) -> bool:
    """Tell whether the strategy accounts for privacy, for which Flower wants all clients weighed alike."""
    return bool(accountants(inner))


def no_model_note(inner: Any, kept: int) -> str:
    """Say that a strategy returned no model, and why if that is known."""
    note = f"the inner strategy returned no model from {kept} kept replies"
    if needs_equal_weights(inner):
        note += "; with a privacy accountant it wants one from every sampled client, so a round that drops any is lost"
    return note


def refuse_without_norm_bit(inner: Any, replies: Sequence[Reply]) -> None:
    """Drop replies that do not say, as most do, whether they were clipped, where the wrapper learns its norm from that.

    It raises for all replies where one lacks it.
    """
    if not any(isinstance(strategy, _LEARNING) for strategy in layers(inner)):
        return
    said = {id(reply): dict(reply.layout.values).get(KEY_NORM_BIT) for reply in replies if not reply.fault}
    counts = Counter(kind for kind in said.values() if kind is not None)
    for reply in replies:
        if counts and not reply.fault and said[id(reply)] != counts.most_common(1)[0][0]:
            reply.fault = f"lacks metric {KEY_NORM_BIT!r} as most clients sent it, which the inner strategy clips by"


def refuse_still(inner: Any, replies: Sequence[Reply], form: ModelForm, sent: Mapping[str, bytes]) -> None:
    """Drop replies that do not move the model where they would be clipped on the server: Flower divides by their norm.

    The norm is taken as Flower takes it, which is zero also for moves whose squares are too small for their type.
    """
    if not any(isinstance(strategy, _CLIPPING) for strategy in layers(inner)):
        return
    before = form.read(sent)
    with np.errstate(all="ignore"):
        for reply in replies:
            pairs = zip(reply.views, before, strict=True)
            if not reply.fault and not any(np.linalg.norm(np.subtract(*pair)) ** 2 > 0 for pair in pairs):
                reply.fault = "its update is zero, which the inner strategy cannot clip"
