"""A row is refused for the same reason, whether it is appended at once or staged for a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import pylog
from pylog.config import LogConfig
from pylog.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    LogStorageError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    RecordValidationError,
)
from pylog.log.log_context import LogContext
from pylog.testing import ManualClock
from pylog.validation.record_rules import TimestampRange, broken_size_rule

if TYPE_CHECKING:
    from pathlib import Path

NOW_MS = 1_700_000_000_000
AGES = pa.int64()


@pytest.mark.parametrize(
    ("properties", "columns", "error"),
    [
        (
            {"cleanup.policy": "compact"},
            {"key": pa.array([None], pa.string()), "value": ["v"]},
            RecordValidationError,
        ),
        (
            {"message.timestamp.before.max.ms": "10"},
            {"value": ["v"], "timestamp": pa.array([NOW_MS - 11], AGES)},
            InvalidTimestampError,
        ),
        (
            {"message.timestamp.after.max.ms": "10"},
            {"value": ["v"], "timestamp": pa.array([NOW_MS + 11], AGES)},
            InvalidTimestampError,
        ),
        (
            {"max.decompressed.message.bytes": "1000", "compression.type": "lz4"},
            {"value": ["v" * 1_000]},
            InvalidRecordError,
        ),
        ({"max.message.bytes": "1000"}, {"value": ["v" * 1_000]}, RecordTooLargeError),
        ({"segment.bytes": "1000"}, {"value": ["v" * 1_000]}, RecordBatchTooLargeError),
        (
            {"max.message.bytes": "900", "segment.bytes": "1000"},
            {"value": ["v" * 1_000]},
            RecordTooLargeError,
        ),
        (
            {"max.message.bytes": "1000", "segment.bytes": "900"},
            {"value": ["v" * 1_000]},
            RecordTooLargeError,
        ),
    ],
)
def test_both_ways_of_writing_refuse_a_row_with_the_same_error(
    tmp_path: Path, properties: dict[str, str], columns: dict[str, Any], error: type[Exception]
) -> None:
    rows = pa.record_batch(columns)
    context = LogContext(clock=ManualClock(NOW_MS))
    for name in ("direct", "job"):
        pylog.create_topic(tmp_path / name, "orders", 1, properties=properties)
    with pytest.raises(LogStorageError) as direct:
        pylog.write_topic(tmp_path / "direct", "orders", pa.table(rows), context=context)
    job = pylog.jobs.WriteJob(str(tmp_path / "job"), "job", topic="orders")
    with pytest.raises(LogStorageError) as staged, job.stage("task", context=context) as stage:
        stage.append(rows)
    assert type(direct.value) is type(staged.value) is error


@pytest.mark.parametrize(("before", "after"), [(0, 0), (10, 5), (2**63 - 1, 2**63 - 1)])
def test_a_timestamp_may_be_as_far_off_as_the_topic_says(before: int, after: int) -> None:
    config = LogConfig(message_timestamp_before_max_ms=before, message_timestamp_after_max_ms=after)
    allowed = TimestampRange.at(NOW_MS, config)
    lowest, highest = NOW_MS - before, min(NOW_MS + after, 2**63 - 1)
    assert allowed.has(lowest)
    assert allowed.has(highest)
    assert not allowed.has(lowest - 1)
    assert not allowed.has(highest + 1)


def test_the_first_limit_that_an_append_asks_for_is_the_one_that_is_named() -> None:
    config = LogConfig(max_message_bytes=1_000, segment_bytes=900)
    found = {size: broken_size_rule(size, config) for size in (900, 901, 1_001)}
    assert [None if each is None else each.name for each in found.values()] == [
        None,
        "segment.bytes",
        "max.message.bytes",
    ]
