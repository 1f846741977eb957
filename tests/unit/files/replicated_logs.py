"""Logs with a high watermark, and how they are cleaned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pylog
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import mark_clean_shutdown, write_partition, write_topic_id
from tests.support.metadata_log import TOPIC_ID_TEXT

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


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Make a broker's directory, cleanly stopped: four old records of one key, a segment each."""
    segments = {
        base: [batch_v2([Stored(base, NOW_MS - DAY_MS, b"key", b"%d" % base)])] for base in range(4)
    }
    write_partition(tmp_path, segments)
    write_topic_id(tmp_path / "orders-0", TOPIC_ID_TEXT)
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=a-cluster\n")
    mark_clean_shutdown(tmp_path)
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    return tmp_path
