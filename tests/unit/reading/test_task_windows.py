"""A reader beside a broker that deletes, truncates and compacts what it reads."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import CorruptRecordError, LogStorageError, SegmentVanishedError
from pylog.reading import task_windows
from pylog.reading.slicing import segment_slices
from tests.support.batches import batch_v2, joined, plain_records
from tests.support.log_files import (
    move_partition,
    segment_path,
    write_log_start_offsets,
    write_meta_properties,
    write_partition,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pylog.reading.log_view import LogView
    from pylog.reading.task_range import SegmentSlice
    from tests.support.batches import Built

SEGMENTS = {
    base: [batch_v2(plain_records(base, 5)), batch_v2(plain_records(base + 5, 5))]
    for base in (0, 10, 20, 30)
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_partition(tmp_path, SEGMENTS)


class Reading:
    """A scan that has been planned, and of which the first records may have been read."""

    def __init__(self, directory: Path, *, up_to: int = 0, **options: object) -> None:
        scan = pylog.scan(directory, window_bytes=17, columns=["offset"], **options)  # type: ignore[arg-type]
        scan.plan()
        self.offsets: list[int] = []
        self._batches = scan.to_batches()
        while len(self.offsets) < up_to:
            self.offsets += next(self._batches)["offset"].to_pylist()

    def rest(self) -> list[int]:
        """Read on; return all offsets."""
        for batch in self._batches:
            self.offsets += batch["offset"].to_pylist()
        return self.offsets


def replace(directory: Path, base_offset: int, batches: Sequence[Built]) -> None:
    """Put another file in a segment's place, as compaction does: the old one stays a while."""
    path = segment_path(directory, base_offset)
    swap = path.with_name(path.name + ".swap")
    swap.write_bytes(joined(batches))
    path.rename(path.with_name(path.name + ".deleted"))
    swap.rename(path)


def delete(directory: Path, base_offset: int) -> None:
    path = segment_path(directory, base_offset)
    path.rename(path.with_name(path.name + ".deleted"))


def compacted(*offsets: int) -> list[Built]:
    return [batch_v2(plain_records(offset, 1)) for offset in offsets]


def test_a_segment_that_compaction_replaced_is_read_as_it_is_now(directory: Path) -> None:
    reading = Reading(directory)
    replace(directory, 10, compacted(12, 17))
    assert reading.rest() == [*range(10), 12, 17, *range(20, 40)]


def test_what_was_read_before_a_replacement_is_not_read_again(directory: Path) -> None:
    reading = Reading(directory, up_to=5)
    replace(directory, 0, compacted(2, 7))
    # The open file goes on being read: it is the same records, uncompacted.
    assert reading.rest() == list(range(40))


def test_segments_that_compaction_joined_are_read_from_the_first(directory: Path) -> None:
    reading = Reading(directory, up_to=5)
    replace(directory, 0, compacted(2, 11, 18))
    delete(directory, 10)
    assert reading.rest() == [*range(10), 11, 18, *range(20, 40)]


def test_a_middle_segment_without_a_successor_is_lost(directory: Path) -> None:
    reading = Reading(directory)
    delete(directory, 10)
    with pytest.raises(SegmentVanishedError, match="are lost, offsets 10 to 19;"):
        reading.rest()


@pytest.mark.parametrize("cut", ["in mid-batch", "between batches"])
@pytest.mark.parametrize("base", [0, 10, 20])
def test_a_segment_that_is_cut_is_an_error_and_never_fewer_rows(
    directory: Path, cut: str, base: int
) -> None:
    reading = Reading(directory)
    size = len(SEGMENTS[base][0].data)
    os.truncate(segment_path(directory, base), size + 20 if cut == "in mid-batch" else size)
    with pytest.raises(LogStorageError, match=r"are lost|may be missing"):
        reading.rest()
    assert reading.offsets == list(range(len(reading.offsets)))


def test_a_segment_that_was_cut_before_the_directory_was_listed_is_damage(
    directory: Path,
) -> None:
    os.truncate(segment_path(directory, 10), len(SEGMENTS[10][0].data) + 20)
    with pytest.raises(CorruptRecordError, match="records from 15 on may be missing"):
        Reading(directory).rest()


def test_the_end_of_a_log_that_is_cut_is_lost(directory: Path) -> None:
    reading = Reading(directory)
    os.truncate(segment_path(directory, 30), len(SEGMENTS[30][0].data))
    with pytest.raises(SegmentVanishedError, match="are lost, offsets 35 to 39;"):
        reading.rest()


@pytest.mark.parametrize("read_before", [0, 5])
def test_lost_records_are_skipped_with_one_warning(
    directory: Path, caplog: pytest.LogCaptureFixture, read_before: int
) -> None:
    reading = Reading(directory, up_to=read_before, start=0, fail_on_data_loss=False)
    for base in (0, 10):
        delete(directory, base)
    held = list(range(10)) if read_before else []  # the open file is still there
    assert reading.rest() == [*held, *range(20, 40)]
    (record,) = caplog.records
    first = 10 if read_before else 0
    assert f"orders-0 are lost, offsets {first} to 19;" in record.getMessage()


def test_a_read_from_the_start_begins_where_the_log_does_by_then(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reading = Reading(directory)
    for base in (0, 10):
        delete(directory, base)
    assert reading.rest() == list(range(20, 40))
    assert not caplog.records


def test_what_is_deleted_after_the_first_records_of_a_read_is_lost(directory: Path) -> None:
    reading = Reading(directory, up_to=5)
    for base in (0, 10):
        delete(directory, base)
    with pytest.raises(SegmentVanishedError, match="are lost, offsets 10 to 19;"):
        reading.rest()


def test_retention_under_a_reader_is_an_error_by_default(directory: Path) -> None:
    reading = Reading(directory, start=0)
    delete(directory, 0)
    with pytest.raises(SegmentVanishedError) as caught:
        reading.rest()
    assert str(caught.value) == (
        f"{segment_path(directory, 0)}: file is gone (deleted or renamed since the directory was "
        "listed); records of orders-0 are lost, offsets 0 to 9; the log holds offsets 10 to 39 now"
    )


def test_records_deleted_below_the_range_are_not_lost(directory: Path) -> None:
    reading = Reading(directory, start=22)
    for base in (0, 10):
        delete(directory, base)
    write_log_start_offsets(directory.parent, {("orders", 0): 21})
    assert reading.rest() == list(range(22, 40))


def test_a_directory_that_is_gone_is_reported(directory: Path) -> None:
    reading = Reading(directory)
    shutil.rmtree(directory)
    with pytest.raises(SegmentVanishedError, match=r"file is gone .*; its directory: cannot look"):
        reading.rest()


def test_a_reader_goes_on_on_the_disk_that_a_partition_was_moved_to(tmp_path: Path) -> None:
    disks = [tmp_path / "a", tmp_path / "b"]
    for disk, name in zip(disks, ("orders-0", "payments-0"), strict=True):
        write_partition(disk, SEGMENTS, name=name)
        write_meta_properties(disk)
    scan = pylog.scan(disks, window_bytes=17, topics=["orders"], columns=["offset"])
    scan.plan()
    batches = scan.to_batches()
    offsets = next(batches)["offset"].to_pylist()
    moved = move_partition(disks[0] / "orders-0", disks[1])
    everything = [batch for of_segment in SEGMENTS.values() for batch in of_segment]
    shutil.rmtree(moved)
    write_partition(disks[1], {0: everything[:3], 15: everything[3:]}, name="orders-0")
    for batch in batches:
        offsets += batch["offset"].to_pylist()
    assert offsets == list(range(40))


def test_a_file_that_vanishes_while_its_place_is_looked_for_is_looked_for_again(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading(directory)
    replace(directory, 0, compacted(2))
    slices_of = segment_slices
    replaced = [10, 20]

    def compacted_first(
        view: LogView, start: int, end: int, *, checks_gap: bool
    ) -> tuple[SegmentSlice, ...]:
        if replaced:
            base = replaced.pop()
            replace(directory, base, compacted(base + 3))
            raise SegmentVanishedError("file was replaced", str(segment_path(directory, base)))
        return slices_of(view, start, end, checks_gap=checks_gap)

    monkeypatch.setattr(task_windows, "segment_slices", compacted_first)
    assert reading.rest() == [2, 13, 23, *range(30, 40)]


def test_a_log_that_never_stops_changing_is_reported(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading(directory)
    delete(directory, 0)
    path = str(segment_path(directory, 0))

    def always_late(*_: object, **__: object) -> tuple[SegmentSlice, ...]:
        raise SegmentVanishedError("file is gone", path)

    monkeypatch.setattr(task_windows, "segment_slices", always_late)
    with pytest.raises(SegmentVanishedError):
        reading.rest()


@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
def test_a_replaced_segment_is_not_damage(directory: Path, mode: str) -> None:
    reading = Reading(directory, up_to=5, mode=mode)
    replace(directory, 10, compacted(12, 17))
    assert reading.rest() == [*range(10), 12, 17, *range(20, 40)]
