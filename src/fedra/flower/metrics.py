"""Metrics of kept replies, of one form, weighted as the rule weighs them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flwr.app import MetricRecord, RecordDict

from fedra.audit import RoundReport
from fedra.flower.claims import plain_claim
from fedra.flower.layout import shared_metrics
from fedra.flower.replies import Reply


def claimed_metrics(kept: Sequence[Reply], weight_key: str, claims: Sequence[int] | None = None) -> list[MetricRecord]:
    """Return the metrics that all kept replies share, each under its claim, or under the ones given."""
    return _records(kept, claims or [plain_claim(reply.claim) for reply in kept], weight_key)


def weighted_contents(kept: Sequence[Reply], weights: Sequence[float], weight_key: str) -> list[RecordDict]:
    """Return the kept replies' metrics, each under the rule's weight instead of its claim.

    Weights are in units of examples (they add up to what the kept clients claim in all), for functions that print them.
    """
    total = sum(weights)
    if not 0 < total < math.inf:  # a rule that somebody wrote
        weights, total = [1.0] * len(kept), float(len(kept))
    unit = sum(reply.claim for reply in kept) / total
    records = _records(kept, [weight * unit for weight in weights], weight_key)
    return [RecordDict({reply.handed_as[1]: record}) for reply, record in zip(kept, records, strict=True)]


def add_round(metrics: MetricRecord | None, report: RoundReport) -> MetricRecord:
    """Return the metrics with the round's figures: how many were kept and rejected, m~, and whether it was skipped."""
    record = MetricRecord() if metrics is None else metrics
    record["fedra-kept"] = report.kept
    record["fedra-rejected"] = report.rejected
    record["fedra-skipped"] = int(report.skipped)
    if report.num_malicious is not None:
        record["fedra-num-malicious"] = report.num_malicious
    return record


def _records(kept: Sequence[Reply], weights: Sequence[float], weight_key: str) -> list[MetricRecord]:
    keys = shared_metrics(kept)
    return [
        MetricRecord({**{key: reply.metrics[key] for key in keys}, weight_key: weight})
        for reply, weight in zip(kept, weights, strict=True)
    ]
