from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import CorruptRecordError
from tests.support.batches import Stored, batch_v2, message, plain_records, with_bad_crc
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = [
    Stored(0, 1_700_000_000_123, b"k", b"v", (("h", b"1"), ("h", None))),
    Stored(1, -1, None, None),
    Stored(2, 1 << 60, b"", b""),  # later than microseconds can tell
]


def test_records_have_what_the_log_has(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {0: [batch_v2(RECORDS)]}, name="orders-3")
    scan = pylog.scan(directory, columns=["offset"])
    assert list(scan.records()) == [
        ("orders", 3, each.offset, each.timestamp, 0, each.key, each.value, each.headers)
        for each in RECORDS
    ]
    first = next(scan.records())
    assert first.headers[0].key == "h"
    assert first.timestamp_type is pylog.TimestampType.CREATE_TIME
    with pytest.raises(AttributeError):
        first.offset = 4  # type: ignore[misc]


def test_a_record_of_the_oldest_format_has_neither_time_nor_headers(tmp_path: Path) -> None:
    old = message(Stored(0, -1, b"k", b"v"), magic=0)
    [record] = pylog.scan(write_partition(tmp_path, {0: [old]})).records()
    assert (record.timestamp, record.headers) == (pylog.logs.NO_TIMESTAMP, ())
    assert record.timestamp_type is pylog.TimestampType.NO_TIMESTAMP_TYPE


def test_the_rest_of_a_scan_holds_for_its_records(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {0: [batch_v2(plain_records(0, 9))]})
    where = pylog.RecordFilter(min_offset=4)
    scan = pylog.scan(directory, where=where, limit=2)
    assert [each.offset for each in scan.records()] == [4, 5]
    assert [each.offset for each in pylog.scan(directory).last(2).records()] == [7, 8]


def test_damage_is_not_a_record(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(offset, 5)) for offset in (0, 5, 10)]
    batches[1] = with_bad_crc(batches[1])
    directory = write_partition(tmp_path, {0: batches})
    expected = [*range(5), *range(10, 15)]
    for mode in ("DROPMALFORMED", "PERMISSIVE"):
        scan = pylog.scan(directory, mode=mode)
        assert [each.offset for each in scan.records()] == expected
        assert [(each.next_offset, each.end_offset) for each in scan.damage] == [(5, 10)]
    seen = []
    with pytest.raises(CorruptRecordError):
        seen += [each.offset for each in pylog.scan(directory).records()]
    records = pylog.scan(directory).records()
    assert [next(records).offset for _ in range(5)] == expected[:5]
