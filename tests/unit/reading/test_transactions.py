"""Up to where all transactions are decided: the same for a look and for who follows a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.reading.transactions import FollowedTransactions, find_last_stable_offset
from tests.support.batches import ABORT, COMMIT, Built, batch_v2, marker, plain_records
from tests.support.log_files import write_log_start_offsets, write_partition

if TYPE_CHECKING:
    from pathlib import Path


def data(offset: int, producer_id: int) -> Built:
    return batch_v2(plain_records(offset, 1), producer_id=producer_id, is_transactional=True)


LOG = [
    data(0, 1),
    data(1, 2),
    marker(2, COMMIT, producer_id=1),
    data(3, 3),
    marker(4, ABORT, producer_id=2),
    data(5, 1),
    marker(6, COMMIT, producer_id=3),
    batch_v2(plain_records(7, 2)),
]
STABLE_AT = {9: 5, 8: 5, 7: 5, 6: 3, 5: 3, 4: 1, 3: 1, 2: 0, 1: 0}
"""By the offset before which markers count: the first offset that is undecided."""


@pytest.mark.parametrize("log_start", [0, 2, 5, 6, 8])
def test_a_look_and_who_follows_agree_and_never_go_below_the_log_start(
    tmp_path: Path, log_start: int
) -> None:
    directory = write_partition(tmp_path, {0: LOG})
    write_log_start_offsets(tmp_path, {("orders", 0): log_start})
    (view,) = pylog.open_directory(directory)
    expected = max(5, log_start)
    assert find_last_stable_offset(view) == expected
    assert FollowedTransactions().last_stable_offset(view) == expected


def test_markers_after_an_end_decide_for_a_read_and_not_for_who_serves_up_to_it(
    tmp_path: Path,
) -> None:
    (view,) = pylog.open_directory(write_partition(tmp_path, {0: LOG}))
    for end, stable in STABLE_AT.items():
        assert FollowedTransactions().last_stable_offset(view, end) == stable
        assert find_last_stable_offset(view, end) == min(end, 5)
