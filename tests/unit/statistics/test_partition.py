"""Runs of batches: every byte has a chance to be in the sample, and the budget is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from pylog.model import TopicPartition
from pylog.record.batch_scan import Window, find_batches
from pylog.statistics.partition import RUN_BYTES, RunChoice, shared_budget
from tests.support.batches import batch_v2, joined, plain_records
from tests.support.reading import as_buffer

if TYPE_CHECKING:
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
