"""Segments of one partition without validation and producers: roll, read, cut, delete.

The cases are those of Kafka's LocalLogTest; ``tests/kafka_tests.md`` says which is which.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pylog.errors import OffsetOutOfRangeError
from pylog.log.log_segment import LogOffsetMetadata
from pylog.validation.log_append_info import batches_of
from tests.support.crash_replay import Kind
from tests.support.recording_io import RecordingIO
from tests.unit.log.made_local_log import Local
from tests.unit.log.owned_log import one_batch, records_in

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    local = Local(tmp_path)
    yield local
    local.log.close_handlers()


# ---- appending and rolling


def test_an_append_moves_the_end_and_can_be_read(local: Local) -> None:
    assert (local.log.log_end_offset, local.read(0).records) == (0, b"")
    local.append(b"a", b"b")
    local.append(b"c")
    assert (local.log.log_end_offset, local.log.recovery_point) == (3, 0)
    assert [record.value for record in records_in(local.read(0).records)] == [b"a", b"b", b"c"]
    end = local.log.log_end_offset_metadata
    assert end == LogOffsetMetadata(3, 0, local.log.segments.active_segment.size_bytes)


def test_a_roll_begins_a_segment_at_the_end_and_trims_the_old_one(local: Local) -> None:
    local.append(b"a")
    old = local.log.segments.active_segment
    old.create_indexes()
    new = local.log.roll()
    assert (local.bases, new.base_offset, new.size_bytes) == ([0, 1], 1, 0)
    assert (local.directory / f"{0:020d}.index").stat().st_size == 0
    assert (local.directory / f"{0:020d}.timeindex").stat().st_size == 12
    assert local.log.log_end_offset_metadata == LogOffsetMetadata(1, 1, 0)


def test_a_roll_of_an_empty_segment_replaces_it(local: Local) -> None:
    old = local.log.segments.active_segment
    new = local.log.roll()
    assert new is local.log.segments.active_segment
    assert new is not old
    assert (local.bases, local.log.log_end_offset) == ([0], 0)
    assert f"{0:020d}.log.deleted" in local.names("*")
    local.append(b"a")
    local.pass_the_delay()
    assert local.names("*.deleted") == []
    assert local.offsets(0) == [0]


def test_a_roll_at_an_offset_above_the_end_begins_there(local: Local) -> None:
    local.append(b"a")
    assert local.log.roll(10).base_offset == 10
    assert (local.bases, local.log.log_end_offset) == ([0, 10], 1)


def test_a_roll_at_an_offset_below_the_end_begins_at_the_end(local: Local) -> None:
    local.append(b"a")
    assert local.log.roll(0).base_offset == 1


def test_a_roll_below_empty_segments_replaces_them_for_good(tmp_path: Path) -> None:
    io = RecordingIO(tmp_path)
    local = Local(tmp_path, io)
    local.append(b"a")
    for offset in (10, 20):
        local.log.roll(offset)
    before = len(io.operations)
    assert local.log.roll(3).base_offset == 3
    assert (local.bases, local.log.log_end_offset) == ([0, 3], 1)
    assert local.names("*.log*") == [
        f"{0:020d}.log",
        f"{3:020d}.log",
        f"{10:020d}.log.deleted",
        f"{20:020d}.log.deleted",
    ]
    kinds = [each.kind for each in io.operations[before:]]
    assert kinds[-1] is Kind.SYNC_DIRECTORY, "no power cut brings their names back"
    data = one_batch(b"b", base_offset=3)
    local.log.segments.active_segment.append(data, batches_of(memoryview(data)))
    local.log.update_log_end_offset(4)
    local.pass_the_delay()
    assert local.names("*.deleted") == []
    assert (local.offsets(0), local.offsets(3)) == ([0], [3])


def test_a_roll_at_the_lowest_of_several_empty_segments_replaces_all(local: Local) -> None:
    local.append(b"a")
    for offset in (10, 20):
        local.log.roll(offset)
    assert local.log.roll(10).base_offset == 10
    assert local.bases == [0, 10]
    local.pass_the_delay()
    assert local.names("*.log*") == [f"{0:020d}.log", f"{10:020d}.log"]


def test_a_roll_below_a_segment_with_records_is_an_error(local: Local) -> None:
    local.append(b"a")
    new = local.log.roll(10)
    data = one_batch(b"b", base_offset=10)
    new.append(data, batches_of(memoryview(data)))
    with pytest.raises(ValueError, match=rf"at offset 1: .*{10:020d}\.log holds {len(data)} bytes"):
        local.log.roll()
    assert local.bases == [0, 10]
    assert local.names("*.log*") == [f"{0:020d}.log", f"{10:020d}.log"]


def test_a_roll_removes_files_of_that_name_that_no_segment_owns(local: Local) -> None:
    local.append(b"a")
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        (local.directory / f"{1:020d}{suffix}").write_bytes(b"left over")
    new = local.log.roll()
    assert (new.size_bytes, local.log.segments.active_segment) == (0, new)
    local.append(b"b")
    assert local.offsets(1) == [1]


# ---- reading


def test_above_the_end_nothing_can_be_read_at_all(local: Local) -> None:
    local.append(b"a")
    with pytest.raises(OffsetOutOfRangeError) as caught:
        local.read(2)
    assert (caught.value.requested, caught.value.log_end_offset) == (2, 1)


def test_at_the_end_and_above_a_bound_a_read_is_empty(local: Local) -> None:
    local.append(b"a")
    local.append(b"b")
    end = local.read(2)
    assert (end.records, end.fetch_offset_metadata) == (b"", local.log.log_end_offset_metadata)
    bound = local.log.locate(1)
    assert bound is not None
    found = local.read(1, bound)
    assert (found.records, found.fetch_offset_metadata.message_offset) == (b"", 1)
    assert local.read(2, bound).records == b""


# ---- flushing


def test_a_flush_forces_what_is_new_and_the_directory_of_new_segments(tmp_path: Path) -> None:
    io = RecordingIO(tmp_path)
    local = Local(tmp_path, io)
    local.fill(2)
    local.append(b"a")
    local.log.mark_flushed(2)
    io.operations.clear()
    local.log.flush(5)
    synced = {each.path for each in io.operations if each.kind is Kind.SYNC}
    logs = {path.rpartition("/")[2] for path in synced if path.endswith(".log")}
    assert logs == {f"{2:020d}.log", f"{4:020d}.log"}
    assert Kind.SYNC_DIRECTORY in {each.kind for each in io.operations}
    assert local.log.recovery_point == 2
    local.log.mark_flushed(5)
    local.log.mark_flushed(3)
    assert local.log.recovery_point == 5
    io.operations.clear()
    local.log.flush(4)
    assert io.operations == []
    local.log.close_handlers()


# ---- cutting


def test_a_cut_removes_segments_and_what_follows_the_offset(local: Local) -> None:
    local.fill(3)
    local.append(b"x")
    local.log.mark_flushed(7)
    gone = local.log.truncate_to(3)
    assert [segment.base_offset for segment in gone] == [4, 6]
    assert (local.bases, local.log.log_end_offset, local.log.recovery_point) == ([0, 2], 3, 3)
    assert local.offsets(2) == [2]
    assert len(local.names("*.log.deleted")) == 2
    local.pass_the_delay()
    assert local.names("*.deleted") == []
    local.append(b"new")
    assert local.offsets(2) == [2, 3]


def test_a_cut_at_a_segments_base_leaves_it_empty(local: Local) -> None:
    local.fill(2)
    assert [segment.base_offset for segment in local.log.truncate_to(2)] == [4]
    assert (local.bases, local.log.log_end_offset) == ([0, 2], 2)
    assert local.log.segments.active_segment.size_bytes == 0


def test_a_log_that_starts_again_has_one_empty_segment(local: Local) -> None:
    local.fill(3)
    old = local.log.truncate_fully_and_start_at(5)
    assert [segment.base_offset for segment in old] == [0, 2, 4, 6]
    assert (local.bases, local.log.log_end_offset, local.log.recovery_point) == ([5], 5, 0)
    assert local.names("*.log") == [f"{5:020d}.log"]
    local.append(b"a")
    assert local.offsets(5) == [5]
    local.pass_the_delay()
    assert local.names("*.deleted") == []


def test_the_new_segment_is_there_before_the_last_old_one_goes(tmp_path: Path) -> None:
    io = RecordingIO(tmp_path)
    local = Local(tmp_path, io)
    local.fill(1)
    io.operations.clear()
    local.log.truncate_fully_and_start_at(7)
    steps = [
        (each.kind, each.path.rpartition("/")[2])
        for each in io.operations
        if each.path.endswith(".log")
    ]
    assert steps == [
        (Kind.REPLACE, f"{0:020d}.log"),
        (Kind.CREATE, f"{7:020d}.log"),
        (Kind.REPLACE, f"{2:020d}.log"),
    ]
    local.log.close_handlers()


def test_a_log_that_starts_again_where_its_only_segment_begins_has_a_new_one(local: Local) -> None:
    local.append(b"a")
    old = local.log.segments.active_segment
    local.log.truncate_fully_and_start_at(0)
    assert local.log.segments.active_segment is not old
    assert (local.bases, local.log.log_end_offset) == ([0], 0)
    assert local.names("*.log") == [f"{0:020d}.log"]
    assert old.log.read_at(0, 10_000) != b""  # who reads it reads on
    local.pass_the_delay()
    assert local.names("*.deleted") == []


@pytest.mark.parametrize("is_async", [True, False])
def test_removed_segments_are_renamed_and_deleted(local: Local, *, is_async: bool) -> None:
    local.fill(3)
    first = list(local.log.segments)[:2]
    local.log.remove_segments(first, is_async=is_async)
    assert local.bases == [4, 6]
    assert bool(local.names("*.deleted")) is is_async
    assert not (local.directory / f"{0:020d}.log").exists()
    local.pass_the_delay()
    assert local.names("*.deleted") == []


# ---- the end


def test_closing_trims_the_active_segment_and_can_be_repeated(local: Local) -> None:
    local.append(b"a")
    local.log.segments.active_segment.create_indexes()
    assert (local.directory / f"{0:020d}.index").stat().st_size == 1200
    local.log.close()
    local.log.close_handlers()
    local.log.close_handlers()
    assert (local.directory / f"{0:020d}.index").stat().st_size == 0
    assert (local.directory / f"{0:020d}.timeindex").stat().st_size == 12


def test_releasing_files_changes_none(local: Local) -> None:
    local.append(b"a")
    local.log.segments.active_segment.create_indexes()
    before = {path.name: path.stat().st_size for path in local.directory.iterdir()}
    local.log.close_handlers()
    assert {path.name: path.stat().st_size for path in local.directory.iterdir()} == before
    links = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
    assert [each for each in links if each.startswith(str(local.directory))] == []
    assert before[f"{0:020d}.index"] == 1200
