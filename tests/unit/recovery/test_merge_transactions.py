"""Transactions that are open in a merged log, and markers that only a branch has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.comparison.batch_join import BatchPlace, BatchStretch
from pylog.comparison.lineage import LogLineage
from pylog.comparison.replica_log import ReplicaLog
from pylog.model import TopicPartition
from pylog.reading.discovery import discover_partitions
from pylog.recovery.merge_transactions import cut_transactions
from tests.support.batches import ABORT, COMMIT, Built, batch_v2, marker, message, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

PLACE = TopicPartition("orders", 0)


def data(start: int, producer: int) -> Built:
    return batch_v2(
        plain_records(start, 5),
        producer_id=producer,
        producer_epoch=3,
        base_sequence=0,
        is_transactional=True,
    )


def found_in(
    tmp_path: Path, result: list[Built], branch: list[Built], *, is_proven: bool = True
) -> list[tuple[object, ...]]:
    """Return open transactions of a result, where one replica has a branch after it."""
    write_partition(tmp_path / "result", {0: result})
    write_partition(tmp_path / "1", {0: [*result, *branch]})
    [directory] = discover_partitions(tmp_path / "1")
    replica = ReplicaLog(directory)
    lineage = LogLineage()
    if branch:
        start = sum(len(each.data) for each in result)
        size = sum(len(each.data) for each in branch)
        first, last = branch[0].base_offset, branch[-1].last_offset
        stretch = BatchStretch(first, last + 1, 0, 1, 1, size, 5, 9, {0: BatchPlace(0, start)})
        (lineage.branches if is_proven else lineage.unproven).append(stretch)
    found = cut_transactions(str(tmp_path / "result"), PLACE, [replica], lineage)
    path = str(tmp_path / "1" / "orders-0")
    assert {each.marker_source for each in found} <= {None, path}
    return [tuple(each[:5]) for each in found]


@pytest.mark.parametrize(
    ("result", "branch", "expected"),
    [
        ([data(0, 1), marker(5, COMMIT)], [], []),
        ([data(0, 1)], [], [(1, 3, 0, None, None)]),
        ([data(0, 1)], [marker(5, COMMIT)], [(1, 3, 0, "COMMIT", 5)]),
        ([data(0, 1)], [marker(5, ABORT)], [(1, 3, 0, "ABORT", 5)]),
        ([data(0, 1)], [marker(5, COMMIT, producer_id=2)], [(1, 3, 0, None, None)]),
        # The first one counts: what follows is of a later transaction.
        (
            [data(0, 1)],
            [marker(5, COMMIT), data(6, 1), marker(11, ABORT)],
            [(1, 3, 0, "COMMIT", 5)],
        ),
        (
            [data(0, 1), data(5, 2)],
            [marker(10, ABORT, producer_id=2)],
            [(1, 3, 0, None, None), (2, 3, 5, "ABORT", 10)],
        ),
        # Old messages and markers of leaders are passed over.
        (
            [data(0, 1)],
            [message(plain_records(5, 1)[0], magic=1), marker(6, 2), marker(7, COMMIT)],
            [(1, 3, 0, "COMMIT", 7)],
        ),
    ],
)
@pytest.mark.parametrize("is_proven", [True, False])
def test_the_marker_of_an_open_transaction_may_be_on_a_branch(
    result: list[Built],
    branch: list[Built],
    expected: list[tuple[object, ...]],
    tmp_path: Path,
    *,
    is_proven: bool,
) -> None:
    assert found_in(tmp_path, result, branch, is_proven=is_proven) == expected
