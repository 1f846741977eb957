"""The batches and records of a log in a dump, in ranges, and where it is damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.batches import (
    Stored,
    batch_v2,
    empty_batch_v2,
    message_set,
    plain_records,
    wrapper_of,
)
from tests.support.codecs import compress
from tests.support.damage import with_bytes, with_size
from tests.support.log_files import segment_path, write_partition
from tests.unit.dump_log.dumped import BATCHES, objects_of, report_of, text_of, write_log

if TYPE_CHECKING:
    from pathlib import Path


def test_batches_and_records_have_a_line_each(tmp_path: Path) -> None:
    record = Stored(7, 1234, b"k", "é\n".encode(), (("h", b""), ("i", None)))
    built = batch_v2([record], producer_id=3, producer_epoch=2, base_sequence=9, leader_epoch=5)
    path = write_log(tmp_path, [built])
    batch = (
        "baseOffset: 7 lastOffset: 7 count: 1 baseSequence: 9 lastSequence: 9 producerId: 3 "
        "producerEpoch: 2 partitionLeaderEpoch: 5 isTransactional: false isControl: false "
        f"deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1234 size: {len(built.data)} "
        f"magic: 2 compresscodec: none crc: {int.from_bytes(built.data[17:21], 'big')} "
        "isvalid: true"
    )
    metadata = "| offset: 7 CreateTime: 1234 keySize: 1 valueSize: 3 sequence: 9 headerKeys: [h,i]"
    head = [f"Dumping {path}", "Log starting offset: 7", batch]
    assert text_of(path) == head
    assert text_of(path, deep_iteration=True) == [*head, metadata]
    assert text_of(path, print_data_log=True) == [*head, f"{metadata} key: k payload: é", ""]


def test_max_bytes_ends_between_batches_and_tells_of_nothing_left(tmp_path: Path) -> None:
    path = write_log(tmp_path, BATCHES, tail=bytes(5))
    first = len(BATCHES[0].data)
    assert len(text_of(path)) == 2 + len(BATCHES) + 1
    assert text_of(path)[-1] == f"Found 5 invalid bytes at the end of {path.name}"
    for max_bytes, batches in ((first - 1, 0), (first, 1), (first + 30, 1)):
        assert len(text_of(path, max_bytes=max_bytes)) == 2 + batches


def test_offsets_prints_the_batches_and_records_in_the_range_alone(tmp_path: Path) -> None:
    path = write_log(tmp_path, BATCHES)
    found = objects_of(path, deep_iteration=True, start_offset=8, end_offset=11)[1:]
    assert [(each["type"], each.get("offset", each.get("baseOffset"))) for each in found] == [
        ("batch", 5),
        ("record", 8),
        ("record", 9),
        ("batch", 10),
        ("record", 10),
    ]
    assert found[0]["position"] == len(BATCHES[0].data)


def test_timestamps_are_those_of_records(tmp_path: Path) -> None:
    records = [Stored(0, 300, b"", b""), Stored(1, 100, b"", b""), Stored(2, 200, b"", b"")]
    path = write_log(tmp_path, [batch_v2(records), batch_v2(plain_records(3, 2, timestamp=500))])
    found = objects_of(path, deep_iteration=True, start_timestamp=150, end_timestamp=300)[1:]
    assert [each.get("offset") for each in found] == [None, 2]
    assert len(objects_of(path, start_timestamp=301)) == 2


def test_an_empty_batch_is_printed_if_its_offsets_are_in_the_range(tmp_path: Path) -> None:
    path = write_log(tmp_path, [empty_batch_v2(0, 9), *[batch_v2(plain_records(10, 1))]])
    for start, count in ((0, 2), (9, 2), (10, 1)):
        assert len(objects_of(path, deep_iteration=True, start_offset=start)) == 1 + count + 1


def test_a_batch_shorter_than_its_header_is_printed_with_fields_of_what_follows(
    tmp_path: Path,
) -> None:
    # As Kafka's tool does, which test_dump_tool asks: the header is cut after its base timestamp.
    short = with_size(BATCHES[1], 35).data[:35]
    path = write_log(tmp_path, [BATCHES[0]], short + BATCHES[1].data)
    position = len(BATCHES[0].data)
    (line,) = [line for line in text_of(path) if f"position: {position} " in line]
    assert line.startswith("baseOffset: 5 lastOffset: 9 count: ")
    assert "size: 35 magic: 2 " in line
    assert line.endswith("isvalid: false")
    assert f"position: {position + 35} " in text_of(path)[-1]
    printed = text_of(path, deep_iteration=True)
    assert printed[-1] == line
    report = report_of(path, deep_iteration=True)
    assert report.errors == [f"{path} at byte {position}: batch has 35 bytes, expected at least 61"]


def test_a_negative_magic_is_an_error_and_one_that_is_torn_is_not(tmp_path: Path) -> None:
    odd = with_bytes(BATCHES[1], 16, b"\x80").data
    path = write_log(tmp_path, [BATCHES[0]], odd)
    at = len(BATCHES[0].data)
    assert report_of(path).errors == [
        f"{path} at byte {at}: Invalid magic used in LegacyRecord: -128"
    ]
    path = write_log(tmp_path, [BATCHES[0]], odd[:-1])
    assert report_of(path).errors == []
    assert text_of(path)[-1] == f"Found {len(odd) - 1} invalid bytes at the end of {path.name}"


def test_an_inner_message_of_wrong_checksum_is_printed_as_such(tmp_path: Path) -> None:
    inner = bytearray(
        message_set([Stored(0, 5, b"k", b"a"), Stored(1, 5, b"k", b"b")], inner_magic=1)
    )
    inner[12] ^= 1
    stream = compress("gzip", bytes(inner), magic=1)
    built = wrapper_of(stream, offset=1, magic=1, codec="gzip", timestamp=5)
    path = segment_path(tmp_path, 0)
    path.write_bytes(built)
    records = text_of(path, deep_iteration=True)[3:]
    assert [" isValid: true" in line for line in records] == [False, True]


def test_a_snapshot_of_the_metadata_log_is_dumped_by_its_batches(tmp_path: Path) -> None:
    snapshot = tmp_path / f"{12:020d}-{3:010d}.checkpoint"
    bootstrap = tmp_path / "bootstrap.checkpoint"
    for path, heading in (
        (snapshot, "Snapshot end offset: 12, epoch: 3"),
        (bootstrap, "KRaft bootstrap snapshot"),
    ):
        path.write_bytes(BATCHES[0].data)
        lines = text_of(path)
        assert lines[:2] == [f"Dumping {path}", heading]
        assert lines[2].startswith("baseOffset: 0 lastOffset: 4 count: 5 ")


@pytest.mark.parametrize("threads", [1, 3])
def test_lines_come_in_order_whatever_the_threads(tmp_path: Path, threads: int) -> None:
    batches = [batch_v2(plain_records(n * 100, 100, value_size=2_000)) for n in range(20)]
    partition = write_partition(tmp_path, {0: batches[:10], 1000: batches[10:]})
    found = objects_of(partition, print_data_log=True, threads=threads)
    assert [each["offset"] for each in found if each["type"] == "record"] == list(range(2000))
