"""Too short, wrong, gone: what a scan says of segments that are not what they should be."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import CorruptRecordError, LogDirectoryError, SegmentVanishedError
from tests.support.batches import (
    Built,
    batch_v2,
    batch_v2_of,
    empty_batch_v2,
    joined,
    message,
    plain_records,
    record_v2,
    with_bad_crc,
)
from tests.support.log_files import segment_path, write_partition, write_segment
from tests.support.reading import scanned

if TYPE_CHECKING:
    from pathlib import Path

FIRST = [batch_v2(plain_records(0, 5)), batch_v2(plain_records(5, 5))]
SECOND = [batch_v2(plain_records(10, 5)), batch_v2(plain_records(15, 5))]
THIRD = [batch_v2(plain_records(20, 5)), batch_v2(plain_records(25, 5))]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_partition(tmp_path, {0: FIRST, 10: SECOND, 20: THIRD})


def offsets(directory: Path, **options: object) -> list[int]:
    return [record.offset for record in scanned(directory, **options)]


def damage(directory: Path, **options: object) -> CorruptRecordError:
    with pytest.raises(CorruptRecordError) as caught:
        scanned(directory, **options)
    return caught.value


def end_offset(directory: Path) -> int:
    return pylog.open_directory(directory)["orders", 0].log_end_offset


def test_a_sound_log_is_read_whole(directory: Path) -> None:
    assert offsets(directory) == list(range(30))
    assert end_offset(directory) == 30


@pytest.mark.parametrize("cut", [1, 50, 61, 70])
def test_a_torn_last_segment_ends_normally(directory: Path, cut: int) -> None:
    path = segment_path(directory, 20)
    os.truncate(path, path.stat().st_size - cut)
    assert offsets(directory) == list(range(25))
    assert end_offset(directory) == 25


@pytest.mark.parametrize("zeros", [1, 16, 17, 1_000, 2_000_000])
def test_a_preallocated_last_segment_ends_where_its_batches_do(directory: Path, zeros: int) -> None:
    with segment_path(directory, 20).open("ab") as file:
        file.write(bytes(zeros))
    assert offsets(directory) == list(range(30))
    assert end_offset(directory) == 30


def test_a_hole_of_gigabytes_after_the_last_batch_costs_nothing(directory: Path) -> None:
    os.truncate(segment_path(directory, 20), 1 << 40)
    assert offsets(directory) == list(range(30))


def test_anything_else_after_the_last_batch_is_damage(directory: Path) -> None:
    path = segment_path(directory, 20)
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"\xff" * 40)
    error = damage(directory)
    assert (error.path, error.position) == (str(path), size)
    with pytest.raises(CorruptRecordError):
        end_offset(directory)


def test_a_middle_segment_that_is_torn_is_damage(directory: Path) -> None:
    path = segment_path(directory, 10)
    position = len(SECOND[0].data)
    os.truncate(path, path.stat().st_size - 1)
    error = damage(directory)
    missing = len(SECOND[1].data) - 1
    assert str(error) == (
        f"{path} at byte {position}: whole batches end {missing} bytes before they should; the "
        "next segment begins at offset 20, so records from 15 on may be missing"
    )
    assert offsets(directory, end=15) == list(range(15))
    assert offsets(directory, start=20) == list(range(20, 30))


@pytest.mark.parametrize("tail", [bytes(500), SECOND[1].data[:30], b"\x00"])
def test_a_middle_segment_whose_rest_holds_no_offset_is_read(directory: Path, tail: bytes) -> None:
    with segment_path(directory, 10).open("ab") as file:
        file.write(tail)
    assert offsets(directory) == list(range(30))


def test_a_middle_segment_may_be_empty_or_begin_late_after_compaction(tmp_path: Path) -> None:
    late = [batch_v2(plain_records(13, 2)), empty_batch_v2(16, 18)]
    directory = write_partition(
        tmp_path, {0: [], 10: late, 20: [], 30: [batch_v2(plain_records(34, 1))]}
    )
    assert offsets(directory) == [13, 14, 34]
    assert offsets(directory, start=14) == [14, 34]
    assert offsets(directory, start=15, end=34) == []
    view = pylog.open_directory(directory)["orders", 0]
    assert (view.log_start_offset, view.log_end_offset) == (0, 35)


def test_an_empty_last_segment_ends_at_its_name(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {0: FIRST, 77: []})
    assert offsets(directory) == list(range(10))
    assert end_offset(directory) == 77


def test_a_partition_may_be_one_empty_segment(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {60: []})
    view = pylog.open_directory(directory)["orders", 0]
    assert (view.log_start_offset, view.log_end_offset) == (60, 60)
    assert offsets(directory) == []


@pytest.mark.parametrize("which", range(6))
def test_a_wrong_checksum_is_damage_wherever_the_batch_lies(tmp_path: Path, which: int) -> None:
    batches = [*FIRST, *SECOND, *THIRD]
    batches[which] = with_bad_crc(batches[which])
    directory = write_partition(
        tmp_path, {0: batches[:2], 10: batches[2:4], 20: batches[4:]}, with_index=False
    )
    error = damage(directory)
    assert re.search(r": batch CRC stored 0x[0-9a-f]{8}, computed 0x[0-9a-f]{8}$", str(error))
    assert error.path == str(segment_path(directory, which // 2 * 10))
    assert error.position == (len(batches[which - 1].data) if which % 2 else 0)
    assert offsets(directory, end=5 * which) == list(range(5 * which))
    assert offsets(directory, start=5 * which + 5) == list(range(5 * which + 5, 30))


def test_a_wrong_checksum_of_a_legacy_message_is_damage(tmp_path: Path) -> None:
    messages = [message(record, magic=1) for record in plain_records(0, 3)]
    messages[1] = with_bad_crc(messages[1])
    error = damage(write_partition(tmp_path, {0: messages}))
    assert error.position == len(messages[0].data)


def test_the_rows_before_damage_are_given(tmp_path: Path) -> None:
    batches = [*FIRST, with_bad_crc(SECOND[0])]
    directory = write_partition(tmp_path, {0: batches}, with_index=False)
    batch_stream = pylog.scan(directory).to_batches()
    assert next(batch_stream).column("offset").to_pylist() == list(range(10))
    with pytest.raises(CorruptRecordError):
        next(batch_stream)


def _break_size(directory: Path, base_offset: int, batches: list[Built]) -> None:
    """Break the size of the second batch."""
    path = segment_path(directory, base_offset)
    data = bytearray(path.read_bytes())
    at = len(batches[0].data)
    data[at + 8 : at + 12] = b"\xff\xff\xff\x00"
    path.write_bytes(data)


def _until_error(
    directory: Path,
    **options: Any,  # noqa: ANN401 - of `pylog.scan`
) -> tuple[list[int], str | None]:
    """Return the offsets that a scan gives, and the error that ends it."""
    found: list[int] = []
    try:
        for batch in pylog.scan(directory, **options).to_batches():
            found += batch.column("offset").to_pylist()
    except CorruptRecordError as error:
        return found, str(error.path)
    return found, None


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize(("base_offset", "batches"), [(10, SECOND), (20, THIRD)])
def test_what_is_before_a_broken_size_is_given_before_the_error(
    directory: Path, base_offset: int, batches: list[Built], isolation: str
) -> None:
    _break_size(directory, base_offset, batches)
    error = str(segment_path(directory, base_offset))
    before = base_offset + 5

    def found(**options: Any) -> tuple[list[int], str | None]:  # noqa: ANN401 - of `pylog.scan`
        return _until_error(directory, isolation=isolation, **options)

    everything = list(range(before)), error
    assert found() == everything
    assert found(max_partition_bytes=100) == everything
    assert found(max_records_per_partition=3) == everything
    assert found(start=before - 2, end=before + 2) == ([before - 2, before - 1], error)
    # Of a last segment nobody knows what comes behind it.
    for start in (before, before + 2, *((30, "latest") if batches is THIRD else ())):
        assert found(start=start) == ([], error)
    # What is asked for lies before it.
    assert found(end=before - 1) == (list(range(before - 1)), None)
    assert found(limit=before) == (list(range(before)), None)
    assert found(where=pylog.RecordFilter(max_offset=before - 2)) == (
        list(range(before - 1)),
        None,
    )
    assert found(where=pylog.RecordFilter(min_timestamp=1 << 50)) == ([], error)


def test_a_broken_size_hides_which_records_are_the_last_and_how_many_there_are(
    directory: Path,
) -> None:
    _break_size(directory, 20, THIRD)
    for look in (
        pylog.scan(directory).count,
        lambda: pylog.scan(directory).last(3),
        lambda: pylog.read_table(directory, "latest").to_table(),
    ):
        with pytest.raises(CorruptRecordError, match="batch size is -256"):
            look()


def test_a_chosen_segment_is_read_whatever_a_later_one_holds(directory: Path) -> None:
    _break_size(directory, 20, THIRD)
    assert offsets(segment_path(directory, 10)) == list(range(10, 20))
    with pytest.raises(CorruptRecordError):
        offsets(segment_path(directory, 20))


def test_a_count_does_not_look_at_checksums_of_batches_it_takes_whole(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {0: [FIRST[0], with_bad_crc(FIRST[1])]}, with_index=False)
    assert pylog.scan(directory).count() == 10
    with pytest.raises(CorruptRecordError):
        pylog.scan(directory, end=7).count()


def test_records_that_break_the_format_under_a_right_checksum_are_reported(tmp_path: Path) -> None:
    bad = batch_v2_of(record_v2(0, 0, None, None) + b"x", base_offset=5)
    built = Built(bad, (), 2, 5, 5)
    directory = write_partition(tmp_path, {0: [FIRST[0], built]})
    with pytest.raises(pylog.LogStorageError) as caught:
        scanned(directory)
    path, position = segment_path(directory, 0), len(FIRST[0].data)
    reason = "bytes remain after the last record that the batch counts"
    assert str(caught.value).startswith(f"{path} at byte {position}: {reason}")


@pytest.mark.parametrize(
    ("batches", "text"),
    [
        (
            [FIRST[1], FIRST[0]],
            "batch has offsets 0 to 4, expected from 10 on and below 20",
        ),
        (
            [batch_v2(plain_records(0, 5)), batch_v2(plain_records(4, 5))],
            "batch has offsets 4 to 8, expected from 5 on and below 20",
        ),
        ([batch_v2(plain_records(18, 5))], "batch has offsets 18 to 22, expected from 0 on"),
        (
            [batch_v2(plain_records(3, 1), last_offset=2)],
            "batch has offsets 3 to 2, expected from 0 on",
        ),
    ],
)
def test_offsets_that_go_back_or_leave_the_segment_are_damage(
    tmp_path: Path, batches: list[Built], text: str
) -> None:
    # A batch's base offset lies outside its checksum: its neighbours are what tells.
    directory = write_partition(
        tmp_path, {0: batches, 20: THIRD}, with_index=False, with_time_index=False
    )
    assert text in str(damage(directory))


def test_offsets_of_the_segment_before_are_damage(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {0: FIRST, 20: SECOND}, with_index=False)
    assert "batch has offset 10, expected at least 20" in str(damage(directory))


def test_a_segment_that_vanished_after_planning_is_reported(directory: Path) -> None:
    scan = pylog.scan(directory)
    scan.plan()
    path = segment_path(directory, 10)
    path.rename(path.with_suffix(".log.deleted"))
    stream = scan.to_batches()
    assert next(stream).column("offset").to_pylist() == list(range(10))
    with pytest.raises(SegmentVanishedError) as caught:
        next(stream)
    assert str(caught.value) == (
        f"{path}: file is gone (deleted or renamed since the directory was listed); records of "
        "orders-0 are lost, offsets 10 to 19; the log holds offsets 0 to 29 now"
    )
    with pytest.raises(SegmentVanishedError):
        scan.count()


def test_a_segment_that_became_shorter_after_planning_is_reported(directory: Path) -> None:
    scan = pylog.scan(directory)
    scan.plan()
    os.truncate(segment_path(directory, 20), 10)
    with pytest.raises(SegmentVanishedError, match="file ends here, it was planned to be read up"):
        list(scan.to_batches())


def test_a_segment_deleted_while_it_is_read_is_read_to_its_end(directory: Path) -> None:
    stream = pylog.scan(directory, window_bytes=100).to_batches()
    first = next(stream)
    segment_path(directory, 0).unlink()
    rest = [offset for batch in stream for offset in batch.column("offset").to_pylist()]
    assert first.column("offset").to_pylist() + rest == list(range(30))


def test_what_is_appended_after_planning_is_not_read(directory: Path) -> None:
    scan = pylog.scan(directory)
    scan.plan()
    with segment_path(directory, 20).open("ab") as file:
        file.write(batch_v2(plain_records(30, 5)).data)
    assert scan.to_table().num_rows == 30
    assert offsets(directory) == list(range(35))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_reported(directory: Path) -> None:
    path = segment_path(directory, 10)
    path.chmod(0)
    with pytest.raises(LogDirectoryError, match=f"^{path}: cannot open file: Permission denied"):
        scanned(directory)


def test_files_that_are_not_part_of_the_log_are_passed_over(directory: Path) -> None:
    for name in (
        *("00000000000000000005.log.deleted", "00000000000000000005.log.cleaned"),
        *("00000000000000000005.log.swap", "5.log", "notes.log", "00000000000000000005.txt"),
    ):
        (directory / name).write_bytes(joined(FIRST))
    segment_path(directory, 5, ".index").write_bytes(bytes(80))
    assert offsets(directory) == list(range(30))


def test_small_windows_give_the_same_records(directory: Path) -> None:
    for window_bytes in (17, 100, 200, 1_000):
        assert offsets(directory, window_bytes=window_bytes) == list(range(30))


def test_a_gap_between_segments_is_read_over(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    write_segment(directory, 0, FIRST)
    write_segment(directory, 20, THIRD)
    assert offsets(directory) == [*range(10), *range(20, 30)]


def with_offset(built: Built, offset: int) -> Built:
    """Return the batch with another base offset: its checksum does not cover it."""
    return Built(offset.to_bytes(8, "big") + built.data[8:], (), 2, offset, offset)


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("which", range(6))
@pytest.mark.parametrize("start", [None, 0, 12, 16, 17, 19, 22, 27, 29])
def test_an_offset_that_is_too_low_never_hides_records(
    tmp_path: Path, which: int, start: int | None, *, with_index: bool
) -> None:
    batches = [*FIRST, *SECOND, *THIRD]
    segments = {0: FIRST, 10: SECOND, 20: THIRD}
    directory = write_partition(
        tmp_path, segments, with_index=with_index, with_time_index=with_index
    )
    low = max(0, 5 * which - 13)
    if which == 0:
        return  # nothing is below the first batch
    changed = [with_offset(b, low) if index == which else b for index, b in enumerate(batches)]
    base = which // 2 * 10
    segment_path(directory, base).write_bytes(joined(changed[which // 2 * 2 : which // 2 * 2 + 2]))
    first = 0 if start is None else start
    try:
        found = offsets(directory) if start is None else offsets(directory, start=start)
    except CorruptRecordError as error:
        assert error.path == str(segment_path(directory, base))  # noqa: PT017
    else:
        assert found == list(range(first, 30))


def test_the_end_of_a_log_is_not_taken_from_an_offset_that_goes_back(tmp_path: Path) -> None:
    for name, changed in (
        ("orders-0", [THIRD[0], with_offset(THIRD[1], 3)]),
        ("orders-1", [with_offset(THIRD[0], 3)]),
    ):
        segments = {0: FIRST, 10: SECOND, 20: changed}
        directory = write_partition(tmp_path, segments, name=name, with_index=False)
        assert re.search(r": batch has offset 3, expected at least 2[01]", str(damage(directory)))
