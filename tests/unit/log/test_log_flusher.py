"""Forcing a log to disk: when, and up to where the recovery point says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.errors import KafkaStorageError
from tests.support.recording_io import Fault, FaultyIO, Kind, RecordingIO
from tests.unit.log.owned_log import NOW_MS, OwnedLog

if TYPE_CHECKING:
    from pathlib import Path


def test_a_roll_flushes_what_lies_before_in_the_background(owned: OwnedLog) -> None:
    owned.append(b"a", b"b")
    owned.log.roll()
    assert owned.log.recovery_point == 0
    owned.scheduler.tick()
    assert owned.log.recovery_point == 2


def test_the_files_of_an_empty_active_segment_are_forced_at_a_shutdown(tmp_path: Path) -> None:
    io = RecordingIO(tmp_path)
    owned = OwnedLog(tmp_path, io=io)
    owned.append(b"Test")
    owned.log.roll()
    new = "topic-0/00000000000000000001"

    def synced() -> set[str]:
        return {each.path for each in io.operations if each.kind is Kind.SYNC}

    owned.log.flush()
    assert f"{new}.log" not in synced()
    owned.log.flush(includes_end=True)
    assert {f"{new}.log", f"{new}.index", f"{new}.timeindex"} <= synced()
    assert owned.log.recovery_point == owned.log.log_end_offset == 1


def test_the_recovery_point_stays_where_the_snapshot_of_a_roll_cannot_be_forced(
    tmp_path: Path,
) -> None:
    io = FaultyIO()
    owned = OwnedLog(tmp_path, io=io)
    owned.append(b"a", b"b")
    owned.log.roll()
    io.faults.append(Fault(kinds=frozenset({Kind.SYNC}), path_end=".snapshot"))
    with pytest.raises(KafkaStorageError):
        owned.scheduler.tick()
    assert owned.log.recovery_point == 0


def test_no_more_messages_than_configured_are_left_unflushed(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(flush_messages=3))
    owned.append(b"a", b"b")
    assert (owned.log.recovery_point, owned.log.unflushed_messages) == (0, 2)
    owned.clock.sleep(10)
    owned.append(b"c", b"d")
    assert (owned.log.recovery_point, owned.log.unflushed_messages) == (4, 0)
    assert owned.log.last_flushed_ms == NOW_MS + 10


def test_a_flush_never_lowers_the_recovery_point(owned: OwnedLog) -> None:
    owned.append_numbers(5)
    owned.log.flush(4)
    owned.log.flush(2)
    assert owned.log.recovery_point == 4
