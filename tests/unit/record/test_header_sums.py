"""What the headers of batches add up to."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from tests.support.batches import COMMIT, marker
from tests.support.log_files import write_partition
from tests.unit.tables.transaction_rows import data, rows

if TYPE_CHECKING:
    from pathlib import Path


def test_sizes_batches_and_records_are_those_of_the_data(tmp_path: Path) -> None:
    batches = [data(0), data(2, sequence=6, count=3), marker(5, COMMIT)]
    write_partition(tmp_path, {0: batches})
    (row,) = rows(tmp_path)
    assert row == {
        "topic": "orders",
        "partition": 0,
        "producer_id": 1,
        "producer_epoch": 3,
        "first_offset": 0,
        "last_offset": 4,
        "state": "committed",
        "marker_offset": 5,
        "size_in_bytes": len(batches[0].data) + len(batches[1].data),
        "batches": 2,
        "records": 5,
        "begins_before_log_start": False,
        "first_timestamp": dt.datetime(1970, 1, 1, 0, 0, 1, 1000, tzinfo=dt.UTC),
        "marker_timestamp": dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC),
    }
