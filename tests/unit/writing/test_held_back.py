"""Records above the high watermark are left alone by whoever cleans up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import OffsetAboveHighWatermarkError
from tests.support.log_files import write_high_watermarks
from tests.unit.files.replicated_logs import (
    CHECKPOINT,
    COMPACT,
    NOW_MS,
    ORDERS,
    TRIM,
    compact,
    logs,
    trim,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["logs"]


def values_of(logs: Path) -> list[bytes]:
    table = pylog.scan(logs, topics=["orders"], columns=["value"]).to_table()
    return list(table.column("value").to_pylist())


def compact_by_job(logs: Path, **options: Any) -> pylog.results.PartitionCompaction:  # noqa: ANN401
    with pylog.jobs.CompactionJob(
        logs, topics=["orders"], config=COMPACT, now_ms=NOW_MS, **options
    ) as job:
        [orders] = job.commit([task.run() for task in job.tasks]).partitions
    return orders


@pytest.mark.parametrize("clean", [compact, compact_by_job])
def test_compaction_keeps_the_last_replicated_record_of_each_key(
    logs: Path, clean: Callable[..., pylog.results.PartitionCompaction]
) -> None:
    write_high_watermarks(logs, {ORDERS: 2})
    before = (logs / CHECKPOINT).read_bytes()
    planned, done = clean(logs, dry_run=True), clean(logs)
    assert planned == done
    assert values_of(logs) == [b"1", b"2", b"3"]
    assert done.held_back == pylog.results.HeldBack(2, 3, 1, 2, 4, 2)
    assert str(done.held_back).startswith(
        "1 record at offsets 2 to 2 are left alone, since they may not be replicated: "
        f"{CHECKPOINT} says that only offsets below 2 are, and the log ends at 4."
    )
    assert (logs / CHECKPOINT).read_bytes() == before


def test_retention_keeps_segments_above_the_watermark(logs: Path) -> None:
    write_high_watermarks(logs, {ORDERS: 2})
    planned, done = trim(logs, dry_run=True), trim(logs)
    assert planned.deleted == done.deleted
    assert planned.held_back == done.held_back == pylog.results.HeldBack(2, 4, 2, 2, 4, 2)
    assert values_of(logs) == [b"2", b"3"]


def test_records_are_deleted_up_to_the_watermark(logs: Path) -> None:
    write_high_watermarks(logs, {ORDERS: 2})
    for act in (pylog.jobs.plan_record_deletion, pylog.delete_records):
        with pytest.raises(OffsetAboveHighWatermarkError, match="above its high watermark 2"):
            act(logs, {ORDERS: 3})
        moved = act(logs, {ORDERS: None})[ORDERS]
        assert (moved.before, moved.after) == (0, 2)
        assert moved.held_back == pylog.results.HeldBack(2, 4, 2, 2, 4, 2)
    assert values_of(logs) == [b"2", b"3"]


def test_in_the_table_cleaning_a_segment_above_the_watermark_is_kept(logs: Path) -> None:
    pylog.alter_topic(logs, "orders", properties=TRIM)
    write_high_watermarks(logs, {ORDERS: 2})
    table = pylog.read_table(logs, "cleaning").to_pylist()
    reasons = [row["deletion_reason"] for row in table]
    assert reasons == ["retention.ms", "retention.ms", None, None]


def test_in_the_table_cleaning_what_is_above_the_watermark_is_not_dirty(logs: Path) -> None:
    pylog.alter_topic(logs, "orders", properties=COMPACT)
    ratios = []
    for high_watermark in (0, 2, 4):
        write_high_watermarks(logs, {ORDERS: high_watermark})
        rows = pylog.read_table(logs, "cleaning").to_pylist()
        ratios.append(rows[0]["dirty_ratio"])
    assert ratios == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("act", [compact, compact_by_job, trim])
def test_a_directory_whose_cluster_is_gone_is_cleaned_to_its_end(
    logs: Path, act: Callable[..., object]
) -> None:
    write_high_watermarks(logs, {ORDERS: 1})
    before = (logs / CHECKPOINT).read_bytes()
    act(logs, high_watermark="log-end")
    assert values_of(logs) == ([] if act is trim else [b"2", b"3"])
    assert (logs / CHECKPOINT).read_bytes() == before


def test_records_of_a_directory_whose_cluster_is_gone_are_deleted_to_its_end(logs: Path) -> None:
    write_high_watermarks(logs, {ORDERS: 1})
    for act in (pylog.jobs.plan_record_deletion, pylog.delete_records):
        assert act(logs, {ORDERS: None}, high_watermark="log-end")[ORDERS].after == 4


def test_another_word_for_the_watermark_is_an_error(logs: Path) -> None:
    with pytest.raises(ValueError, match="expected one of checkpoint, log-end"):
        compact(logs, high_watermark="end")
