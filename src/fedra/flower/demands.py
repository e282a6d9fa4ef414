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


def refuse_unfit_losses(replies: Sequence[Reply], inner: Any) -> None:
    """Refuse replies whose loss a strategy that weighs by losses, as q-FedAvg does, cannot compute with.

    A loss must be one number that is not negative (its power would be NaN), and at most 1,000 times the median of all
    replies' losses, or 1,000 where that is less than 1.
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
    losses = [reply.metrics[key] for reply in usable if not reply.fault]
    limit = _FARTHEST_LOSS * max(1.0, statistics.median(losses)) if losses else 0.0
    for reply in usable:
        if not reply.fault and reply.metrics[key] > limit:
            reply.fault = (
                f"metric {short(key)} is {reply.metrics[key]:g}, more than {limit:g}: far beyond most clients'"
            )
