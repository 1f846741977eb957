"""Logs with a high watermark, and how they are cleaned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pylog

if TYPE_CHECKING:
    from pathlib import Path

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000
ORDERS = pylog.TopicPartition("orders", 0)
CHECKPOINT = "replication-offset-checkpoint"
COMPACT = {
    "cleanup.policy": "compact",
    "min.compaction.lag.ms": "0",
    "delete.retention.ms": "0",
}
TRIM = {"cleanup.policy": "delete", "retention.ms": "1000"}


def compact(logs: Path, **options: Any) -> pylog.results.PartitionCompaction:  # noqa: ANN401
    [orders] = pylog.compact(
        logs, topics=["orders"], config=COMPACT, now_ms=NOW_MS, **options
    ).partitions
    return orders


def trim(logs: Path, **options: Any) -> pylog.results.PartitionRetention:  # noqa: ANN401
    [orders] = pylog.apply_retention(
        logs, topics=["orders"], config=TRIM, now_ms=NOW_MS, **options
    ).partitions
    return orders
