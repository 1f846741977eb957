"""When a transaction is said to have begun before the log; golden tests hold the states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.batches import COMMIT, empty_batch_v2, marker
from tests.support.log_files import write_partition
from tests.unit.tables.transaction_rows import rows

if TYPE_CHECKING:
    from pathlib import Path


def test_a_batch_that_compaction_emptied_counts_as_a_batch(tmp_path: Path) -> None:
    batches = [
        empty_batch_v2(0, 3, producer_id=1, is_transactional=True),
        marker(4, COMMIT),
    ]
    write_partition(tmp_path, {0: batches})
    (row,) = rows(tmp_path)
    assert (row["batches"], row["records"], row["last_offset"]) == (1, 0, 3)
