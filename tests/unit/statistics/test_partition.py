"""Runs of batches: every byte has a chance to be in the sample, and the budget is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

import pylog
from pylog.cleaner.offset_map import HashKey
from pylog.model import TopicPartition
from pylog.record.batch_scan import Window, find_batches
from pylog.statistics.partition import (
    RUN_BYTES,
    PartitionWork,
    RunChoice,
    TopicCounts,
    shared_budget,
)
from tests.support.batches import batch_v2, joined, plain_records
from tests.support.log_files import segment_path, write_partition
from tests.support.reading import as_buffer

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.statistics.partition import BatchRun

BATCHES = [batch_v2(plain_records(10 * place, 10, value_size=900)) for place in range(300)]


def window(position: int, count: int) -> Window:
    return Window.of(find_batches(as_buffer(joined(BATCHES[:count]))), "0.log", position)


def starts() -> set[int]:
    found, at = {0}, 0
    for built in BATCHES:
        at += len(built.data)
        found.add(at)
    return found


def test_a_run_is_whole_batches_within_its_window() -> None:
    places = starts()
    for number in range(40):
        choice = RunChoice(TopicPartition("orders", number))
        choice.offer(3, window(1_000, 300))
        [(_, run)] = choice.runs()
        assert run.segment == 3
        assert {run.position - 1_000, run.end_position - 1_000} <= places
        assert 0 < run.size_bytes <= RUN_BYTES


def test_a_batch_that_is_larger_than_a_run_is_one() -> None:
    data = batch_v2(plain_records(0, 1, value_size=2 * RUN_BYTES)).data
    choice = RunChoice(TopicPartition("orders", 0))
    choice.offer(0, Window.of(find_batches(as_buffer(data)), "0.log", 0))
    [(_, run)] = choice.runs()
    assert run.size_bytes == len(data)


def test_larger_windows_come_first_more_often() -> None:
    first: list[BatchRun] = []
    for number in range(300):
        choice = RunChoice(TopicPartition("orders", number))
        choice.offer(0, window(0, 2))
        choice.offer(1, window(0, 20))
        first.append(choice.runs()[0][1])
    assert 0.83 < sum(run.segment for run in first) / 300 < 0.97  # 10 in 11


@given(
    st.lists(st.integers(0, 1_000_000), max_size=30), st.integers(1, 500_000), st.integers(1, 9_999)
)
def test_a_budget_is_shared_by_size_and_never_exceeded(
    sizes: list[int], budget: int, least: int
) -> None:
    shares = shared_budget(sizes, budget, least)
    assert sum(shares) <= budget
    assert all(share <= size for share, size in zip(shares, sizes, strict=True))
    if sizes and max(sizes) > 0:
        assert shares[sizes.index(max(sizes))] > 0


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
