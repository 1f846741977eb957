"""`pylog.doctor`: what it finds beyond single partitions, and what its report says."""

from __future__ import annotations

import dataclasses
import os
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

import pylog
from pylog.checks.doctor import doctor
from pylog.findings.kinds import BY_CODE
from pylog.scheduling.worker_threads import SharedProgress
from tests.support.batches import (
    Built,
    Stored,
    batch_v2,
    batch_v2_of,
    crc32c,
    empty_batch_v2,
    joined,
    plain_records,
    with_bad_crc,
    wrapper,
)
from tests.support.log_files import (
    offset_index_bytes,
    segment_path,
    time_index_bytes,
    write_partition,
)
from tests.unit.checks.examined import FIRST, SECOND, codes, remove_segment

ROOT = Path(__file__).parents[3]


def test_a_segment_that_is_gone_is_told_from_compaction(directory: Path) -> None:
    remove_segment(directory, 10)
    report = pylog.doctor(directory.parent)
    [finding] = report.findings
    assert (finding.severity, finding.code) == (pylog.results.Severity.ERROR, "missing_segment")
    assert finding.path == str(segment_path(directory, 20))
    assert (finding.next_offset, finding.end_offset) == (10, 20)
    assert report.partitions[0].offsets.missing == 10
    (directory.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 20\n", "utf-8")
    report = pylog.doctor(directory.parent)
    assert codes(report) == [("info", "compacted_offsets")]
    assert report.partitions[0].offsets.compacted == 10


def test_compaction_explains_no_gap_above_the_offset_that_it_has_come_to(directory: Path) -> None:
    remove_segment(directory, 10)
    (directory.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 10\n", "utf-8")
    assert codes(pylog.doctor(directory.parent)) == [("error", "missing_segment")]


def test_a_gap_inside_a_segment_is_a_warning(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {0: [FIRST[0], SECOND[0]]})
    [finding] = pylog.doctor(tmp_path).findings
    assert (finding.severity, finding.code) == (pylog.results.Severity.WARNING, "offset_gap")
    assert (finding.path, finding.position) == (
        str(segment_path(directory, 0)),
        len(FIRST[0].data),
    )
    assert (finding.next_offset, finding.end_offset) == (5, 10)


@pytest.mark.parametrize(
    "sign",
    [
        empty_batch_v2(20, 24),
        batch_v2(plain_records(20, 3), last_offset=24),
        batch_v2(plain_records(20, 5), delete_horizon=77),
    ],
    ids=["empty batch", "holes in a batch", "delete horizon"],
)
def test_batches_show_that_compaction_made_a_gap(tmp_path: Path, sign: Built) -> None:
    write_partition(tmp_path, {0: [FIRST[0], SECOND[0], SECOND[1], sign]})
    assert codes(pylog.doctor(tmp_path)) == [("info", "compacted_offsets")]


def test_a_topic_that_kafka_compacts_needs_no_sign(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [FIRST[0], SECOND[0]]}, name="__consumer_offsets-0")
    assert codes(pylog.doctor(tmp_path)) == [("info", "compacted_offsets")]


def test_damage_is_no_gap_besides(directory: Path) -> None:
    segment_path(directory, 0).write_bytes(joined([FIRST[0], with_bad_crc(FIRST[1])]))
    report = pylog.doctor(directory.parent)
    assert codes(report) == [("error", "damaged_batches")]
    assert report.partitions[0].offsets == (25, 0, 0, 0, 5)


def test_a_file_that_cannot_be_opened_is_not_called_damaged(directory: Path) -> None:
    log = segment_path(directory, 10)
    log.rename(directory.parent / "on another disk")
    log.symlink_to(directory.parent / "a disk that is not mounted")
    [partition] = pylog.doctor(directory).partitions
    assert [(each.code, Path(each.path).name) for each in partition.findings] == [
        ("unreadable", log.name)
    ]
    assert partition.start is None  # nobody knows what a broker that can open it would do


def test_an_entry_of_an_index_is_told_with_the_names_of_its_numbers(directory: Path) -> None:
    at = len(SECOND[0].data)
    index = offset_index_bytes([(14, 1), (19, at)], 10)
    segment_path(directory, 10, ".index").write_bytes(index)
    times = time_index_bytes([(2000, 14)], 10)
    segment_path(directory, 10, ".timeindex").write_bytes(times)
    assert {each.code: each.message for each in pylog.doctor(directory).findings} == {
        "wrong_index": "1 entry fits no batch (1 points into the middle of one); the first is "
        "entry 0: offset 14, position 1",
        "wrong_time_index": "1 entry fits no batch; the first is entry 0: offset 14, timestamp "
        "2000",
    }


def test_messages_of_v0_in_one_of_v1_are_told(tmp_path: Path) -> None:
    batches = [
        wrapper(plain_records(0, 3), magic=1, codec="gzip"),
        wrapper(plain_records(3, 3), magic=1, inner_magic=0, codec="gzip"),
        wrapper(plain_records(6, 3), magic=1, inner_magic=0, codec="lz4"),
    ]
    directory = write_partition(tmp_path, {0: batches})
    [finding] = pylog.doctor(tmp_path).findings
    assert (finding.severity, finding.code) == (pylog.results.Severity.INFO, "mixed_wrapper")
    assert (finding.path, finding.position) == (
        str(segment_path(directory, 0)),
        len(batches[0].data),
    )
    assert "2 of them" in finding.message


def with_header_time(built: Built, timestamp: int) -> Built:
    """Give a batch another largest timestamp, under a right checksum."""
    data = bytearray(built.data)
    is_v2 = built.magic == 2
    struct.pack_into(">q", data, 35 if is_v2 else 18, timestamp)
    crc = crc32c(data[21:]) if is_v2 else zlib.crc32(data[16:])
    struct.pack_into(">I", data, 17 if is_v2 else 12, crc)
    return dataclasses.replace(built, data=bytes(data))


@pytest.mark.parametrize("header_time", [-1, 0, 4_999, 9_000_000])
@pytest.mark.parametrize(
    ("magic", "codec"),
    [
        *((1, codec) for codec in ("gzip", "snappy", "lz4")),
        *((2, codec) for codec in ("none", "gzip", "snappy", "lz4", "zstd")),
    ],
)
def test_a_header_with_another_largest_timestamp_than_its_records_is_told(
    tmp_path: Path, magic: int, codec: str, header_time: int
) -> None:
    def stored(first: int) -> Built:
        records = [Stored(first + at, 5_000 + at, b"k", b"v") for at in range(3)]
        if magic == 1:
            return wrapper(records, magic=1, codec=codec)
        return batch_v2(records, codec=codec)

    batches = [stored(0), with_header_time(stored(3), header_time), stored(6)]
    write_partition(tmp_path, {0: batches}, with_time_index=False)
    found = [each for each in pylog.doctor(tmp_path).findings if each.code == "header_timestamp"]
    [finding] = found
    first = len(batches[0].data)
    assert (finding.position, finding.end_position) == (first, first + len(batches[1].data))
    assert finding.message == (
        f"the header's largest timestamp is {header_time}, and the latest of the records is 5002"
    )


def test_of_many_headers_with_wrong_timestamps_the_first_are_named(tmp_path: Path) -> None:
    batches = [with_header_time(batch_v2([Stored(at, 5, None, b"v")]), 7) for at in range(50)]
    write_partition(tmp_path, {0: batches}, with_time_index=False)
    found = [each for each in pylog.doctor(tmp_path).findings if each.code == "header_timestamp"]
    assert len(found) == 20
    assert found[-1].message.endswith("; so it is with 30 more")


def test_a_segment_that_no_broker_can_open_is_an_error(directory: Path) -> None:
    os.truncate(segment_path(directory, 20), 2**31)
    found = codes(pylog.doctor(directory.parent))
    assert ("error", "oversized_segment") in found


def test_offsets_beyond_32_bits_are_a_warning(tmp_path: Path) -> None:
    far = [2**31 + 5, 2**31 + 6]
    data = [batch_v2_of(b"", base_offset=at, last_offset_delta=0, record_count=0) for at in far]
    batches = [FIRST[0], *(Built(each, (), 2, at, at) for each, at in zip(data, far, strict=True))]
    write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    assert ("warning", "offset_overflow") in codes(pylog.doctor(tmp_path))


def test_a_cleaner_offset_below_the_log_start_is_worth_knowing(directory: Path) -> None:
    (directory.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 3\n", "utf-8")
    (directory.parent / "log-start-offset-checkpoint").write_text("0\n1\norders 0 7\n", "utf-8")
    assert codes(pylog.doctor(directory)) == [("info", "cleaner_offset_below_log_start")]


def test_the_table_has_a_row_for_each_finding(directory: Path) -> None:
    remove_segment(directory, 10)
    (directory.parent / "lost+found").mkdir()
    table = pylog.doctor(directory.parent).to_table()
    assert table.schema == pylog.jobs.metadata_table("findings").schema
    assert table.select(["topic", "partition", "severity", "code"]).to_pylist() == [
        {"topic": None, "partition": None, "severity": "error", "code": "misnamed_directory"},
        {"topic": "orders", "partition": 0, "severity": "error", "code": "missing_segment"},
    ]


def test_every_kind_of_finding_is_made_somewhere() -> None:
    sources = [
        path.read_text("utf-8")
        for room in ("checks", "writing")
        for path in (ROOT / "storage_core/pylog" / room).glob("*.py")
    ]
    used = set(re.findall(r"\bkinds\.([A-Z_]+)", "\n".join(sources)))
    assert set(map(str.upper, BY_CODE)) - used == set()


@pytest.mark.parametrize(
    ("partition_bytes", "threads", "expected"),
    [(1000, None, 1), (2_000_000, None, 3), (1000, 2, 2), (2_000_000, 1, 1)],
)
def test_small_partitions_are_read_by_one_thread(
    partition_bytes: int,
    threads: int | None,
    expected: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(4):
        batch = batch_v2(plain_records(0, 1, value_size=partition_bytes))
        write_partition(tmp_path, {0: [batch]}, name=f"orders-{number}")
    monkeypatch.setattr("pylog.checks.doctor.usable_processors", lambda: 3)
    asked: list[int | None] = []
    side_by_side = SharedProgress.side_by_side

    def seen(*given: Any) -> list[Any]:  # noqa: ANN401 - whatever it is
        asked.append(given[-1])
        return side_by_side(*given)

    monkeypatch.setattr(SharedProgress, "side_by_side", seen)
    assert len(doctor(tmp_path, threads=threads).partitions) == 4
    assert asked == [expected]
