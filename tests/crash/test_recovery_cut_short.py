"""A crash during recovery itself: what the next start finds must not be a log with a hole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pylog
from pylog.config import LogConfig, RecoveryMode
from pylog.errors import KafkaStorageError
from pylog.files.durable_io import DurableIO
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from pylog.testing import ManualClock, ManualScheduler
from tests.support.batches import batch_v2, joined, plain_records
from tests.support.damage import flip
from tests.support.log_files import write_partition
from tests.support.recording_io import Fault, FaultyIO, Kind

if TYPE_CHECKING:
    from pathlib import Path

SEGMENTS = {
    base: [batch_v2(plain_records(base + 2 * i, 2)) for i in range(5)] for base in (0, 10, 20, 30)
}
DAMAGED_BATCH = 3  # of the second segment: offsets 16 and 17
CHANGES = frozenset({Kind.WRITE, Kind.TRUNCATE, Kind.REPLACE, Kind.REMOVE})


def write_damaged(directory: Path) -> None:
    partition = write_partition(directory, SEGMENTS)
    log = partition / "00000000000000000010.log"
    flip(log, len(joined(SEGMENTS[10][:DAMAGED_BATCH])) + 70)


def manager_of(directory: Path, io: DurableIO) -> LogManager:
    clock = ManualClock(1_000)
    context = LogContext(io=io, clock=clock, scheduler=ManualScheduler(clock))
    return LogManager(
        [directory],
        LogConfig(index_interval_bytes=0),
        context=context,
        recovery_mode=RecoveryMode.AS_BROKER,
    )


def recover_with_crash_at(directory: Path, number: int) -> bool:
    """Start with a disk that fails from the ``number``-th change on; whether it failed."""
    io = FaultyIO(Fault(kinds=CHANGES, at=number, forever=True))
    manager = manager_of(directory, io)
    try:
        manager.startup()
    except KafkaStorageError:
        return True
    manager.abandon()
    return False


def test_whatever_the_crash_left_the_next_start_ends_before_the_damage(tmp_path: Path) -> None:
    expected = list(range(16))
    number, has_failed = 0, True
    while has_failed:
        number += 1
        directory = tmp_path / str(number)
        write_damaged(directory)
        has_failed = recover_with_crash_at(directory, number)
        manager = manager_of(directory, DurableIO()).startup()
        log = manager.get_log(TopicPartition("orders", 0))
        assert log.log_end_offset == 16, number
        manager.shutdown()
        found = pylog.scan(directory, columns=["offset"]).to_table().column("offset").to_pylist()
        assert found == expected, number
    assert number > 10
