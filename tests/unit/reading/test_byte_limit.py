from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog import TopicPartition
from tests.support.batches import Built, Stored, batch_v2
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)


def batch(offset: int) -> Built:
    return batch_v2([Stored(offset, 1_000, b"key", b"value")])


BATCH_BYTES = len(batch(0).data)


@pytest.fixture
def tasks(tmp_path: Path) -> list[pylog.jobs.ScanTask]:
    """Return the tasks of 30 batches of a record each, and of 10; segments hold 10."""
    for partition, count in ((0, 30), (1, 10)):
        segments = {
            base: [batch(at) for at in range(base, base + 10)] for base in range(0, count, 10)
        }
        write_partition(tmp_path, segments, name=f"orders-{partition}")
    return pylog.scan(tmp_path).plan()


@pytest.mark.parametrize(
    ("batches", "one", "two"), [(40, 30, 10), (39, 29, 9), (20, 15, 5), (8, 6, 2), (1, 1, 1)]
)
def test_each_partition_gets_a_share_in_proportion_to_its_bytes(
    tasks: list[pylog.jobs.ScanTask], batches: int, one: int, two: int
) -> None:
    ends = pylog.jobs.ends_within_bytes(tasks, batches * BATCH_BYTES)
    # A cut lies at a batch that the index knows, near the byte asked for.
    assert ends[ONE] == pytest.approx(one, abs=2)
    assert ends[TWO] == pytest.approx(two, abs=1)


def test_a_range_ends_after_one_batch_at_least(tasks: list[pylog.jobs.ScanTask]) -> None:
    ends = pylog.jobs.ends_within_bytes(tasks, 1)
    assert 1 <= ends[ONE] <= 2
    assert 1 <= ends[TWO] <= 2


def test_a_limit_that_all_stay_below_changes_nothing(tasks: list[pylog.jobs.ScanTask]) -> None:
    assert pylog.jobs.ends_within_bytes(tasks, 40 * BATCH_BYTES) == {ONE: 30, TWO: 10}
    assert pylog.jobs.ends_within_bytes([], 1) == {}
