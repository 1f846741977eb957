"""Batches whose checksum is right and whose records nobody can decode are damaged everywhere."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.statistics.partition import CountedRecords
from tests.support.batches import (
    COMMIT,
    Built,
    Stored,
    batch_v2,
    empty_batch_v2,
    marker,
    message_bytes,
    plain_records,
    wrapper,
    wrapper_of,
)
from tests.support.codecs import compress
from tests.support.corruption import resealed
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.results import PartitionReport

ATTRIBUTES_AT, LAST_OFFSET_DELTA_AT, RECORD_COUNT_AT = 21, 23, 57
LARGEST = 2**31 - 1


def with_field(built: Built, at: int, form: str, value: int) -> Built:
    """Return a batch with another value in its header, and the checksum that it calls for."""
    data = bytearray(built.data)
    struct.pack_into(form, data, at, value)
    return replace(built, data=resealed(bytes(data)))


def with_count(built: Built, count: int) -> Built:
    return with_field(built, RECORD_COUNT_AT, ">i", count)


def cut(built: Built, size_bytes: int) -> Built:
    data = bytearray(built.data[:-size_bytes])
    struct.pack_into(">i", data, 8, len(data) - 12)
    return replace(built, data=resealed(bytes(data)))


def wrapper_with_a_wrong_inner_checksum() -> Built:
    right = message_bytes(0, b"k", b"v", magic=1, timestamp=1)
    wrong = bytearray(message_bytes(9, b"k", b"w", magic=1, timestamp=1))
    wrong[12] ^= 1  # of its checksum
    data = wrapper_of(compress("gzip", right + wrong), offset=19, magic=1, codec="gzip")
    return Built(data, (), magic=1, base_offset=10, last_offset=19)


FIRST = batch_v2(plain_records(0, 10))
MIDDLE = batch_v2(plain_records(10, 10))
LAST = batch_v2(plain_records(20, 5))
# What stands for offsets 10 to 19.
IMPOSSIBLE_COUNTS = {
    "most": with_count(MIDDLE, LARGEST),
    "more": with_count(MIDDLE, 11),
    "as a wrapper": with_count(MIDDLE, -1),
    "least": with_count(MIDDLE, -(2**31)),
    "fewer offsets": with_field(MIDDLE, LAST_OFFSET_DELTA_AT, ">i", 5),
}
UNDECODABLE = IMPOSSIBLE_COUNTS | {
    "less": with_count(MIDDLE, 8),
    "no such codec": with_field(MIDDLE, ATTRIBUTES_AT, ">h", 7),
    "other codec": with_field(MIDDLE, ATTRIBUTES_AT, ">h", 1),
    "cut": cut(MIDDLE, 20),
    "empty of a codec": with_field(empty_batch_v2(10, 19), ATTRIBUTES_AT, ">h", 1),
    "wrapper": wrapper_with_a_wrong_inner_checksum(),
}


def doctor(directory: Path) -> PartitionReport:
    [partition] = pylog.doctor(directory).partitions
    return partition


def row(directory: Path, read: str) -> dict[str, Any]:
    [found] = pylog.stats(directory, read=read).document()["partitions"]
    return {name: found[name] for name in ("startOffset", "endOffset", "batches", "records")} | {
        "problems": len(found["problems"])
    }


@pytest.mark.parametrize("name", UNDECODABLE)
def test_doctor_counts_its_offsets_as_damaged_and_its_bytes_as_not_sound(
    name: str, tmp_path: Path
) -> None:
    write_partition(tmp_path, {0: [FIRST, UNDECODABLE[name], LAST]})
    report = doctor(tmp_path)
    assert tuple(report.offsets) == (15, 0, 0, 0, 10)
    assert report.scanned_bytes == len(FIRST.data) + len(LAST.data)
    assert [each.code for each in report.findings] == ["damaged_batches"]


@pytest.mark.parametrize("name", UNDECODABLE)
def test_doctor_counts_it_at_the_end_of_the_log(name: str, tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [FIRST, UNDECODABLE[name]]})
    report = doctor(tmp_path)
    end = 16 if name == "fewer offsets" else 20
    assert (report.start_offset, report.end_offset) == (0, end)
    assert tuple(report.offsets) == (10, 0, 0, 0, end - 10)


@pytest.mark.parametrize("name", UNDECODABLE)
def test_stats_of_all_records_leave_it_out_and_name_it(name: str, tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [FIRST, UNDECODABLE[name], LAST]})
    assert row(tmp_path, "all") == {
        "startOffset": 0,
        "endOffset": 25,
        "batches": 2,
        "records": 15,
        "problems": 1,
    }
    [partition] = pylog.stats(tmp_path, read="all").document()["partitions"]
    [problem] = partition["problems"]
    assert "10 records may be missing, offsets 10 to 19" in problem


@pytest.mark.parametrize("name", IMPOSSIBLE_COUNTS)
@pytest.mark.parametrize("read", ["headers", "sample"])
def test_a_header_that_counts_what_cannot_be_is_damage_by_itself(
    name: str, read: str, tmp_path: Path
) -> None:
    write_partition(tmp_path, {0: [FIRST, IMPOSSIBLE_COUNTS[name], LAST]})
    found = row(tmp_path, read)
    assert (found["endOffset"], found["batches"], found["records"]) == (25, 2, 15)
    assert found["problems"] == 1
    with pytest.raises(CorruptRecordError, match=r"record count is -?\d+, expected 0 to") as caught:
        pylog.read_table(tmp_path, "segments")
    assert caught.value.position == len(FIRST.data)


@pytest.mark.parametrize("name", UNDECODABLE)
def test_a_partition_of_such_a_batch_alone_does_not_vanish(name: str, tmp_path: Path) -> None:
    write_partition(tmp_path, {10: [UNDECODABLE[name]]})
    end = 16 if name == "fewer offsets" else 20
    for read in ("headers", "all"):
        found = row(tmp_path, read)
        assert (found["startOffset"], found["endOffset"]) == (10, end)
    assert (found["batches"], found["records"], found["problems"]) == (0, 0, 1)


def test_the_table_of_batches_shows_the_count_as_it_is(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [FIRST, IMPOSSIBLE_COUNTS["as a wrapper"], LAST]})
    table = pylog.read_table(tmp_path, "batches")
    assert table["records"].to_pylist() == [10, -1, 5]
    assert table["base_offset"].to_pylist() == [0, 10, 20]


def test_a_batch_that_holds_something_and_counts_nothing_is_not_compacted(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [FIRST, with_count(MIDDLE, 0), LAST]})
    report = doctor(tmp_path)
    assert tuple(report.offsets) == (15, 0, 0, 0, 10)
    assert [each.code for each in report.findings] == ["filled_empty_batch"]


@pytest.mark.parametrize("count", [LARGEST, -3])
def test_a_marker_with_a_wrong_count_is_damaged(count: int, tmp_path: Path) -> None:
    wrong = with_count(marker(10, COMMIT, producer_id=5), count)
    write_partition(tmp_path, {0: [FIRST, wrong, batch_v2(plain_records(11, 5))]})
    assert tuple(doctor(tmp_path).offsets) == (15, 0, 0, 0, 1)
    for read in ("headers", "all"):
        found = row(tmp_path, read)
        assert (found["records"], found["problems"]) == (15, 1)


def test_a_wrapper_without_some_of_its_messages_is_a_sign_of_compaction(tmp_path: Path) -> None:
    def compacted(*offsets: int, first: int) -> Built:
        records = [Stored(offset, 1, b"k", b"v") for offset in offsets]
        return wrapper(records, magic=1, codec="gzip", first_offset=first)

    write_partition(
        tmp_path,
        {0: [compacted(0, 2, 5, first=0)], 90: [compacted(107, 109, first=107)]},
    )
    report = doctor(tmp_path)
    # Of 110 offsets: 1, 3 and 4, 6 to 106, and 108 have no record.
    assert tuple(report.offsets) == (5, 0, 105, 0, 0)
    assert [each.code for each in report.findings] == ["compacted_offsets"]
    assert row(tmp_path, "all")["records"] == 5


def test_of_a_partition_whose_records_cannot_be_counted_the_headers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> None:
        reason = "refused"
        raise InvalidRecordError(reason, "x.log", 0)

    monkeypatch.setattr(CountedRecords, "read_window", refuse)
    write_partition(tmp_path, {0: [FIRST, MIDDLE, LAST]})
    assert row(tmp_path, "all") == {
        "startOffset": 0,
        "endOffset": 25,
        "batches": 3,
        "records": 25,
        "problems": 1,
    }


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.thorough(one_in=4)
def test_whatever_a_header_says_the_sums_add_up(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    for case in range(25):
        batches = []
        for built in (FIRST, MIDDLE, LAST):
            data = bytearray(built.data)
            if draw.random() < 0.6:
                at = draw.choice((ATTRIBUTES_AT + 1, LAST_OFFSET_DELTA_AT, RECORD_COUNT_AT, 80))
                size = 1 if at in (ATTRIBUTES_AT + 1, 80) else 4
                least = draw.choice((-(2**31), -2, 0, 5, 9, 12, LARGEST))
                data[at : at + size] = struct.pack(">i", least)[-size:]
            batches.append(replace(built, data=resealed(bytes(data))))
        directory = tmp_path / str(case)
        write_partition(directory, {0: batches})
        report = doctor(directory)
        assert min(report.offsets) >= 0, (seed, case)
        assert sum(report.offsets) == report.end_offset - report.start_offset, (seed, case)
        assert row(directory, "all")["records"] == report.offsets.records, (seed, case)
        assert row(directory, "all")["endOffset"] == report.end_offset, (seed, case)
