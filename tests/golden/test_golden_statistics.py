"""Statistics of every golden partition are counts over what Kafka's own tools dumped of it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from tests.support.golden import GoldenRoot, Holds, golden_partitions
from tests.support.kafka_dump import dumped_batches, flag, has_batches, not_dumped

if TYPE_CHECKING:
    from tests.support.kafka_dump import Fields

LIVE = [each for each in golden_partitions() if not each.endswith("-delete")]
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
STAMPS = ("CreateTime", "LogAppendTime", "NoTimestampType")


def is_wrapper(fields: Fields) -> bool:
    return "offset" in fields and fields["compresscodec"].lower() != "none"


def start_of(fields: Fields, interval_ms: int) -> int | None:
    timestamp = next(int(fields[name]) for name in STAMPS if name in fields)
    return None if timestamp < 0 else timestamp // interval_ms * interval_ms


@pytest.mark.parametrize("partition_id", LIVE)
def test_sums_are_those_of_the_batches_that_kafka_dumps(
    golden_root: GoldenRoot, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    if not has_batches(partition) or not_dumped(partition):
        return
    found = pylog.stats(partition.directory).document()
    if found["problems"]:  # damage is left out, and what Kafka says of it is another thing
        return
    dumped = [fields for lines in dumped_batches(partition).values() for fields in lines]
    data = [fields for fields in dumped if not flag(fields, "isControl")]
    [topic] = found["topics"]
    counted = [fields for fields in data if not is_wrapper(fields)]
    assert topic["batches"] == len(data)
    assert topic["controlBatches"] == len(dumped) - len(data)
    assert topic["uncountedBatches"] == len(data) - len(counted)
    assert topic["records"] == sum(int(fields.get("count", 1)) for fields in counted)
    assert topic["bytes"] == sum(int(fields["size"]) for fields in data)
    codecs = Counter(fields["compresscodec"].lower() for fields in data)
    assert {row["codec"]: row["batches"] for row in found["codecs"]} == codecs
    intervals = {row["intervalMs"] for row in found["times"] if row["start"] is not None}
    assert len(intervals) <= 1
    assert intervals <= {MINUTE_MS, HOUR_MS}
    interval_ms = next(iter(intervals), HOUR_MS)
    starts = Counter(start_of(fields, interval_ms) for fields in data)
    assert {row["start"]: row["batches"] for row in found["times"]} == starts
    assert sum(row["sizeInBytes"] for row in found["segments"]) == topic["sizeInBytes"]


@pytest.mark.parametrize("partition_id", LIVE)
@pytest.mark.thorough(one_in=5)
def test_all_records_of_every_partition_can_be_looked_at(
    golden_root: GoldenRoot, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    headers = pylog.stats(partition.directory).document()
    everything = pylog.stats(partition.directory, read="all").document()
    if not headers["problems"] and not everything["problems"]:
        for name in ("segments", "times"):
            assert without_records(everything[name]) == without_records(headers[name])
        assert [topic["uncountedBatches"] for topic in everything["topics"]] == [0]
        expected = partition.expected_path("uncommitted")
        if expected is not None and partition.holds is Holds.EXACTLY:
            served = len(expected.read_text().splitlines())
            assert [topic["records"] for topic in everything["topics"]] == [served]


def without_records(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows without what the headers of compressed messages of v0 and v1 hide."""
    hidden = {"records", "spanningRecords"}
    return [{name: row[name] for name in row.keys() - hidden} for row in rows]
