"""Windows of records, put together, are what a scan gives, whichever way one walks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.cli.browse.record_windows import PREVIEW_BYTES, PartitionRecords, Row, joined
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.damage import flip
from tests.support.golden import Holds, golden_partitions
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.cli.browse.record_windows import RowWindow
    from tests.support.golden import GoldenRoot

CHOICE = {"start": "earliest", "end": "latest", "isolation": "read_uncommitted"}


def records_of(directory: Path) -> PartitionRecords:
    opened = pylog.open_directory(str(directory))
    records = PartitionRecords(opened, opened.topic_partitions[0], CHOICE, {})
    records.refresh()
    return records


def forwards(records: PartitionRecords, count: int) -> RowWindow:
    window = records.forward(records.start_offset, count)
    while window.end_offset < records.end_offset:
        window = joined(window, records.forward(window.end_offset, count))
    return window


def backwards(records: PartitionRecords, count: int) -> RowWindow:
    window = records.backward(records.end_offset, count)
    while window.start_offset > records.start_offset:
        window = joined(records.backward(window.start_offset, count), window)
    return window


def scanned(directory: Path) -> list[tuple[int, int]]:
    topic = pylog.open_directory(str(directory)).topic_partitions[0].topic
    scan = pylog.scan(
        str(directory),
        topics=topic,
        columns=("offset", "timestamp"),
        mode="DROPMALFORMED",
        timestamp_unit="ms",
    )
    table = scan.to_table()
    times = table.column("timestamp").cast("int64").to_pylist()
    return list(zip(table.column("offset").to_pylist(), times, strict=True))


def ensure_covered(window: RowWindow) -> None:
    """Rows are in order, and leave no offset out."""
    at = window.start_offset
    for row in window.rows:
        assert row.offset == at or (row.is_damage and row.offset <= at)
        at = max(at, row.end_offset)
    assert at == window.end_offset


@pytest.mark.parametrize(
    "partition_id",
    [
        pytest.param(each, marks=pytest.mark.thorough(one_in=40))
        for each in golden_partitions(Holds.EXACTLY, Holds.MORE_AT_THE_START, Holds.UNKNOWN)
    ],
)
def test_windows_of_golden_partitions_are_what_a_scan_gives(
    partition_id: str, golden_root: GoldenRoot
) -> None:
    directory = golden_root.partition(partition_id).directory
    records = records_of(directory)
    expected = scanned(directory)
    for window in (forwards(records, 7), backwards(records, 7), forwards(records, 1_000)):
        ensure_covered(window)
        assert [(row.offset, row.timestamp) for row in window.rows if row.is_record] == expected
    middle = (records.start_offset + records.end_offset) // 2
    around = records.around(middle)
    ensure_covered(around)
    assert around.start_offset <= middle <= around.end_offset


def three_batches(directory: Path) -> Path:
    batches = [batch_v2(plain_records(first, 5)) for first in (0, 5, 20)]
    return write_partition(directory, {0: batches})


def test_offsets_without_a_record_are_one_row_in_each_direction(tmp_path: Path) -> None:
    records = records_of(three_batches(tmp_path))
    for window in (forwards(records, 3), backwards(records, 3)):
        gaps = [row for row in window.rows if row.note]
        assert gaps == [Row(10, 20, note="10 offsets without a record")]


def test_damage_is_a_row_with_its_offsets_and_cause(tmp_path: Path) -> None:
    directory = three_batches(tmp_path)
    path = segment_path(directory, 0)
    flip(path, len(batch_v2(plain_records(0, 5)).data) + 70)
    records = records_of(directory)
    for count in (1, 3, 100):
        for window in (forwards(records, count), backwards(records, count)):
            damaged = [row for row in window.rows if row.is_damage]
            assert {(row.offset, row.end_offset) for row in damaged} == {(5, 20)}
            assert "batch CRC stored" in damaged[0].note
            assert [row.offset for row in window.rows if row.is_record] == [
                *range(5),
                *range(20, 25),
            ]


def test_a_row_has_the_beginning_of_a_large_value_and_no_part_of_a_character(
    tmp_path: Path,
) -> None:
    value = "x" * (PREVIEW_BYTES - 1) + "ä" * 1_000_000
    batch = batch_v2([Stored(0, 1, b"\xff\x00", value.encode())])
    records = records_of(write_partition(tmp_path, {0: [batch]}))
    (row,) = records.forward(0).rows
    assert row.value == "x" * (PREVIEW_BYTES - 1)
    assert row.key == "\udcff\x00"


def test_a_time_is_looked_up_as_kafka_does(tmp_path: Path) -> None:
    records = records_of(three_batches(tmp_path))
    assert records.offset_of_time(1_002) == 2
    assert records.offset_of_time(0) == 0
    assert records.offset_of_time(9_999) == 25
