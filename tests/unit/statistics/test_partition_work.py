"""A partition that changes while it is looked at, as those of a running broker do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pylog
from pylog.cleaner.offset_map import HashKey
from pylog.statistics.partition import PartitionWork, TopicCounts
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path


def work(counts: TopicCounts | None = None) -> PartitionWork:
    by_topic = None if counts is None else {"orders": counts}
    return PartitionWork(0, HashKey.random(), by_topic, 10, lambda _: None)


def test_segments_that_retention_removes_meanwhile_are_not_counted(tmp_path: Path) -> None:
    segments = {base: [batch_v2(plain_records(base, 10))] for base in (0, 10, 20)}
    directory = write_partition(tmp_path, segments)
    view = pylog.open_directory(tmp_path)["orders", 0]
    assert len(view.segments) == 3  # listed before the first one goes
    segment_path(directory, 0).unlink()
    counts = TopicCounts(1, 10)
    result = work(counts).run(0, view)
    assert result.headers.problems == []
    assert [each.base_offset for each in result.headers.segments] == [10, 20]
    assert result.headers.batches.data.records == 20
    assert sum(hot.records for hot in counts.hot_keys) == 10  # ten keys of the twenty, once each
    assert {record.offset for record in counts.largest} <= set(range(10, 30))


def test_a_partition_that_is_gone_is_a_problem_and_not_the_end(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {0: [batch_v2(plain_records(0, 10))]})
    view = pylog.open_directory(tmp_path)["orders", 0]
    assert view.segments
    for path in directory.iterdir():
        path.unlink()
    directory.rmdir()
    counts = TopicCounts(2, 10)
    result = work(counts).run(0, view)
    assert len(result.headers.problems) == 1
    assert counts.hot_keys == []
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 10))]})
    work(counts).run(1, pylog.open_directory(tmp_path)["orders", 0])
    assert sum(hot.records for hot in counts.hot_keys) == 10
