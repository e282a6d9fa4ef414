"""What a strategy demands of metrics that it computes the model with."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from fedra.flower.faults import short
from fedra.flower.inner import inner_setting
from fedra.flower.replies import Reply

# Honest losses differ by orders of magnitude, between clients that fit their data and those that do not. What lies
# far beyond would be all of a loss-weighted sum, or more than its type holds.
_FARTHEST_LOSS = 1000.0
# q-FedAvg divides the sum of all updates by a sum of powers of losses that grows without bound where one nears zero.
_LEAST_LOSS = 0.1


def refuse_unfit_losses(replies: Sequence[Reply], inner: Any) -> None:
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
