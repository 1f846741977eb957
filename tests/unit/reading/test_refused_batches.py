"""Every byte that a read skips is reported, between sound batches, whatever its headers say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import CorruptRecordError, LogStorageError
from pylog.reading.damage import DamageReport
from tests.support.batches import (
    ABORT,
    COMMIT,
    Built,
    Stored,
    batch_v2,
    batch_v2_of,
    empty_batch_v2,
    joined,
    marker,
    message,
    message_set,
    plain_records,
    record_v2,
    with_bad_crc,
    wrapper,
    wrapper_of,
)
from tests.support.codecs import compress
from tests.support.damage import positions, with_base_offset, with_bytes
from tests.support.log_files import segment_path, write_partition
from tests.support.reading import read_skipping_damage, spans

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pylog.model import IsolationName
    from pylog.reading.damage import ReadModeName

BATCHES = [batch_v2(plain_records(offset, 5)) for offset in range(0, 60, 5)]


def partition(directory: Path, batches: Sequence[Built]) -> Path:
    return write_partition(directory, {0: batches}, with_index=False, with_time_index=False)


def broken(built: Built) -> Built:
    """Return the batch with a record that breaks its format, under a right checksum."""
    data = batch_v2_of(
        b"\xff" * 40,
        base_offset=built.base_offset,
        last_offset_delta=built.last_offset - built.base_offset,
        record_count=5,
    )
    return replace(built, data=data)


def findings(directory: Path, code: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pylog.read_table(directory, "findings").to_pylist()
    return [row for row in rows if row["code"] == code]


@pytest.mark.parametrize("options", [{}, {"window_bytes": 17}, {"max_partition_bytes": 1}])
def test_batches_below_the_end_of_the_one_before_are_reported(
    tmp_path: Path, options: dict[str, int]
) -> None:
    wide = batch_v2(plain_records(0, 1), last_offset=9)
    batches = [wide, batch_v2(plain_records(1, 1)), batch_v2(plain_records(2, 1))]
    found, ranges = read_skipping_damage(partition(tmp_path, batches), **options)
    assert found == [0]
    at = positions(batches)
    assert [(each.position, each.end_position) for each in ranges] == [(at[1], at[3])]
    assert (ranges[0].next_offset, ranges[0].end_offset) == (10, None)


def test_a_log_of_nothing_but_damage_is_reported(tmp_path: Path) -> None:
    batches = [with_bad_crc(BATCHES[0])]
    found, ranges = read_skipping_damage(partition(tmp_path, batches))
    assert (found, spans(ranges)) == ([], [(0, len(BATCHES[0].data), 0, None)])


def test_a_last_segment_of_nothing_but_wrong_offsets_is_reported(tmp_path: Path) -> None:
    # All offsets lie below the file's name: the log ends before the file, and yet it is looked at.
    directory = write_partition(tmp_path, {0: BATCHES[:2], 10: BATCHES[:2]}, with_index=False)
    found, (damaged,) = read_skipping_damage(directory)
    assert found == list(range(10))
    size = len(joined(BATCHES[:2]))
    assert (damaged.path, damaged.position, damaged.end_position) == (
        str(segment_path(directory, 10)),
        0,
        size,
    )


@pytest.mark.parametrize("window_bytes", [17, 300, 1 << 22])
def test_refused_batches_in_a_row_are_one_range_between_sound_ones(
    tmp_path: Path, window_bytes: int
) -> None:
    batches = list(BATCHES)
    for which in (2, 3, 7):
        batches[which] = broken(batches[which])
    found, ranges = read_skipping_damage(partition(tmp_path, batches), window_bytes=window_bytes)
    assert found == [offset for offset in range(60) if offset // 5 not in (2, 3, 7)]
    at = positions(batches)
    assert spans(ranges) == [(at[2], at[4], 10, 20), (at[7], at[8], 35, 40)]


def test_a_refused_wrapper_begins_after_the_batch_before_it(tmp_path: Path) -> None:
    # Its header tells the last offset alone, and that one may be as wrong as the rest.
    entries = message_set(plain_records(0, 5), inner_magic=1)[:-1] + b"\xff"
    data = wrapper_of(compress("gzip", entries), offset=9, magic=1, codec="gzip")
    bad = Built(data, (), 1, 5, 9, codec="gzip")
    following = wrapper(plain_records(10, 5), magic=1, codec="gzip")
    directory = partition(tmp_path, [BATCHES[0], bad, following])
    found, ranges = read_skipping_damage(directory)
    assert found == [*range(5), *range(10, 15)]
    at = positions([BATCHES[0], bad, following])
    assert spans(ranges) == [(at[1], at[2], 5, 14)]  # below the last of the wrapper that follows
    for start in range(5, 10):
        assert len(read_skipping_damage(directory, start=start)[1]) == 1


@pytest.mark.parametrize(
    "second",
    [
        batch_v2_of(record_v2(0, 0, None, b"v"), base_offset=2, record_count=-1),
        batch_v2_of(record_v2(0, 0, None, b"v"), base_offset=2, record_count=1, attributes=5),
        batch_v2_of(b"\0\0\0\1", base_offset=2, record_count=1),
        wrapper_of(b"x", offset=2, magic=1, codec="zstd"),
    ],
    ids=["negative count", "unknown codec", "no record", "zstd in v1"],
)
@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
def test_several_malformed_batches_in_one_window_raise_nothing(
    tmp_path: Path, mode: ReadModeName, second: bytes
) -> None:
    first = batch_v2_of(b"\0\0\0\1", record_count=1)
    batches = [
        Built(first, (), 2, 0, 0),
        batch_v2(plain_records(1, 1)),
        Built(second, (), 2, 2, 2),
        batch_v2(plain_records(3, 1), codec="zstd"),
    ]
    scan = pylog.scan(partition(tmp_path, batches), mode=mode)
    offsets = scan.to_table()["offset"].to_pylist()
    assert [offset for offset in offsets if offset is not None] == [1, 3]
    assert len(offsets) == (4 if mode == "PERMISSIVE" else 2)
    at = positions(batches)
    assert spans(scan.damage.ranges) == [(at[0], at[1], 0, 1), (at[2], at[3], 2, 3)]


@pytest.mark.thorough
def test_many_refused_batches_in_one_window_cost_no_more_than_their_share(tmp_path: Path) -> None:
    payload = compress("zstd", b"\xff" * 20_000)
    batches = []
    for offset in range(3_000):
        data = batch_v2_of(payload, base_offset=offset, record_count=1, attributes=4)
        sound = batch_v2(plain_records(offset, 1), codec="zstd")
        batches.append(Built(data, (), 2, offset, offset) if offset % 2 else sound)
    found, ranges = read_skipping_damage(partition(tmp_path, batches))
    assert found == list(range(0, 3_000, 2))
    assert len(ranges) == 1_500


# ---- offsets that do not exist


@pytest.mark.parametrize("base", [2**63 - 1, 2**63 - 3])
@pytest.mark.parametrize("span", [3, 2**31 - 1])
def test_no_batch_ends_at_the_highest_number_or_above(tmp_path: Path, base: int, span: int) -> None:
    data = batch_v2_of(
        record_v2(0, 0, None, b"v"), base_offset=base, last_offset_delta=span - 1, record_count=1
    )
    far = Built(data, (), 2, base, base)
    directory = partition(tmp_path, [BATCHES[0], far])
    for read in (lambda: pylog.scan(directory).to_table(), lambda: pylog.scan(directory).count()):
        with pytest.raises(CorruptRecordError, match=f"batch has offsets {base} to "):
            read()
    found, ranges = read_skipping_damage(directory)
    at = positions([BATCHES[0], far])
    assert (found, spans(ranges)) == (list(range(5)), [(at[1], at[2], 5, None)])
    assert findings(directory, "damaged_batches")


@pytest.mark.parametrize("window_bytes", [17, 1 << 20])
@pytest.mark.parametrize("codec", [None, "gzip"])
def test_nor_does_one_before_a_batch_whose_offset_is_negative(
    tmp_path: Path, codec: str | None, window_bytes: int
) -> None:
    record = Stored(2**63 - 1, 0, None, b"v")
    far = message(record, magic=1) if codec is None else wrapper([record], magic=1, codec=codec)
    batches = [BATCHES[0], far, with_base_offset(BATCHES[0], -2), BATCHES[1]]
    directory = partition(tmp_path, batches)
    with pytest.raises(CorruptRecordError, match=f"batch has offsets {2**63 - 1} to "):
        pylog.scan(directory).to_table()
    found, ranges = read_skipping_damage(directory, window_bytes=window_bytes)
    at = positions(batches)
    assert (found, spans(ranges)) == (list(range(10)), [(at[1], at[3], 5, 5)])
    directory = partition(tmp_path / "alone", batches[1:3])
    assert read_skipping_damage(directory, window_bytes=window_bytes)[0] == []
    view = next(iter(pylog.open_directory(directory)))
    assert view.with_damage(DamageReport()).log_end_offset == 0


def test_the_highest_offset_that_has_one_after_it_is_read(tmp_path: Path) -> None:
    far = batch_v2([Stored(2**63 - 2, 0, None, b"v")])
    directory = write_partition(tmp_path, {2**63 - 9: [far]}, with_index=False)
    table = pylog.scan(directory).to_table()
    assert table["offset"].to_pylist() == [2**63 - 2]


# ---- the last batch of a range


@pytest.mark.parametrize("end", [15, 17, 20])
def test_a_base_offset_that_is_too_high_does_not_end_a_range_early(
    tmp_path: Path, end: int
) -> None:
    # 15 to 19 claim to be 100 to 104: what is wanted of them would seem to lie before them. The
    # batch after them proves their place.
    batches = [*BATCHES[:3], with_base_offset(BATCHES[3], 100), *BATCHES[4:]]
    directory = partition(tmp_path, batches)
    if end > 15:
        for options in ({"end": end}, {"start": 12, "end": end}):
            with pytest.raises(LogStorageError, match="batch has offset"):
                pylog.scan(directory, **options).to_table()  # type: ignore[arg-type]
    found, ranges = read_skipping_damage(directory, end=end)
    assert found == list(range(end))
    kept = [(each.next_offset, each.end_offset) for each in ranges if each.is_kept]
    assert kept == ([] if end == 15 else [(15, 20)])


# ---- control batches, empty batches


def control(payload: bytes, attributes: int = 0x30) -> Built:
    data = batch_v2_of(payload, base_offset=5, attributes=attributes, record_count=1)
    return Built(data, (), 2, 5, 5, control_type=COMMIT)


ONE = record_v2(0, 0, b"\0\0\0\1", bytes(6))
BAD_CONTROL = {
    "unknown codec": control(ONE, 0x35),
    "no stream": control(b"no stream", 0x31),
    "no record": control(b"\0\0\0\1"),
    "bytes left": control(ONE + b"\0"),
    "no key": control(record_v2(0, 0, None, bytes(6))),
    "short key": control(record_v2(0, 0, b"\0\0\0", bytes(6))),
    "negative version": control(record_v2(0, 0, b"\xff\xff\0\1", bytes(6))),
    "offset": control(record_v2(0, 3, b"\0\0\0\1", bytes(6))),
    "value runs over": control(with_bytes(Built(ONE, (), 2, 0, 0), 9, b"\x0e").data),
}


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("bad", BAD_CONTROL.values(), ids=BAD_CONTROL)
def test_a_control_batch_that_cannot_be_read_is_damage(
    tmp_path: Path, bad: Built, isolation: IsolationName
) -> None:
    batches = [BATCHES[0], bad, batch_v2(plain_records(6, 4))]
    directory = partition(tmp_path, batches)
    at = positions(batches)
    with pytest.raises(LogStorageError, match="control batch cannot be read") as caught:
        pylog.scan(directory, isolation=isolation).to_table()
    assert caught.value.position == at[1]  # type: ignore[attr-defined]
    found, ranges = read_skipping_damage(directory, isolation=isolation)
    assert found == [*range(5), *range(6, 10)]
    assert spans(ranges) == [(at[1], at[2], 5, 6)]
    (finding,) = findings(directory, "damaged_batches")
    assert (finding["position"], finding["next_offset"], finding["end_offset"]) == (at[1], 5, 6)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("bad", BAD_CONTROL.values(), ids=BAD_CONTROL)
def test_it_is_damage_also_where_a_wrong_checksum_follows_in_the_window(
    tmp_path: Path, bad: Built, isolation: IsolationName
) -> None:
    sound = [batch_v2(plain_records(6, 4)), batch_v2(plain_records(15, 5))]
    batches = [BATCHES[0], bad, sound[0], with_bad_crc(BATCHES[2]), sound[1]]
    directory = partition(tmp_path, batches)
    at = positions(batches)
    with pytest.raises(LogStorageError, match="control batch cannot be read") as caught:
        pylog.scan(directory, isolation=isolation).to_table()
    assert caught.value.position == at[1]  # type: ignore[attr-defined]
    found, ranges = read_skipping_damage(directory, isolation=isolation)
    assert found == [*range(5), *range(6, 10), *range(15, 20)]
    assert spans(ranges) == [(at[1], at[2], 5, 6), (at[3], at[4], 10, 15)]


def test_what_a_lost_marker_would_have_decided_is_not_given_as_committed(tmp_path: Path) -> None:
    open_one = batch_v2(
        plain_records(0, 5), producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    batches = [open_one, BAD_CONTROL["unknown codec"], marker(6, ABORT, producer_id=2)]
    found, ranges = read_skipping_damage(partition(tmp_path, batches), isolation="read_committed")
    assert found == []
    assert len(ranges) == 1


def test_what_stands_in_an_empty_batch_is_a_finding(tmp_path: Path) -> None:
    data = batch_v2_of(b"leftover", base_offset=5, last_offset_delta=4, record_count=0)
    batches = [BATCHES[0], Built(data, (), 2, 5, 9), BATCHES[2]]
    directory = partition(tmp_path, batches)
    # As Kafka, which passes over it.
    assert pylog.scan(directory).to_table()["offset"].to_pylist() == [*range(5), *range(10, 15)]
    (finding,) = findings(directory, "filled_empty_batch")
    at = positions(batches)
    assert (finding["severity"], finding["position"], finding["end_position"]) == (
        "error",
        at[1],
        at[2],
    )
    assert (finding["next_offset"], finding["end_offset"]) == (5, 10)
    assert "8 bytes follow its header" in finding["message"]


def test_an_emptied_batch_is_not_blamed_for_the_wrong_count_of_a_later_one(tmp_path: Path) -> None:
    wrong = batch_v2_of(b"\x00" * 7, base_offset=10, last_offset_delta=4, record_count=5)
    batches = [
        BATCHES[0],
        empty_batch_v2(5, 9),
        Built(wrong, (), magic=2, base_offset=10, last_offset=14),
        BATCHES[3],
    ]
    directory = partition(tmp_path, batches)
    start, end = (sum(len(each.data) for each in batches[:count]) for count in (2, 3))
    scan = pylog.scan(directory, mode="DROPMALFORMED", columns=["offset"])
    assert scan.to_table()["offset"].to_pylist() == [*range(5), *range(15, 20)]
    [gap] = scan.damage.ranges
    assert (gap.position, gap.end_position, gap.next_offset, gap.end_offset) == (start, end, 10, 15)


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED"])
@pytest.mark.parametrize("at", [16, 26])
@pytest.mark.parametrize("which", [1, 3, 5])
def test_a_batch_that_seems_to_end_before_the_range_hides_no_record_of_it(
    tmp_path: Path, mode: ReadModeName, at: int, which: int
) -> None:
    """The magic, or the last offset delta, is damaged: read by its header, the batch is shorter."""
    segments = {0: BATCHES[:4], 20: BATCHES[4:6], 30: BATCHES[6:]}
    directory = write_partition(tmp_path, segments, with_index=False, with_time_index=False)
    log = segment_path(directory, 20 if which == 5 else 0)
    content = bytearray(log.read_bytes())
    place = sum(len(each.data) for each in BATCHES[4 if which == 5 else 0 : which])
    content[place + at] = 0  # v0, whose offset is its last one; or a delta of 0
    log.write_bytes(content)
    start = 5 * which + 2
    scan = pylog.scan(directory, start=start, end=start + 1, mode=mode, columns=["offset"])
    if mode == "FAILFAST":
        with pytest.raises(CorruptRecordError, match="CRC stored"):
            scan.to_table()
    else:
        assert scan.to_table().num_rows == 0
        [gap] = scan.damage.ranges
        assert gap.next_offset <= start
        assert gap.end_offset == 5 * which + 5


def test_a_range_that_begins_in_a_sound_gap_is_not_damaged(tmp_path: Path) -> None:
    batches = [BATCHES[0], BATCHES[3], BATCHES[5]]
    directory = write_partition(tmp_path, {0: batches, 40: BATCHES[8:]})
    for start, expected in ((7, [15]), (15, [15]), (22, [25]), (33, [40])):
        scan = pylog.scan(directory, start=start, columns=["offset"])
        assert scan.to_table()["offset"].to_pylist()[:1] == expected
        assert scan.count() == scan.to_table().num_rows
