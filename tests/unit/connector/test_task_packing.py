"""Which topic-partitions share an input partition."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pyspark_pylog.options import LoadOptions
from pyspark_pylog.task_packing import pack

MB = 1 << 20


@dataclass(frozen=True)
class Range:
    """What packing looks at of a task."""

    size: int
    offsets: int = 10


def sizes_of_groups(items: list[Range], **given: str) -> list[int]:
    options = LoadOptions.parse({"path": "/logs", **given})
    groups = list(pack(items, options, lambda each: each.size, lambda each: each.offsets))
    assert [item for group in groups for item in group] == items
    return [len(group) for group in groups]


def test_up_to_200_are_left_alone_and_more_are_packed_into_at_least_200() -> None:
    assert sizes_of_groups([Range(1000)] * 200) == [1] * 200
    assert len(sizes_of_groups([Range(1000)] * 399)) == 399
    assert sizes_of_groups([Range(1000)] * 400) == [2] * 200
    assert sizes_of_groups([Range(1000)] * 1000) == [5] * 200
    assert sizes_of_groups([Range(1000)] * 1000, packPartitions="false") == [1] * 1000


def test_no_input_partition_exceeds_the_most_bytes_with_4_mb_for_each_opening() -> None:
    # 128 MB hold 32 openings, less what the bytes themselves take.
    assert max(sizes_of_groups([Range(0)] * 20_000)) == 32
    assert max(sizes_of_groups([Range(110_000)] * 20_000)) == 31
    assert max(sizes_of_groups([Range(60 * MB)] * 1000)) == 2
    assert max(sizes_of_groups([Range(61 * MB)] * 1000)) == 1
    assert max(sizes_of_groups([Range(0)] * 1000, maxPartitionBytes="8m")) == 2
    assert max(sizes_of_groups([Range(0)] * 1000, maxPartitionBytes="7m")) == 1
    # What is larger by itself shares with nobody.
    assert sizes_of_groups([Range(0), Range(200 * MB), Range(0)], packPartitions="true") == [
        1,
        1,
        1,
    ]


def test_packing_can_be_asked_for_where_there_are_few() -> None:
    assert sizes_of_groups([Range(0)] * 40, packPartitions="true") == [32, 8]
    assert sizes_of_groups([Range(0)] * 40, packPartitions="true", minPartitions="8") == [5] * 8
    assert sizes_of_groups([Range(0)], packPartitions="true") == [1]
    assert sizes_of_groups([], packPartitions="true") == []


@pytest.mark.parametrize("first", [0, 100 * MB])
def test_the_least_number_of_partitions_is_kept(first: int) -> None:
    items = [Range(first), *[Range(0)] * 300]
    assert len(sizes_of_groups(items)) >= 200
    assert len(sizes_of_groups(items, packPartitions="true", minPartitions="150")) >= 150
    assert len(sizes_of_groups(items, minPartitions="290")) >= 290
    assert len(sizes_of_groups(items, minPartitions="301")) == 301
    assert len(sizes_of_groups(items, minPartitions="1000")) == 301


def test_no_input_partition_exceeds_the_most_records() -> None:
    items = [Range(0, 10)] * 1000
    assert max(sizes_of_groups(items, maxRecordsPerPartition="30")) == 3
    assert max(sizes_of_groups(items, maxRecordsPerPartition="9")) == 1
