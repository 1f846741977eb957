"""What the modes DROPMALFORMED and PERMISSIVE give of a damaged log, and what they report."""

from __future__ import annotations

import gzip
import logging
import re
from typing import TYPE_CHECKING, Any, get_args

import pytest
import zstandard

import pylog
from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.reading.checked_windows import ReadOptions
from pylog.reading.damage import Attempts, DamageReport, ReadMode, ReadModeName
from pylog.reading.reader import TaskReader
from tests.support.batches import (
    Built,
    batch_v2,
    batch_v2_of,
    joined,
    plain_records,
    record_v2,
    with_bad_crc,
)
from tests.support.codecs import CODEC_IDS
from tests.support.damage import positions, with_size
from tests.support.log_files import segment_path, write_partition
from tests.support.reading import read_skipping_damage, spans

if TYPE_CHECKING:
    from pathlib import Path

FIRST = [batch_v2(plain_records(0, 5)), batch_v2(plain_records(5, 5))]
SECOND = [batch_v2(plain_records(10, 5)), batch_v2(plain_records(15, 5))]
THIRD = [batch_v2(plain_records(20, 5)), batch_v2(plain_records(25, 5))]
ALL = [*FIRST, *SECOND, *THIRD]
COLUMNS = ["offset", "key", "topic", "partition", "_corrupt_record"]
PLAIN = b"".join(record_v2(0, place, b"k", b"v") for place in range(5))


def compressed(codec: str, payload: bytes, offset: int, count: int = 5) -> Built:
    """Return a batch with a right checksum around whatever ``payload`` is."""
    data = batch_v2_of(
        payload,
        base_offset=offset,
        last_offset_delta=count - 1,
        record_count=count,
        attributes=CODEC_IDS[codec],
    )
    return Built(data, (), 2, offset, offset + count - 1, codec=codec)


def log(directory: Path, batches: list[Built]) -> Path:
    """Write six batches as three segments."""
    segments = {0: batches[:2], 10: batches[2:4], 20: batches[4:]}
    return write_partition(directory, segments, with_index=False, with_time_index=False)


def permissive(directory: Path, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - of scan
    scan = pylog.scan(directory, mode="PERMISSIVE", columns=COLUMNS, **options)
    rows: list[dict[str, Any]] = scan.to_table().to_pylist()
    assert scan.count() == len(rows)
    assert scan.to_table().to_pylist() == rows
    return rows


@pytest.mark.parametrize("which", range(6))
@pytest.mark.parametrize("window_bytes", [17, 200, 1 << 22])
def test_a_damaged_batch_anywhere_costs_its_own_records(
    tmp_path: Path, which: int, window_bytes: int
) -> None:
    batches = [with_bad_crc(each) if place == which else each for place, each in enumerate(ALL)]
    directory = log(tmp_path, batches)
    found, (damaged,) = read_skipping_damage(directory, window_bytes=window_bytes)
    assert found == [offset for offset in range(30) if offset // 5 != which]
    start = len(ALL[which - 1].data) if which % 2 else 0
    size = len(ALL[which].data)
    assert damaged.path == str(segment_path(directory, which // 2 * 10))
    last = which == 5
    expected = (start, start + size, 5 * which, None if last else 5 * which + 5)
    assert spans([damaged]) == [expected]
    assert re.match(r"batch CRC stored 0x[0-9a-f]{8}, computed 0x[0-9a-f]{8}$", damaged.reason)


@pytest.mark.parametrize("which", range(6))
@pytest.mark.parametrize("window_bytes", [17, 200, 1 << 22])
def test_the_row_of_nulls_stands_where_the_damage_is(
    tmp_path: Path, which: int, window_bytes: int
) -> None:
    batches = [with_bad_crc(each) if place == which else each for place, each in enumerate(ALL)]
    directory = log(tmp_path, batches)
    rows = permissive(directory, window_bytes=window_bytes)
    assert [row["offset"] for row in rows] == [*range(5 * which), None, *range(5 * which + 5, 30)]
    damage_row = rows[5 * which]
    assert (damage_row["key"], damage_row["topic"], damage_row["partition"]) == (None, "orders", 0)
    start = len(ALL[which - 1].data) if which % 2 else 0
    missing = f"5 records may be missing, offsets {5 * which} to {5 * which + 4}"
    if which == 5:
        missing = "records from offset 25 on may be missing"
    assert damage_row["_corrupt_record"].startswith(
        f"{segment_path(directory, which // 2 * 10)}: bytes {start} to "
        f"{start + len(ALL[which].data) - 1} are damaged; "
        f"{missing}: batch CRC stored 0x"
    )
    assert all(row["_corrupt_record"] is None for row in rows if row["offset"] is not None)


def test_two_damaged_ranges_are_two_rows(tmp_path: Path) -> None:
    batches = [ALL[0], with_bad_crc(ALL[1]), *ALL[2:4], with_bad_crc(ALL[4]), ALL[5]]
    offsets = [row["offset"] for row in permissive(log(tmp_path, batches))]
    assert offsets == [*range(5), None, *range(10, 20), None, *range(25, 30)]


def test_a_sound_log_is_the_same_in_every_mode(tmp_path: Path) -> None:
    directory = log(tmp_path, ALL)
    assert read_skipping_damage(directory) == (list(range(30)), [])
    assert [row["offset"] for row in permissive(directory)] == list(range(30))


@pytest.mark.parametrize("which", [1, 4])
def test_each_range_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, which: int
) -> None:
    batches = [*ALL[:which], with_bad_crc(ALL[which]), *ALL[which + 1 :]]
    directory = log(tmp_path, batches)
    scan = pylog.scan(directory, mode="dropmalformed")  # type: ignore[arg-type]
    scan.to_table()
    scan.count()
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.WARNING, str(scan.damage.ranges[0]))


def test_a_torn_segment_before_the_last_is_damage_up_to_the_next(tmp_path: Path) -> None:
    directory = log(tmp_path, ALL)
    path = segment_path(directory, 10)
    path.write_bytes(joined(SECOND)[:-7])
    found, ranges = read_skipping_damage(directory)
    assert found == [*range(15), *range(20, 30)]
    start, end = len(SECOND[0].data), len(joined(SECOND)) - 7
    assert spans(ranges) == [(start, end, 15, 20)]
    assert [row["offset"] for row in permissive(directory)][14:16] == [14, None]


def test_garbage_after_the_last_batch_is_damage(tmp_path: Path) -> None:
    directory = log(tmp_path, ALL)
    with segment_path(directory, 20).open("ab") as file:
        file.write(b"\xee" * 100)
    found, ranges = read_skipping_damage(directory)
    assert found == list(range(30))
    end = len(joined(THIRD))
    assert spans(ranges) == [(end, end + 100, 30, None)]


def test_a_torn_tail_is_neither_damage_nor_a_row(tmp_path: Path) -> None:
    directory = log(tmp_path, ALL)
    path = segment_path(directory, 20)
    path.write_bytes(path.read_bytes()[:-1])
    assert read_skipping_damage(directory) == (list(range(25)), [])
    assert len(permissive(directory)) == 25


GARBAGE = {
    "zstd garbage": ("zstd", b"\x28\xb5\x2f\xfd" + b"\x5a" * 30),
    "no zstd at all": ("zstd", b"hello"),
    "gzip garbage": ("gzip", b"\x1f\x8b\x08\x00" + b"\x5a" * 30),
    "gzip that is cut": ("gzip", gzip.compress(PLAIN)[:-9]),
    "lz4 garbage": ("lz4", b"\x04\x22\x4d\x18" + b"\x5a" * 30),
    "snappy garbage": ("snappy", b"\xff" * 20),
    "records that are not records": ("none", b"\xff" * 40),
    "a record too few": ("none", PLAIN[: len(PLAIN) // 5 * 4]),
    "a record too many": ("none", PLAIN + record_v2(0, 5, b"k", b"v")),
    "zstd with records that are not records": ("zstd", zstandard.compress(b"\xff" * 40)),
}


@pytest.mark.parametrize("which", range(6))
@pytest.mark.parametrize(("codec", "payload"), GARBAGE.values(), ids=GARBAGE)
def test_records_that_cannot_be_read_cost_their_own_batch(
    tmp_path: Path, codec: str, payload: bytes, which: int
) -> None:
    batches = list(ALL)
    batches[which] = compressed(codec, payload, 5 * which)
    directory = log(tmp_path, batches)
    with pytest.raises((CorruptRecordError, InvalidRecordError)):
        pylog.scan(directory).to_table()
    found, (damaged,) = read_skipping_damage(directory)
    assert found == [offset for offset in range(30) if offset // 5 != which]
    start = len(ALL[which - 1].data) if which % 2 else 0
    size = len(batches[which].data)
    following = None if which == 5 else 5 * which + 5  # of its own offsets none is believed
    assert spans([damaged]) == [(start, start + size, 5 * which, following)]
    offsets = [row["offset"] for row in permissive(directory)]
    assert offsets == [*range(5 * which), None, *range(5 * which + 5, 30)]


def test_a_batch_that_decompresses_to_too_much_is_left_out(tmp_path: Path) -> None:
    bomb = compressed("zstd", zstandard.compress(bytes(1 << 24)), 5)
    directory = log(tmp_path, [ALL[0], bomb, *ALL[2:]])
    (task,) = pylog.scan(directory).plan()
    reader = TaskReader(
        task,
        options=ReadOptions(mode=ReadMode.DROPMALFORMED, max_decompressed_bytes=1 << 20),
    )
    found = [each for batch in reader.record_batches() for each in batch["offset"].to_pylist()]
    assert found == [offset for offset in range(30) if offset // 5 != 1]
    (damaged,) = reader.damage.ranges
    assert spans([damaged]) == [(len(ALL[0].data), len(joined([ALL[0], bomb])), 5, 10)]
    assert "1048576" in damaged.reason


@pytest.mark.parametrize("start", [0, 3, 10, 12, 20, 27])
@pytest.mark.parametrize("end", [5, 13, 22, 30])
def test_damage_outside_the_range_is_none_of_its_business(
    tmp_path: Path, start: int, end: int
) -> None:
    if start >= end:
        return
    batches = list(ALL)
    batches[1] = with_size(batches[1], -1)  # the only way to what follows
    directory = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    expected = [offset for offset in range(start, end) if offset // 5 != 1]
    found, ranges = read_skipping_damage(directory, start=start, end=end)
    assert found == expected
    at = positions(batches)
    touches = start < 10 and end > 5
    assert spans(ranges) == ([(at[1], at[2], 5, 10)] if touches else [])
    rows = permissive(directory, start=start, end=end)
    assert len(rows) == len(expected) + touches


@pytest.mark.parametrize("which", range(6))
def test_time_look_ups_lead_past_damage(tmp_path: Path, which: int) -> None:
    records = [plain_records(5 * place, 5, timestamp=1_000 * place) for place in range(6)]
    sound = [batch_v2(each) for each in records]
    batches = [with_bad_crc(each) if place == which else each for place, each in enumerate(sound)]
    directory = log(tmp_path, batches)
    for place in range(6):
        first = 5 * place if place != which else 5 * place + 5
        start = pylog.Timestamp(1_000 * place, "latest")
        found, _ = read_skipping_damage(directory, start=start)
        assert found == [o for o in range(first, 30) if o // 5 != which]
        found, _ = read_skipping_damage(directory, end=pylog.Timestamp(1_000 * place))
        assert found == [o for o in range(5 * place) if o // 5 != which]


@pytest.mark.parametrize("which", range(6))
@pytest.mark.parametrize("size_bytes", [-1, 1 << 20])
def test_offset_look_ups_lead_past_damage(tmp_path: Path, which: int, size_bytes: int) -> None:
    batches = list(ALL)
    batches[which] = with_size(batches[which], size_bytes)
    directory = log(tmp_path, batches)
    sound = [offset for offset in range(30) if offset // 5 != which]
    ending = 25 if which == 5 else 30
    for start in range(ending):
        assert read_skipping_damage(directory, start=start)[0] == [o for o in sound if o >= start]
        assert read_skipping_damage(directory, end=start)[0] == [o for o in sound if o < start]


def test_names_of_modes() -> None:
    assert ReadMode.parse(" permissive ") is ReadMode.PERMISSIVE
    with pytest.raises(ValueError, match="mode 'SKIP' is not one of FAILFAST, DROPMALFORMED, PERM"):
        ReadMode.parse("SKIP")


def test_a_report_holds_a_range_once(tmp_path: Path) -> None:
    directory = log(tmp_path, [ALL[0], with_bad_crc(ALL[1]), *ALL[2:]])
    _, (damaged,) = read_skipping_damage(directory)
    report = DamageReport(is_logged=False)
    for _ in range(2):
        report.add(damaged)
        report.for_one_read(0, 30).add(damaged)
    assert report.ranges == [damaged]


def test_every_reader_of_a_scan_reports_to_it(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1"):
        write_partition(tmp_path, {0: [ALL[0], with_bad_crc(ALL[1])]}, name=name)
    scan = pylog.scan(tmp_path, mode="DROPMALFORMED")
    assert scan.count() == 10
    assert sorted(each.path for each in scan.damage.ranges) == [
        str(segment_path(tmp_path / name, 0)) for name in ("orders-0", "orders-1")
    ]


class CountedError(CorruptRecordError):
    asked = 0

    def __str__(self) -> str:
        type(self).asked += 1
        return super().__str__()


def fail(number: int) -> None:
    reason = f"record {number} is broken"
    raise CountedError(reason)


def test_what_went_wrong_is_kept_once() -> None:
    attempts = Attempts()
    assert attempts.read(lambda: 5) == 5
    for number in (1, 2, 1):
        assert attempts.read(lambda: fail(number)) is None  # noqa: B023 - called at once
    assert [str(each) for each in attempts.errors] == [
        "record 1 is broken",
        "record 2 is broken",
    ]


def test_many_errors_are_not_compared_with_each_other() -> None:
    attempts = Attempts()
    CountedError.asked = 0
    for number in range(1000):
        attempts.read(lambda: fail(number))  # noqa: B023 - called at once
    assert len(attempts.errors) == 1000
    assert CountedError.asked == 1000


def test_type_checkers_know_every_mode() -> None:
    assert get_args(ReadModeName) == tuple(ReadMode)
