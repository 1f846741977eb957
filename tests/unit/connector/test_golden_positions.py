"""Where options lead in what real brokers wrote is where Kafka said; no Spark is running."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pyspark_pylog import DefaultSource
from pyspark_pylog.batch_reader import TaskPartition
from tests.support.golden import Holds, Isolation, golden_partitions, read_expected

if TYPE_CHECKING:
    from tests.support.golden import GoldenPartition, GoldenRoot

PARTITIONS = golden_partitions(Holds.EXACTLY, Holds.MORE_AT_THE_START)
# Kafka's answers there depend on modification times of files that are not the brokers' any more.
BY_MODIFICATION_TIME = ("mixed-magic", "message-format-version")
ANSWERS = {
    "uncommitted": ("latest", "offsetsForTimes"),
    "committed": ("latestReadCommitted", "offsetsForTimesReadCommitted"),
}


def planned(
    partition: GoldenPartition, isolation: Isolation, **options: str
) -> tuple[int, int] | None:
    """Return start and end of the only input partition; None where there is none."""
    source = DefaultSource(
        {
            "path": str(partition.directory),
            "subscribe": partition.topic,
            "isolationLevel": f"read_{isolation}",
            "startingOffsetsByTimestampStrategy": "latest",
            **options,
        }
    )
    partitions = source.reader(source.schema()).partitions()
    if not partitions:
        return None
    [each] = partitions
    assert isinstance(each, TaskPartition)
    (task,) = each.tasks
    return task.start_offset, task.end_offset


def offsets_of(partition: GoldenPartition) -> dict[str, Any]:
    if partition.offsets is None:
        pytest.fail(f"{partition} has no offsets.json")
    return dict(partition.offsets)


def latest_of(offsets: dict[str, Any], isolation: Isolation) -> int:
    latest = offsets[ANSWERS[isolation][0]]
    # Brokers before 0.11 know no transactions and no such offset.
    return int(offsets["latest"] if latest is None else latest)


def allowed(partition: GoldenPartition, start: int, end: int) -> list[tuple[int, int] | None]:
    """Return what may be planned: nothing at all where no record lies between the offsets."""
    path = partition.expected_path("uncommitted")
    assert path is not None
    holds_records = any(start <= line["offset"] < end for line in read_expected(path))
    return [(start, end)] if holds_records else [(start, end), None]


def is_past(partition: GoldenPartition, time: int, latest: int) -> bool:
    """Tell whether there is a record as late as ``time`` below offset ``latest``."""
    path = partition.expected_path("uncommitted")
    assert path is not None
    lines = read_expected(path)
    return any(line["timestamp"] >= time and line["offset"] < latest for line in lines)


@pytest.mark.parametrize("isolation", ["uncommitted", "committed"])
@pytest.mark.parametrize("partition_id", PARTITIONS)
def test_a_read_goes_from_the_earliest_to_the_latest_offset_that_kafka_gave(
    golden_root: GoldenRoot, partition_id: str, isolation: Isolation
) -> None:
    partition = golden_root.partition(partition_id)
    offsets = offsets_of(partition)
    earliest, latest = offsets["earliest"], latest_of(offsets, isolation)
    assert planned(partition, isolation) in allowed(partition, earliest, latest)


@pytest.mark.parametrize("isolation", ["uncommitted", "committed"])
@pytest.mark.parametrize(
    "partition_id",
    [each for each in PARTITIONS if not any(x in each for x in BY_MODIFICATION_TIME)],
)
@pytest.mark.thorough(one_in=5)
def test_a_timestamp_leads_to_the_offset_that_kafka_gave(
    golden_root: GoldenRoot, partition_id: str, isolation: Isolation
) -> None:
    partition = golden_root.partition(partition_id)
    offsets = offsets_of(partition)
    earliest, latest = offsets["earliest"], latest_of(offsets, isolation)
    for time, answer in (offsets.get(ANSWERS[isolation][1]) or {}).items():
        if answer is not None and "error" in answer:
            continue  # 2^63 ms and the like
        if answer is None and is_past(partition, int(time), latest):
            # Kafka took an emptied segment's modification time for its largest timestamp, looked
            # for the record there, and found none.
            assert partition.scenario.startswith(("compacted", "crash-mid-clean"))
            continue
        offset = latest if answer is None else answer["offset"]
        start = planned(partition, isolation, startingTimestamp=time)
        assert start in allowed(partition, offset, latest), time
        end = planned(partition, isolation, endingTimestamp=time)
        assert end in allowed(partition, earliest, offset), time
