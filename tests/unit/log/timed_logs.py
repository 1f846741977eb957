"""Logs whose records have times, and how they are looked up."""

from __future__ import annotations

from pylog.log.offsets_for_times import MAX_TIMESTAMP
from tests.unit.log.owned_log import NOW_MS, OwnedLog, one_batch


def append_at(owned: OwnedLog, *timestamps: int, leader_epoch: int = 0) -> None:
    """Append one record for each timestamp, relative to the clock."""
    for timestamp in timestamps:
        data = one_batch(bytes(10), timestamp=NOW_MS + timestamp)
        owned.log.append_as_leader(data, leader_epoch)


def look_up(owned: OwnedLog, timestamp: int) -> tuple[int, int] | None:
    """Return timestamp relative to the clock, and offset."""
    answer = owned.log.fetch_offset_by_timestamp(NOW_MS + timestamp)
    return None if answer is None else (answer.timestamp - NOW_MS, answer.offset)


def look_up_largest(owned: OwnedLog) -> tuple[int, int] | None:
    answer = owned.log.fetch_offset_by_timestamp(MAX_TIMESTAMP)
    return None if answer is None else (answer.timestamp - NOW_MS, answer.offset)
