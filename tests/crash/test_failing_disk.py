"""A disk that is full, or broken, at every single thing that is done to it."""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pylog.errors import KafkaStorageError
from pylog.files.file_names import CLEAN_SHUTDOWN
from pylog.testing import ManualClock
from tests.crash.script import (
    NOW_MS,
    PARTITION,
    Batch,
    Script,
    batch_bytes,
    committed_values,
    expected_values,
    manager_of,
    read_all,
)
from tests.support.recording_io import Fault, FaultyIO, ForgetfulIO, Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pylog.log.unified_log import UnifiedLog
    from tests.conftest import Counted, SomeOf

NEW_VALUE = b"appended after the disk was mended 999999"
WRITES = frozenset({Kind.WRITE})
SPACE_TAKERS = frozenset({Kind.WRITE, Kind.CREATE, Kind.MAKE_DIRECTORY, Kind.TRUNCATE})
SYNCS = frozenset({Kind.SYNC, Kind.SYNC_DIRECTORY})
NAMES = frozenset({Kind.REPLACE, Kind.REMOVE, Kind.CREATE, Kind.OPEN})


class Disk(NamedTuple):
    """How a disk fails from its n-th operation of some kinds on."""

    kinds: frozenset[Kind]
    error_number: int = errno.EIO
    forever: bool = True
    short_bytes: int | None = None

    def faults(self, at: int) -> list[Fault]:
        """Return what is to fail if the operation ``at``, counted from 1, is the first."""
        fault = Fault(kinds=self.kinds, at=at, forever=self.forever, error_number=self.error_number)
        if self.short_bytes is None:
            return [fault]
        # Part of the write is taken; the rest, which is the next write, fails.
        part = Fault(kinds=self.kinds, at=at, short_bytes=self.short_bytes)
        return [part, Fault(kinds=self.kinds, at=at + 1, forever=True, error_number=errno.ENOSPC)]


DISKS = {
    "full": Disk(SPACE_TAKERS, errno.ENOSPC),
    "full in the middle of a write": Disk(WRITES, short_bytes=7),
    "one write fails": Disk(WRITES, forever=False),
    "one sync fails": Disk(SYNCS, forever=False),
    "no sync works any more": Disk(SYNCS),
    "one name cannot be changed": Disk(NAMES, forever=False),
    "nothing works any more": Disk(frozenset(Kind)),
}


class FastFaultyIO(FaultyIO):
    """Does not wait for the disk: what these tests write is thrown away."""

    def fsync(self, path: str, descriptor: int) -> None:
        self._check(Kind.SYNC, path)

    def fsync_directory(self, path: str) -> None:
        self._check(Kind.SYNC_DIRECTORY, path)


@pytest.mark.slow
@pytest.mark.parametrize("disk", DISKS.values(), ids=list(DISKS))
@pytest.mark.thorough(one_in=3)
def test_a_failure_is_loud_and_takes_nothing_that_was_acknowledged(
    disk: Disk, tmp_path: Path, some_of: SomeOf, counted: Counted
) -> None:
    operations = count_operations(disk, tmp_path / "healthy")
    failed = survived = 0
    for at in some_of(range(1, operations + 1), one_in=19):
        directory = tmp_path / str(at)
        io = FastFaultyIO(*disk.faults(at))
        script = Script(directory, io)
        where = f"operation {at} of {operations} fails, {disk}"
        try:
            script.run()
        except KafkaStorageError:
            failed += 1
            check_process(script, io, where)
        else:
            survived += 1
            assert not disk.forever, where
        check_reopened(script, where, stays=disk.forever and Kind.REMOVE in disk.kinds)
    assert failed > survived
    counted("failing disk", {"loud failures": failed, "failures without consequences": survived})


def count_operations(disk: Disk, directory: Path) -> int:
    io = FastFaultyIO()
    Script(directory, io).run()
    return sum(io.counts[kind] for kind in disk.kinds)


def check_process(script: Script, io: FaultyIO, where: str) -> None:
    """Check what the process that met the failure does and shows."""
    manager, log = script.manager, script.log
    if manager is None:
        return
    if log is None or script.doing in {"startup", "shutdown"}:
        with suppress(KafkaStorageError):
            manager.shutdown()  # which has been tried already, or there was no log yet
        return
    if any(Kind.OPEN in fault.kinds for fault in io.faults):
        io.faults = []  # a reader needs to open files
    shown = check_found(script, log, 0, where)
    if script.truncating_to is None:
        assert log.log_end_offset == script.end, where
        assert committed_values(log) == expected_values(shown, log.log_start_offset)[1], where
    io.faults = []  # mended meanwhile: what the system dropped is dropped all the same
    with pytest.raises(KafkaStorageError):
        log.append_as_leader(batch_bytes((NEW_VALUE,)))
    changes: list[Callable[[], object]] = [
        log.roll,
        lambda: log.truncate_to(0),
        lambda: log.delete_records(0),
    ]
    if log.unflushed_messages:
        changes.append(log.flush)
    for change in changes:
        with pytest.raises(KafkaStorageError):
            change()
    assert read_all(log) == shown, where
    with pytest.raises(KafkaStorageError):
        manager.shutdown()


def check_found(script: Script, log: UnifiedLog, more: int, where: str) -> list[Batch]:
    """Return what is in the log: what was acknowledged, and at most ``more`` batches after it.

    A truncation that failed may have removed what it was asked to remove.
    """
    found = read_all(log)
    start = log.log_start_offset
    acknowledged = [batch for batch in script.batches if batch.last_offset >= start]
    limit = script.truncating_to
    if limit is None:
        assert found[: len(acknowledged)] == acknowledged, where
    else:
        kept = [batch for batch in acknowledged if batch.last_offset < limit]
        assert found[: len(kept)] == kept, where
        assert found == acknowledged[: len(found)], where
    assert len(found) <= len(acknowledged) + more, where
    return found


def check_reopened(script: Script, where: str, *, stays: bool) -> None:
    """Check what the next owner finds once the disk has been mended.

    A marker whose writing failed ``stays`` where it cannot be removed, either.
    """
    marker = script.directory / CLEAN_SHUTDOWN
    is_over = script.steps and script.steps[-1].name == "shutdown"
    assert is_over or stays or not marker.exists(), where
    manager, _ = manager_of(script.directory, ForgetfulIO(), ManualClock(NOW_MS))
    with manager:
        log = manager.get_or_create_log(PARTITION)
        found = check_found(script, log, len(script.pending), where)
        assert committed_values(log) == expected_values(found, log.log_start_offset)[1], where
        log.append_as_leader(batch_bytes((NEW_VALUE,)))
        assert read_all(log)[-1].values == (NEW_VALUE,), where
