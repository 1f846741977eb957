"""A crash, or a disk that fails, at every single thing that a cleaning does to the disk.

Each group of segments is the old one or the new one afterwards, never a mix. Of the second group's
last segment nothing stays: it is the one that goes after its group's new segment counts.
"""

from __future__ import annotations

import errno
import itertools
import shutil
from typing import TYPE_CHECKING

import pytest

from pylog.errors import KafkaStorageError, LogStorageError
from tests.crash.test_failing_disk import DISKS
from tests.crash.test_splitting import CRASHES, fingerprint_of
from tests.support.crash_replay import replay
from tests.support.recording_io import Fault, FaultyIO, Kind, RecordingIO
from tests.unit.cleaner.dirty_log import ABORT, NOW_MS, DirtyLog, Producer

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.files.durable_io import DurableIO
    from tests.conftest import Counted, HowMany
    from tests.support.crash_replay import Operation

PROPERTIES = {"segment_bytes": 200, "segment_index_bytes": 1_200, "index_interval_bytes": 0}
DELETED_LATER_MS = 60_000

State = dict[int, bytes]
"""The content of each segment's ``.log``, by base offset."""


def opened(root: Path, io: DurableIO | None = None) -> DirtyLog:
    return DirtyLog(root, io=io, **PROPERTIES)


def write_dirty(root: Path) -> None:
    """Write four segments and an active one; two of them fit one group."""
    root.mkdir(parents=True, exist_ok=True)
    dirty = opened(root)
    dirty.put((b"p", b"1"), (b"a", b"1"), (b"a", b"2"))
    dirty.put((b"p", b"2"), (b"a", b"2"), (b"b", b"1"))
    dirty.log.roll()
    dirty.put((b"a", b"3"), (b"q", b"1"))
    dirty.log.roll()
    dirty.put((b"a", b"4"))
    dirty.log.roll()
    producer = Producer(dirty, 1)
    producer.put(b"t")
    producer.end(ABORT)
    dirty.log.roll()
    dirty.put((b"a", b"5"), (b"b", b"2"))
    dirty.log.roll()
    dirty.put((b"a", b"6"))
    dirty.log.flush()
    dirty.log.close()


def clean(dirty: DirtyLog) -> None:
    """Clean it, and let the old files be removed."""
    dirty.first_dirty_offset = 0
    dirty.clean(now_ms=NOW_MS)
    dirty.clock.sleep(DELETED_LATER_MS)
    dirty.scheduler.tick()


def state_of(dirty: DirtyLog) -> State:
    return {
        segment.base_offset: segment.log.read_at(0, segment.size_bytes)
        for segment in dirty.log.segments
    }


def partition(root: Path) -> Path:
    return root / "topic-0"


class Cleaning:
    """One cleaning that nothing came into: what it did, what was before, and what may be after."""

    def __init__(self, root: Path) -> None:
        write_dirty(root)
        io = RecordingIO(root)
        dirty = opened(root, io)
        shutil.copytree(root, root.with_name("begun"))
        self.root = root.with_name("begun")
        self.old = state_of(dirty)
        start = len(io.operations)
        clean(dirty)
        self.operations = io.operations[start:]
        self.new = state_of(dirty)
        self.offsets = data_offsets(dirty)
        dirty.log.close()

    def allowed(self) -> list[State]:
        """Return the states between old and new: group after group, from the first one on.

        A segment that is no more goes after its group has been replaced.
        """
        states = [self.old]
        for base_offset in sorted(self.old):
            state = dict(states[-1])
            if base_offset in self.new:
                state[base_offset] = self.new[base_offset]
            else:
                del state[base_offset]
            states.append(state)
        return states


def data_offsets(dirty: DirtyLog) -> list[int]:
    return [
        record.offset
        for batch in dirty.batches
        if not batch.header.is_control_batch
        for record in batch.records()
    ]


def check(cleaning: Cleaning, root: Path) -> int:
    """Open what is left and clean it again; return which of the states it was."""
    dirty = opened(root)
    allowed = cleaning.allowed()
    state = state_of(dirty)
    assert state in allowed, f"segments {[(base, len(log)) for base, log in state.items()]}"
    leftovers = [path.name for path in partition(root).iterdir()]
    assert [name for name in leftovers if name.endswith((".cleaned", ".swap", ".deleted"))] == []
    for offset in range(dirty.log.log_end_offset):  # through the indexes that belong to it
        batch = dirty.log.local_log.locate(offset)
        assert batch is not None
    clean(dirty)
    assert data_offsets(dirty) == cleaning.offsets
    dirty.log.close()
    return allowed.index(state)


def test_the_cleaning_has_groups_and_a_segment_that_goes(tmp_path: Path) -> None:
    cleaning = Cleaning(tmp_path / "recorded")
    assert list(cleaning.old) == [0, 6, 8, 9, 11, 13]
    assert list(cleaning.new) == [0, 6, 9, 11, 13]
    assert all(cleaning.new[base] != cleaning.old[base] for base in (0, 6, 9))


@pytest.mark.parametrize("kind", CRASHES)
@pytest.mark.thorough(one_in=2)
def test_a_crash_leaves_each_group_old_or_new(tmp_path: Path, kind: str, counted: Counted) -> None:
    cleaning = Cleaning(tmp_path / "recorded")
    lose_unsynced, names = CRASHES[kind]
    reached = set()
    seen = set()  # directories that look the same are looked at once
    failures = []
    for count in range(len(cleaning.operations) + 1):
        root = tmp_path / "crashed"
        shutil.copytree(cleaning.root, root)
        done: list[Operation] = cleaning.operations[:count]
        replay(done, root, lose_unsynced=lose_unsynced, names=names)
        fingerprint = fingerprint_of(root)
        try:
            if fingerprint not in seen:
                reached.add(check(cleaning, root))
        except (AssertionError, LogStorageError) as error:
            failures.append(f"after {[str(each) for each in done[-3:]]}: {error}")
        seen.add(fingerprint)
        shutil.rmtree(root)
    assert failures[:3] == []
    assert {0, cleaning.allowed().index(cleaning.new)} <= reached
    survived = {"survived": len(cleaning.operations) + 1, "different": len(seen)}
    counted("crashes of a cleaning", survived)


@pytest.mark.slow
@pytest.mark.parametrize("disk", DISKS)
@pytest.mark.thorough(one_in=3)
def test_a_disk_that_fails_leaves_each_group_old_or_new(
    tmp_path: Path, disk: str, how_many: HowMany, counted: Counted
) -> None:
    cleaning = Cleaning(tmp_path / "recorded")
    survived = 0
    step = how_many(3, 1)
    for at in itertools.count(1, step):
        root = tmp_path / "failing"
        shutil.copytree(cleaning.root, root)
        io = FaultyIO()
        dirty = opened(root, io)
        io.faults = DISKS[disk].faults(at)
        try:
            clean(dirty)
        except KafkaStorageError:
            survived += 1
            failed = True
        else:
            failed = False
        io.faults = []
        dirty.log.close_handlers()
        reached = check(cleaning, root)
        shutil.rmtree(root)
        if not failed:
            assert reached == cleaning.allowed().index(cleaning.new)
            break
    assert survived * step > 5
    counted("failures of a disk in a cleaning", {"survived": survived})


@pytest.mark.parametrize("kind", [Kind.WRITE, Kind.TRUNCATE, Kind.SYNC])
def test_a_full_disk_leaves_no_files_behind(tmp_path: Path, kind: Kind) -> None:
    write_dirty(tmp_path)
    io = FaultyIO()
    dirty = opened(tmp_path, io)
    before = dirty.files
    io.faults = [Fault(kinds=frozenset({kind}), error_number=errno.ENOSPC)]
    with pytest.raises(KafkaStorageError) as caught:
        dirty.clean()
    assert caught.value.errno == errno.ENOSPC
    io.faults = []
    assert dirty.files == before
    # The log goes on: it was not changed.
    clean(dirty)
    assert (b"a", b"6") in dirty.pairs
