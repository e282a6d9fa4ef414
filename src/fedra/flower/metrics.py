"""Metrics of kept replies, weighted as the rule weighs them."""

from __future__ import annotations

from collections.abc import Sequence

from flwr.app import MetricRecord, RecordDict

from fedra.audit import RoundReport
from fedra.flower.replies import Reply


def weighted_contents(kept: Sequence[Reply], weights: Sequence[float], weight_key: str) -> list[RecordDict]:
    """Return the kept replies' metrics, each under the rule's weight instead of its claim.

    Weights are in units of examples (they add up to what the kept clients claim in all), for functions that print them.
    """
    unit = sum(reply.claim for reply in kept) / sum(weights)
    return [
        RecordDict({reply.form[1]: MetricRecord({**reply.metrics, weight_key: weight * unit})})
        for reply, weight in zip(kept, weights, strict=True)
    ]


def add_round(metrics: MetricRecord | None, report: RoundReport) -> MetricRecord:
    """Return the metrics with the round's figures: how many were kept and rejected, m~, and whether it was skipped."""
    record = MetricRecord() if metrics is None else metrics
    record["fedra-kept"] = report.kept
    record["fedra-rejected"] = report.rejected
    record["fedra-skipped"] = int(report.skipped)
    if report.num_malicious is not None:
        record["fedra-num-malicious"] = report.num_malicious
    return record
