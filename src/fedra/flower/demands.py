"""What an inner strategy demands of replies: what is refused here costs one client, and not the round."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import flwr.server.strategy as legacy
import flwr.serverapp.strategy as current
import numpy as np

from fedra.flower.inner import inner_setting, layers
from fedra.flower.npy import view_npy
from fedra.flower.privacy import needs_equal_weights
from fedra.server.faults import short
from fedra.server.form import ModelForm
from fedra.server.replies import Reply

# Honest losses differ by orders of magnitude, between clients that fit their data and those that do not. What lies
# far beyond would be all of a loss-weighted sum, or more than its type holds.
_FARTHEST_LOSS = 1000.0
# q-FedAvg divides the sum of all updates by a sum of powers of losses that grows without bound where one nears zero.
_LEAST_LOSS = 0.1


# The metric in which a client says whether it clipped.
KEY_NORM_BIT = "norm_bit"

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


def refuse_unfit(inner: Any, replies: Sequence[Reply], form: ModelForm, sent: Mapping[str, bytes]) -> None:
    """Refuse replies that the strategy could not compute with: it would raise, or be lost, for all of them."""
    _refuse_unfit_losses(inner, replies)
    _refuse_without_norm_bit(inner, replies)
    _refuse_still(inner, replies, form, sent)


def no_model_note(inner: Any, kept: int) -> str:
    """Say that a strategy returned no model, and why if that is known."""
    note = f"the inner strategy returned no model from {kept} kept replies"
    if needs_equal_weights(inner):
        note += "; with a privacy accountant it wants one from every sampled client, so a round that drops any is lost"
    return note


def _refuse_unfit_losses(inner: Any, replies: Sequence[Reply]) -> None:
    """Refuse replies whose loss a strategy that weighs by losses, as q-FedAvg does, cannot compute with.

    A loss must be one number that is not negative (its power would be NaN), and at most 1,000 times the median of all
    replies' losses, or 1,000 where that is less than 1. One below a tenth of the median counts as that: a client that
    says its loss is zero would otherwise stop the model for everybody.
    """
    key = inner_setting(inner, "train_loss_key", None)
    if not isinstance(key, str):
        return
    usable = [reply for reply in replies if not reply.fault]
    for reply in usable:
        loss = reply.metrics.get(key)
        if not isinstance(loss, int | float):
            reply.fault = f"lacks metric {short(key)} as one number, by which the strategy weighs"
        elif loss < 0:
            reply.fault = f"metric {short(key)} is {loss:g}; a loss to weigh by is not negative"
    usable = [reply for reply in usable if not reply.fault]
    usual = statistics.median(reply.metrics[key] for reply in usable) if usable else 0.0
    limit = _FARTHEST_LOSS * max(1.0, usual)
    for reply in usable:
        loss = reply.metrics[key]
        if loss > limit:
            reply.fault = f"metric {short(key)} is {loss:g}, more than {limit:g}: far beyond most clients'"
        reply.metrics[key] = max(loss, _LEAST_LOSS * usual)


def _refuse_without_norm_bit(inner: Any, replies: Sequence[Reply]) -> None:
    """Drop replies that do not say, as most do, whether they were clipped, where the wrapper learns its norm from that.

    It raises for all replies where one lacks it.
    """
    if not any(isinstance(strategy, _LEARNING) for strategy in layers(inner)):
        return
    kinds = {id(reply): dict(reply.layout.values).get(KEY_NORM_BIT) for reply in replies if not reply.fault}
    counts = Counter(kind for kind in kinds.values() if kind is not None)
    for reply in replies:
        if counts and not reply.fault and kinds[id(reply)] != counts.most_common(1)[0][0]:
            reply.fault = f"lacks metric {KEY_NORM_BIT!r} as most clients sent it, which the inner strategy clips by"


def _refuse_still(inner: Any, replies: Sequence[Reply], form: ModelForm, sent: Mapping[str, bytes]) -> None:
    """Drop replies that do not move the model where they would be clipped on the server: Flower divides by their norm.

    The norm is taken as Flower takes it, which is zero also for moves whose squares are too small for their type.
    """
    if not any(isinstance(strategy, _CLIPPING) for strategy in layers(inner)):
        return
    before = form.read(sent, view_npy)
    with np.errstate(all="ignore"):
        for reply in replies:
            pairs = zip(reply.views, before, strict=True)
            if not reply.fault and not any(np.linalg.norm(np.subtract(*pair)) ** 2 > 0 for pair in pairs):
                reply.fault = "its update is zero, which the inner strategy cannot clip"
