"""A crash, or a disk that fails, at every single thing that retention does to the disk."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pylog.config import LogConfig
from pylog.errors import KafkaStorageError
from pylog.files.leader_epochs import EpochEntry
from pylog.testing import ManualClock
from tests.crash.script import (
    DELETE_DELAY_MS,
    IDEMPOTENT,
    NOW_MS,
    PARTITION,
    TRANSACTIONAL,
    Batch,
    Script,
    committed_values,
    config,
    expected_values,
    manager_of,
    read_all,
)
from tests.crash.test_crash_points import LOSSES, append_and_read_back, fingerprint_of
from tests.support.batches import Stored, message
from tests.support.crash_replay import Kind, Operation, replay
from tests.support.recording_io import Fault, FaultyIO, ForgetfulIO, RecordingIO

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pylog.files.durable_io import DurableIO
    from pylog.log.unified_log import UnifiedLog
    from tests.conftest import Counted, HowMany, SomeOf
    from tests.crash.test_crash_points import Loss


class Limits(NamedTuple):
    """What retention keeps, and whether files are removed later."""

    retention_bytes: int
    is_async: bool

    def delete(self, log: UnifiedLog) -> None:
        wanted = config().properties() | {"retention.bytes": str(self.retention_bytes)}
        log.update_config(LogConfig.from_properties(wanted))
        log.delete_old_segments(is_async=self.is_async)


LIMITS = {
    "some, at once": Limits(1500, is_async=False),
    "all, later": Limits(0, is_async=True),
}


@dataclass
class Before:
    """A log directory that was shut down cleanly, and what is in its log."""

    directory: Path
    batches: list[Batch]
    bases: list[int]
    end: int

    def start_after(self, limits: Limits) -> int:
        """Return where the log starts when retention is through."""
        if limits.retention_bytes == 0:
            return self.end
        sizes = [
            (self.directory / "orders-0" / f"{base:020}.log").stat().st_size for base in self.bases
        ]
        excess = sum(sizes) - limits.retention_bytes
        removed = 0
        while excess - sizes[removed] >= 0:
            excess -= sizes[removed]
            removed += 1
        assert 2 <= removed < len(sizes) - 1
        return self.bases[removed]


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Before:
    """Make a log with aborted transactions in segments that go, and in segments that stay."""
    directory = tmp_path_factory.mktemp("before") / "logs"
    script = Script(directory, ForgetfulIO())
    script.startup()
    for kind in ("abort", "commit", "abort", "abort"):
        for _ in range(2):
            script.append(2)
            script.append(2, IDEMPOTENT)
        script.append(2, TRANSACTIONAL)
        script.append(1)
        script.mark(TRANSACTIONAL, kind)
        script.append(2)
    assert script.log is not None
    bases = [segment.base_offset for segment in script.log.segments]
    assert len(bases) >= 5
    assert sum(path.stat().st_size > 0 for path in directory.glob("*/*.txnindex")) >= 2
    script.shutdown()
    return Before(directory, script.batches, bases, script.end)


class Recording(NamedTuple):
    """All operations of a run, and which of them retention made."""

    operations: list[Operation]
    of_retention: range
    checked: dict[bytes, int]
    """Where the log starts in each directory that a crash has left, by fingerprint."""


def trim(
    directory: Path, io: DurableIO, limits: Limits, count: Callable[[], int] = lambda: 0
) -> range:
    """Open the directory, let retention run, wait until files are removed, and close it."""
    clock = ManualClock(NOW_MS)
    manager, scheduler = manager_of(directory, io, clock)
    with manager:
        first = count()
        limits.delete(manager.get_log(PARTITION))
        clock.sleep(DELETE_DELAY_MS)
        scheduler.tick()
        return range(first, count() + 1)


@pytest.fixture(scope="module", params=LIMITS.values(), ids=list(LIMITS))
def limits(request: pytest.FixtureRequest) -> Limits:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def recorded(before: Before, limits: Limits, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    root = tmp_path_factory.mktemp("recorded")
    shutil.copytree(before.directory, root / "logs")
    io = RecordingIO(root)
    of_retention = trim(root / "logs", io, limits, lambda: len(io.operations))
    return Recording(io.operations, of_retention, {})


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES.values(), ids=list(LOSSES))
@pytest.mark.thorough(one_in=3)
def test_a_crash_at_any_point_leaves_a_log_without_some_of_its_oldest_segments(
    before: Before,
    limits: Limits,
    recorded: Recording,
    loss: Loss,
    tmp_path: Path,
    some_of: SomeOf,
    counted: Counted,
) -> None:
    known = recorded.checked
    failures: list[str] = []
    for count in some_of(recorded.of_retention, one_in=11):
        operations = recorded.operations[:count]
        if loss.is_torn:
            if not operations or operations[-1].kind is not Kind.WRITE:
                continue
            operations = [*operations[:-1], operations[-1].torn(len(operations[-1].data) // 2)]
        root = tmp_path / "crashed"
        shutil.copytree(before.directory, root / "logs")
        replay(
            operations,
            root,
            lose_unsynced=loss.lose_unsynced,
            names=loss.names,
            keep_lengths=loss.keep_lengths,
        )
        fingerprint = fingerprint_of(root)
        if fingerprint not in known:
            try:
                known[fingerprint] = check(root / "logs", before, limits)
            except AssertionError as error:
                where = [str(each) for each in operations[-3:]]
                failures.append(f"crash after {count} operations, {where}: {error}")
        shutil.rmtree(root)
    points = len(recorded.of_retention)
    assert not failures, f"{len(failures)} of {points}; the first:\n{failures[0]}"
    counted("crash points of retention", {"survived": points})


def check(directory: Path, before: Before, limits: Limits) -> int:
    """Open what a crash left, compare it, run retention again, use the log; return its start."""
    with manager_of(directory, ForgetfulIO(), ManualClock(NOW_MS))[0] as manager:
        log = manager.get_log(PARTITION)
        start = log.log_start_offset
        assert log.log_end_offset == before.end
        assert start in {*before.bases, before.end}
        assert start <= before.start_after(limits)
        served = [batch for batch in before.batches if batch.first_offset >= start]
        assert read_all(log) == served
        assert committed_values(log) == expected_values(served, start)[1]
    trim(directory, ForgetfulIO(), limits)
    assert [path.name for path in directory.glob("*/*.deleted")] == []
    with manager_of(directory, ForgetfulIO(), ManualClock(NOW_MS))[0] as manager:
        log = manager.get_log(PARTITION)
        assert (log.log_start_offset, log.log_end_offset) == (
            before.start_after(limits),
            before.end,
        )
        # The epoch of all records goes with them: an append gives it again.
        kept = [] if limits.retention_bytes == 0 else [EpochEntry(0, log.log_start_offset)]
        assert list(log.leader_epochs.entries) == kept
        append_and_read_back(log, "after the second run")
    return start


@pytest.mark.parametrize("kind", [Kind.REPLACE, Kind.SYNC_DIRECTORY, Kind.CREATE, Kind.REMOVE])
@pytest.mark.thorough(one_in=3)
def test_a_disk_that_fails_at_any_call_leaves_a_log_without_some_of_its_oldest_segments(
    before: Before, limits: Limits, kind: Kind, tmp_path: Path, how_many: HowMany
) -> None:
    for at in range(1, 1000, how_many(4, 1)):
        root = tmp_path / "failed"
        shutil.copytree(before.directory, root / "logs")
        io = FaultyIO(Fault(kinds=frozenset({kind}), at=at, forever=True))
        try:
            trim(root / "logs", io, limits)
        except KafkaStorageError:
            check(root / "logs", before, limits)
            shutil.rmtree(root)
        else:
            break
    assert 1 < at < 997


@pytest.mark.parametrize("loss", LOSSES.values(), ids=list(LOSSES))
@pytest.mark.thorough(one_in=3)
def test_a_log_that_loses_its_only_segment_never_starts_anew(loss: Loss, tmp_path: Path) -> None:
    script = Script(tmp_path / "before" / "logs", ForgetfulIO())
    (tmp_path / "before").mkdir()
    script.startup()
    assert script.log is not None
    # Of v1, from a leader: without leader epochs, whose file would be written, and the directory
    # synced with it.
    for offset in range(2):
        record = Stored(offset, NOW_MS, b"key", b"value")
        script.log.append_as_follower(message(record, magic=1).data)
    assert not script.log.leader_epochs.entries
    script.shutdown()
    recorded = tmp_path / "recorded"
    shutil.copytree(script.directory, recorded / "logs")
    io = RecordingIO(recorded)
    of_retention = trim(
        recorded / "logs", io, Limits(0, is_async=False), lambda: len(io.operations)
    )
    for count in of_retention:
        crashed = tmp_path / "crashed"
        shutil.copytree(script.directory, crashed / "logs")
        replay(
            io.operations[:count],
            crashed,
            lose_unsynced=loss.lose_unsynced,
            names=loss.names,
            keep_lengths=loss.keep_lengths,
        )
        directory = crashed / "logs"
        with manager_of(directory, ForgetfulIO(), ManualClock(NOW_MS))[0] as manager:
            assert manager.get_log(PARTITION).log_end_offset == 2, str(io.operations[count - 1])
        shutil.rmtree(crashed)
