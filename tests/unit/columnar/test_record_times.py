"""Times of the records inside a batch, as a look-up in an owned log finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.log.offsets_for_times import MAX_TIMESTAMP, OffsetForTime
from tests.support.batches import Stored, batch_v2, batch_v2_of, record_v2
from tests.unit.log.owned_log import NOW_MS, OwnedLog
from tests.unit.log.timed_logs import append_at, look_up, look_up_largest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def owned(tmp_path: Path) -> OwnedLog:
    """Return a log of two batches a segment, of which the second is indexed."""
    return OwnedLog(tmp_path, LogConfig(segment_bytes=200, index_interval_bytes=1))


def test_a_record_inside_a_batch_is_found(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path)
    times = (3, 1, 7, 5)
    records = [Stored(offset, NOW_MS + time, None, b"v") for offset, time in enumerate(times)]
    for codec in ("none", "gzip"):
        owned.log.append_as_leader(batch_v2(records, codec=codec).data)
    assert [look_up(owned, time) for time in (0, 4, 7, 8)] == [(3, 0), (7, 2), (7, 2), None]
    assert look_up_largest(owned) == (7, 2)


def test_the_first_record_of_the_largest_time_is_found(owned: OwnedLog) -> None:
    append_at(owned, 0, 1, 0)
    answer = owned.log.fetch_offset_by_timestamp(MAX_TIMESTAMP)
    assert answer == OffsetForTime(NOW_MS + 1, 1, 0)


def test_a_largest_time_that_no_record_has_is_not_found(owned: OwnedLog) -> None:
    # What a broker makes of a batch that a client marks as stamped by the log.
    record = record_v2(10, 0, None, b"v")
    data = batch_v2_of(record, base_timestamp=NOW_MS, max_timestamp=NOW_MS + 5)
    owned.log.append_as_follower(data)
    assert owned.log.fetch_offset_by_timestamp(MAX_TIMESTAMP) is None
