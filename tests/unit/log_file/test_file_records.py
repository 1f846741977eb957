"""The ``.log`` file of an owned segment: appended to, read, searched, cut, preallocated.

The cases are those of Kafka's FileRecordsTest, but for the conversion to older formats, which no
broker does any more.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from pylog.errors import KafkaStorageError, SegmentVanishedError
from pylog.files.durable_io import DurableIO
from pylog.log_file.file_records import MAX_FILE_BYTES, FileRecords
from tests.support.recording_io import Fault, FaultyIO, Kind, RecordingIO
from tests.unit.log.owned_log import LARGEST_LENGTH, batches_in, of_magic, one_batch, stored

VALUES = (b"abcd", b"efgh", b"ijkl")
BATCHES = [one_batch(value, base_offset=offset) for offset, value in enumerate(VALUES)]
SIZE = len(BATCHES[0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "00000000000000000000.log"


@pytest.fixture
def records(path: Path) -> FileRecords:
    return filled(FileRecords(DurableIO(), str(path), is_new=True))


def filled(records: FileRecords) -> FileRecords:
    for batch in BATCHES:
        records.append(batch)
    return records


def positions(records: FileRecords, start: int = 0) -> list[int]:
    return [found.position for found in records.batches_from(start)]


def values_in(records: FileRecords) -> list[bytes | None]:
    data = records.read_at(0, records.size_bytes)
    return [record.value for batch in batches_in(data) for record in batch.records()]


# ---- appending


def test_size_is_that_of_the_file_after_every_append(records: FileRecords, path: Path) -> None:
    assert records.size_bytes == records.size() == path.stat().st_size == 3 * SIZE
    for number in range(20):
        assert records.append(one_batch(b"abcd", base_offset=3 + number)) == (3 + number) * SIZE
        assert records.size_bytes == path.stat().st_size == (4 + number) * SIZE


def test_a_file_never_passes_two_gigabytes(records: FileRecords, path: Path) -> None:
    os.truncate(path, MAX_FILE_BYTES - SIZE)
    large = FileRecords(DurableIO(), str(path))
    assert large.size_bytes == MAX_FILE_BYTES - SIZE
    with pytest.raises(ValueError, match="would pass 2147483647 bytes"):
        large.append(bytes(SIZE + 1))
    assert large.size_bytes == path.stat().st_size == MAX_FILE_BYTES - SIZE
    large.append(BATCHES[0])
    assert large.size_bytes == MAX_FILE_BYTES


def test_a_file_that_is_too_large_already_can_be_read_and_not_appended_to(
    records: FileRecords, path: Path
) -> None:
    os.truncate(path, MAX_FILE_BYTES + 5)  # such as an old broker may leave
    large = FileRecords(DurableIO(), str(path))
    assert large.read_at(0, SIZE) == BATCHES[0]
    with pytest.raises(ValueError, match="would pass"):
        large.append(BATCHES[0])


def test_a_failed_append_leaves_no_trace(path: Path) -> None:
    io = FaultyIO()
    records = filled(FileRecords(io, str(path), is_new=True))
    # The first call writes ten bytes, the second one fails.
    io.faults += [
        Fault(kinds=frozenset({Kind.WRITE}), short_bytes=10),
        Fault(kinds=frozenset({Kind.WRITE}), at=2),
    ]
    with pytest.raises(KafkaStorageError):
        records.append(one_batch(b"mnop", base_offset=3))
    assert records.size_bytes == path.stat().st_size == 3 * SIZE
    io.faults.clear()
    records.append(one_batch(b"qrst", base_offset=3))
    assert values_in(records) == [*VALUES, b"qrst"]


def test_where_a_failed_append_cannot_be_taken_back_nobody_sees_it(path: Path) -> None:
    io = FaultyIO()
    records = filled(FileRecords(io, str(path), is_new=True))
    io.faults += [
        Fault(kinds=frozenset({Kind.WRITE}), short_bytes=10),
        Fault(kinds=frozenset({Kind.WRITE}), at=2),
        Fault(kinds=frozenset({Kind.TRUNCATE})),
    ]
    with pytest.raises(KafkaStorageError):
        records.append(one_batch(b"mnop", base_offset=3))
    assert path.stat().st_size == 3 * SIZE + 10
    assert records.size_bytes == 3 * SIZE
    assert values_in(records) == list(VALUES)


# ---- reading


def test_bytes_after_the_content_are_not_seen(records: FileRecords, path: Path) -> None:
    for length in (0, 2, 4, 5, 6):
        with path.open("ab") as file:
            file.write(bytes(length))
        assert positions(records) == [0, SIZE, 2 * SIZE]
        assert values_in(records) == list(VALUES)


@pytest.mark.parametrize("length", range(1, SIZE, 7))
def test_a_batch_cut_short_at_the_end_of_a_file_is_not_a_batch(path: Path, length: int) -> None:
    path.write_bytes(b"".join(BATCHES) + one_batch(b"mnop", base_offset=3)[:length])
    records = FileRecords(DurableIO(), str(path))
    assert records.size_bytes == 3 * SIZE + length
    assert positions(records) == [0, SIZE, 2 * SIZE]


def test_parts_are_read_by_position(records: FileRecords) -> None:
    whole = b"".join(BATCHES)
    assert records.read_at(0, records.size_bytes) == whole
    assert records.read_at(SIZE, records.size_bytes - SIZE) == whole[SIZE:]
    for too_long in (records.size_bytes, LARGEST_LENGTH):
        assert records.read_at(SIZE, too_long) == whole[SIZE:]
    assert records.read_at(SIZE, SIZE) == BATCHES[1]
    for beyond in (records.size_bytes, records.size_bytes + 1):
        assert records.read_at(beyond, 10) == b""
    buffer = bytearray(2 * SIZE)
    assert records.read_into(2 * SIZE, memoryview(buffer)) == SIZE
    assert bytes(buffer[:SIZE]) == BATCHES[2]
    assert [records.next_data(at) for at in (0, 3 * SIZE - 1, 3 * SIZE)] == [0, 3 * SIZE - 1, None]


def test_walks_begin_at_any_batch(records: FileRecords) -> None:
    assert positions(records, SIZE) == [SIZE, 2 * SIZE]
    assert positions(records, 3 * SIZE) == []


def test_reads_do_not_move_where_the_next_append_goes(records: FileRecords) -> None:
    walk = records.batches_from(0)
    next(walk)
    assert records.append(one_batch(b"mnop", base_offset=3)) == 3 * SIZE
    assert values_in(records) == [*VALUES, b"mnop"]


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_an_offset_is_found_in_its_batch_or_the_next_one(path: Path, magic: int) -> None:
    data = [of_magic(magic, stored(value, base_offset=at)) for at, value in enumerate(VALUES)]
    data.append(of_magic(magic, stored(b"test", base_offset=50)))
    records = FileRecords(DurableIO(), str(path), is_new=True)
    starts = [records.append(each) for each in data]

    def search(offset: int, position: int) -> tuple[int, int] | None:
        found = records.find_batch(offset, position)
        return None if found is None else (found.header.last_offset, found.position)

    assert search(0, 0) == (0, starts[0])
    assert search(1, 0) == search(1, starts[1]) == (1, starts[1])
    assert search(3, starts[3]) == search(3, 0) == (50, starts[3])
    assert search(50, starts[3]) == (50, starts[3])
    assert search(51, 0) is None


def test_an_offset_inside_a_batch_is_found_by_the_batchs_last_one(path: Path) -> None:
    records = FileRecords(DurableIO(), str(path), is_new=True)
    records.append(one_batch(b"a", b"b", b"c"))
    records.append(one_batch(b"d", b"e", base_offset=3))
    found = [records.find_batch(offset) for offset in range(5)]
    assert [each and each.header.offset for each in found] == [0, 0, 0, 3, 3]


# ---- cutting


def test_truncation_takes_batches_off_the_end(records: FileRecords, path: Path) -> None:
    assert records.truncate_to(SIZE) == 2 * SIZE
    assert records.size_bytes == path.stat().st_size == SIZE
    assert values_in(records) == [b"abcd"]


def test_truncation_to_its_size_does_not_touch_the_file(tmp_path: Path) -> None:
    io = RecordingIO(tmp_path)
    records = filled(FileRecords(io, str(tmp_path / "00000000000000000000.log"), is_new=True))
    assert records.truncate_to(3 * SIZE) == 0
    assert Kind.TRUNCATE not in {operation.kind for operation in io.operations}
    records.truncate_to(2 * SIZE)
    assert [each.kind for each in io.operations].count(Kind.TRUNCATE) == 1


@pytest.mark.parametrize("size_bytes", [3 * SIZE + 1, -1])
def test_truncation_to_what_is_not_there_is_refused(
    records: FileRecords, path: Path, size_bytes: int
) -> None:
    with pytest.raises(ValueError, match=f"to {size_bytes}"):
        records.truncate_to(size_bytes)
    assert records.size_bytes == path.stat().st_size == 3 * SIZE


# ---- preallocation


@pytest.mark.parametrize("preallocated_bytes", [0, 512 << 20])
def test_a_new_file_has_the_length_asked_for_and_no_content(
    path: Path, preallocated_bytes: int
) -> None:
    records = FileRecords(
        DurableIO(), str(path), is_new=True, preallocated_bytes=preallocated_bytes
    )
    assert (records.size_bytes, path.stat().st_size) == (0, preallocated_bytes)
    assert positions(records) == []


def test_what_was_preallocated_is_cut_off_when_the_file_is_trimmed(path: Path) -> None:
    records = filled(FileRecords(DurableIO(), str(path), is_new=True, preallocated_bytes=512 << 20))
    assert (records.size_bytes, path.stat().st_size) == (3 * SIZE, 512 << 20)
    assert values_in(records) == list(VALUES)
    records.trim()
    records.close()
    assert path.stat().st_size == 3 * SIZE
    reopened = FileRecords(DurableIO(), str(path))
    assert reopened.size_bytes == 3 * SIZE
    assert reopened.append(one_batch(b"mnop", base_offset=3)) == 3 * SIZE


# ---- names and handles


def test_a_renamed_file_is_written_on(records: FileRecords, path: Path) -> None:
    renamed = path.with_suffix(".log.deleted")
    records.rename_to(str(renamed))
    records.append(one_batch(b"mnop", base_offset=3))
    assert not path.exists()
    assert renamed.stat().st_size == 4 * SIZE
    records.release()
    assert values_in(records) == [*VALUES, b"mnop"]
    records.delete_if_exists()
    records.delete_if_exists()
    assert not renamed.exists()


def test_a_released_file_is_opened_again_at_its_next_use(records: FileRecords) -> None:
    records.release()
    assert values_in(records) == list(VALUES)
    records.release()
    records.append(one_batch(b"mnop", base_offset=3))
    assert values_in(records) == [*VALUES, b"mnop"]


def test_a_deleted_file_holds_no_descriptor(records: FileRecords, path: Path) -> None:
    def links_to_it() -> list[str]:
        links = []
        for number in os.listdir("/proc/self/fd"):  # noqa: PTH208 - one of them is its own
            with contextlib.suppress(FileNotFoundError):
                links.append(str(Path("/proc/self/fd", number).readlink()))
        return [link for link in links if link.startswith(str(path))]

    assert links_to_it() == [str(path)]
    records.delete_if_exists()
    assert links_to_it() == []


def test_a_closed_file_is_read_no_more(records: FileRecords, path: Path) -> None:
    records.close()
    records.close()
    never_opened = FileRecords(DurableIO(), str(path))
    never_opened.close()
    for closed in (records, never_opened):
        with pytest.raises(ValueError, match=r"\.log is closed$"):
            closed.read_at(0, SIZE)


def test_a_file_that_is_not_new_must_be_there(path: Path) -> None:
    with pytest.raises(SegmentVanishedError):
        FileRecords(DurableIO(), str(path))
