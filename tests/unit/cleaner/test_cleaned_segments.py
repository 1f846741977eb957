"""Segments that are cleaned into others: which together, what takes their place, what fails."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pylog.cleaner.cleaned_segments import group_segments_by_size
from pylog.cleaner.offset_map import OffsetMap
from pylog.log.log_segment import FetchIsolation
from tests.support.batches import Stored, batch_v2, message
from tests.unit.cleaner.dirty_log import NOW_MS, DirtyLog
from tests.unit.log.owned_log import records_in

if TYPE_CHECKING:
    from pylog.log.log_segment import LogSegment

UNLIMITED = 2**31 - 1


def segments_at(dirty: DirtyLog, *base_offsets: int) -> tuple[LogSegment, ...]:
    """Have a segment with one record at each base offset; return them."""
    for place, base_offset in enumerate(base_offsets):
        if place:
            dirty.log.roll(base_offset)
        dirty.copy(batch_v2([Stored(base_offset, NOW_MS, b"k%d" % base_offset, b"v")]).data)
    dirty.log.roll()
    return dirty.log.segments[: len(base_offsets)]


def bases(groups: list[list[LogSegment]]) -> list[list[int]]:
    return [[segment.base_offset for segment in group] for group in groups]


def test_segments_are_grouped_by_the_size_of_logs_and_indexes(tmp_path: Path) -> None:
    """Kafka: testSegmentGrouping."""
    segments = segments_at(DirtyLog(tmp_path), 0, 1, 2, 3)
    size = segments[0].size_bytes
    index = segments[0].time_index.size_in_bytes
    assert index > 0
    assert bases(group_segments_by_size(segments, UNLIMITED, UNLIMITED, 4)) == [[0, 1, 2, 3]]
    assert bases(group_segments_by_size(segments, 1, UNLIMITED, 4)) == [[0], [1], [2], [3]]
    assert bases(group_segments_by_size(segments, UNLIMITED, 1, 4)) == [[0], [1], [2], [3]]
    assert bases(group_segments_by_size(segments, 2 * size, UNLIMITED, 4)) == [[0, 1], [2, 3]]
    assert bases(group_segments_by_size(segments, 3 * size - 1, UNLIMITED, 4)) == [[0, 1], [2, 3]]
    assert bases(group_segments_by_size(segments, UNLIMITED, 3 * index, 4)) == [[0, 1, 2], [3]]


def test_no_group_spans_more_offsets_than_an_index_can_express(tmp_path: Path) -> None:
    """Kafka: testSegmentGroupingWithSparseOffsets."""
    most = 2**31 - 1
    segments = segments_at(DirtyLog(tmp_path), 0, most - 1, most + 5)
    # The second ends below the third, as far as is known without reading it.
    groups = group_segments_by_size(segments, UNLIMITED, UNLIMITED, most + 6)
    assert bases(groups) == [[0], [most - 1, most + 5]]
    segments = segments[:2]
    assert bases(group_segments_by_size(segments, UNLIMITED, UNLIMITED, most + 1)) == [
        [0, most - 1]
    ]
    assert bases(group_segments_by_size(segments, UNLIMITED, UNLIMITED, most + 2)) == [
        [0],
        [most - 1],
    ]


def test_an_empty_segment_joins_whatever_its_offset(tmp_path: Path) -> None:
    """Kafka: testSegmentGroupingWithSparseOffsetsAndEmptySegments."""
    dirty = DirtyLog(tmp_path)
    segments_at(dirty, 0)
    dirty.log.roll(2**31)
    dirty.log.roll(2**32)
    segments = dirty.log.segments[:3]
    groups = group_segments_by_size(segments, UNLIMITED, UNLIMITED, 2**32)
    assert bases(groups) == [[0, 1, 2**31]]


def test_one_segment_takes_the_place_of_a_group(tmp_path: Path) -> None:
    dirty = DirtyLog(tmp_path)
    segments = segments_at(dirty, 0, 10, 20)
    for number, segment in enumerate(segments):
        segment.set_last_modified(1_000 * number + 5)
    assert dirty.snapshot_offsets == [10, 20, 21]
    stats = dirty.clean().stats
    assert dirty.base_offsets == [0, 21]
    assert dirty.offsets == [0, 10, 20]
    assert dirty.log.segments[0].last_modified_ms() == 2_005
    assert dirty.snapshot_offsets == [21]
    assert (stats.segments_read, stats.segments_written) == (3, 1)
    assert stats.bytes_written == stats.bytes_read == dirty.log.size_bytes
    dirty.clock.sleep(dirty.config.file_delete_delay_ms)
    dirty.scheduler.tick()
    assert [name for name in dirty.directory.iterdir() if name.suffix == ".deleted"] == []


def test_a_preallocated_log_is_cut_to_what_stays(tmp_path: Path) -> None:
    """Kafka: testSizeTrimmedForPreallocatedAndCompactedTopic."""
    dirty = DirtyLog(tmp_path, preallocate=True, segment_bytes=1 << 20)
    dirty.put((b"k", b"1"))
    dirty.put((b"k", b"2"))
    dirty.roll_and_clean()
    path = dirty.directory / f"{0:020d}.log"
    assert path.stat().st_size == dirty.log.segments[0].size_bytes < 100


def test_what_reads_an_old_segment_goes_on_reading_it(tmp_path: Path) -> None:
    dirty = DirtyLog(tmp_path)
    dirty.put((b"k", b"1"))
    dirty.put((b"k", b"2"))
    dirty.log.roll()
    old = dirty.log.segments[0]
    dirty.clean()
    assert [each.value for each in records_in(old.log.read_at(0, old.size_bytes))] == [b"1", b"2"]
    read = dirty.log.read(0, 1 << 20, FetchIsolation.LOG_END)
    assert [each.offset for each in records_in(read.records)] == [1]


def disorder_in(dirty: DirtyLog, end: int) -> list[str]:
    """Read the log below ``end``, and say where offsets do not go up."""
    problems, at, last = [], 0, -1
    while at < end:
        fetched = dirty.log.read(at, 500, FetchIsolation.LOG_END)
        offsets = [record.offset for record in records_in(fetched.records)]
        offsets = [offset for offset in offsets if offset >= at]
        if not offsets:
            break
        if offsets != sorted(offsets) or offsets[0] <= last:
            problems.append(f"{offsets} after {last}")
        last = offsets[-1]
        at = last + 1
    return problems


def test_a_log_may_be_read_and_appended_to_while_it_is_cleaned(tmp_path: Path) -> None:
    dirty = DirtyLog(tmp_path, segment_bytes=2_000)
    for number in range(300):
        dirty.put((b"k%d" % (number % 7), b"%d" % number))
    dirty.log.roll()
    stop = threading.Event()
    problems: list[str] = []

    def append() -> None:
        while not stop.is_set():
            dirty.put((b"k", b"new"))

    def read() -> None:
        while not stop.is_set():
            problems.extend(disorder_in(dirty, 300))

    threads = [threading.Thread(target=target) for target in (append, read)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        dirty.first_dirty_offset = 0
        dirty.clean(end=300)
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []
    assert [offset for offset in dirty.offsets if offset < 300] == list(range(293, 300))


def test_few_files_are_open_at_a_time(tmp_path: Path) -> None:
    """A log has more segments than a process may have descriptors."""
    dirty = DirtyLog(tmp_path, segment_bytes=110)
    for number in range(60):
        dirty.put((b"k%d" % number, b"v" * 30))
    dirty.log.roll()
    for segment in dirty.log.segments:
        segment.release()
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir()))
    most = 0

    def look(_: object) -> None:
        nonlocal most
        most = max(most, len(list(descriptors.iterdir())))

    dirty.check_done = look
    dirty.clean()
    look(None)
    assert len(dirty.base_offsets) == 61
    assert most < before + 10


def test_segments_that_were_deleted_meanwhile_are_let_be(tmp_path: Path) -> None:
    """Kafka: testCleanSegmentsWithConcurrentSegmentDeletion."""
    dirty = DirtyLog(tmp_path)
    segments = segments_at(dirty, 0, 10, 20)
    gone = segments[1]
    calls = 0

    def delete_one(_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 8:  # two for each segment while the map is built, then one for each
            dirty.log.local_log.remove_segments([gone])

    dirty.check_done = delete_one
    dirty.clean(end=21)
    assert calls == 9
    assert dirty.base_offsets == [0, 21]
    dirty.clock.sleep(dirty.config.file_delete_delay_ms)
    dirty.scheduler.tick()
    assert [name for name in dirty.directory.iterdir() if name.suffix == ".deleted"] == []


class WorkStoppedError(Exception):
    pass


@pytest.mark.parametrize("calls", [1, 2, 3, 4])
def test_an_abort_leaves_the_log_as_it_was(tmp_path: Path, calls: int) -> None:
    """Kafka: testCleanSegmentsWithAbort."""
    dirty = DirtyLog(tmp_path)
    segments_at(dirty, 0, 10)
    before = dirty.files
    count = 0

    def check(_: object) -> None:
        nonlocal count
        count += 1
        if count == calls:
            raise WorkStoppedError

    dirty.check_done = check
    with pytest.raises(WorkStoppedError):
        dirty.clean()
    assert dirty.files == before


def test_v0_that_grows_begins_another_segment_where_one_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dirty = DirtyLog(tmp_path)
    for offset in range(20):
        dirty.copy(message(Stored(offset, -1, b"%d" % offset, b""), magic=0).data)
    dirty.log.roll()
    monkeypatch.setattr("pylog.cleaner.cleaned_segments.MAX_FILE_BYTES", 300)
    dirty.clean()
    assert len(dirty.base_offsets) > 2
    assert all(segment.size_bytes <= 300 for segment in dirty.log.segments)
    assert dirty.offsets == list(range(20))
    dirty.reopen_without_looking()
    assert dirty.offsets == list(range(20))


def test_a_full_index_begins_another_segment_when_an_entry_is_due(tmp_path: Path) -> None:
    """Three segments of one entry each: together five are due, and two fit. Kafka fails here."""
    dirty = DirtyLog(tmp_path, index_interval_bytes=0, segment_index_bytes=36)
    for number in range(6):
        if number and number % 2 == 0:
            dirty.log.roll()
        dirty.copy(batch_v2([Stored(number, NOW_MS + number, b"%d" % number, b"v")]).data)
    dirty.log.roll()
    dirty.clean()
    assert dirty.base_offsets == [0, 3, 6]
    assert [segment.time_index.entries for segment in dirty.log.segments] == [2, 2, 0]
    dirty.reopen_from_batches()
    assert dirty.offsets == list(range(6))


def test_a_map_without_room_for_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match=r"raise log\.cleaner\.dedupe\.buffer\.size"):
        OffsetMap(24, 0.9)


def test_nothing_to_clean_changes_nothing(tmp_path: Path) -> None:
    dirty = DirtyLog(tmp_path)
    segments_at(dirty, 0, 10)
    dirty.clean()
    before = dirty.files
    dirty.check_done = lambda _: pytest.fail("there is nothing to read")
    result = dirty.clean()
    assert result.next_dirty_offset == 11
    assert dirty.files == before
