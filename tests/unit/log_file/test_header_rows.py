"""Headers read one by one say what a reader of whole windows finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from pylog.files.byte_source import LocalFile
from pylog.kernels import skip_headers
from pylog.log_file import header_rows
from pylog.log_file.header_rows import FOLLOWS_A_GAP, IS_REWRITTEN, HeaderRows
from tests.support.batch_parser import ParsedBatch
from tests.support.batches import Built, Stored, batch_v2, joined, message, plain_records

if TYPE_CHECKING:
    from pathlib import Path

VALUE = 5000  # so that batches are large


def large(offset: int, count: int = 2, **options: object) -> Built:
    return batch_v2(
        plain_records(offset, count, timestamp=1000 + offset, value_size=VALUE),
        **options,  # type: ignore[arg-type]
    )


def read(path: Path, *, lowest: int = 0, limit: int = 1 << 40) -> tuple[np.ndarray, int, int]:
    with LocalFile(path) as source:
        headers = HeaderRows(source, 0, source.size(), (lowest, limit))
        found = list(headers)
    return (
        np.concatenate(found) if found else np.empty((0, 10)),
        headers.position,
        headers.next_offset,
    )


def test_a_row_has_what_the_header_of_its_batch_says(tmp_path: Path) -> None:
    batches = [
        large(0, leader_epoch=3),
        large(2, append_time=7777),
        large(4, delete_horizon=5),
        batch_v2([Stored(9, 100, b"k", b"v" * VALUE)], base_offset=6, last_offset=9),
        large(20),
        batch_v2([Stored(22, -1, b"k", b"v" * VALUE)], base_timestamp=-1, leader_epoch=-1),
    ]
    (tmp_path / "log").write_bytes(joined(batches))
    rows, position, next_offset = read(tmp_path / "log")
    assert (position, next_offset) == (len(joined(batches)), 23)
    at = 0
    for row, built in zip(rows.tolist(), batches, strict=True):
        parsed = ParsedBatch.of(built.data)
        assert row[:3] == [built.base_offset, built.last_offset, parsed.leader_epoch]
        assert row[3:6] == [int.from_bytes(built.data[17:21]), len(built.data), at]
        assert (row[6], row[8]) == (len(built.records), built.max_timestamp)
        at += len(built.data)
    assert rows[:, 7].tolist() == [1000, 7777, 1005, 100, 1020, -1]
    assert rows[:, 9].tolist() == [0, 0, IS_REWRITTEN, IS_REWRITTEN, FOLLOWS_A_GAP, 0]


@pytest.mark.parametrize("what", ["other format", "torn", "zeros", "goes back", "beyond", "size"])
def test_it_ends_before_what_is_not_a_batch_in_order(tmp_path: Path, what: str) -> None:
    sound = joined([large(0), large(2)])
    data = bytearray(large(1000).data)
    following = {
        "other format": message(Stored(4, 1, b"k", b"v" * VALUE), magic=1).data,
        "torn": bytes(data[:-1]),
        "zeros": bytes(10_000),
        "goes back": large(3).data,
        "beyond": bytes(data),
        "size": bytes(data[:8]) + b"\x00\x00\x00\x05" + bytes(data[12:]),
    }[what]
    (tmp_path / "log").write_bytes(sound + following + large(1004).data)
    if what == "torn":
        (tmp_path / "log").write_bytes(sound + following)
    rows, position, next_offset = read(tmp_path / "log", limit=1001)
    assert (len(rows), position, next_offset) == (2, len(sound), 4)


def test_offsets_begin_at_the_lowest(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(large(5).data)
    assert read(tmp_path / "log", lowest=6)[1:] == (0, 6)
    assert read(tmp_path / "log", lowest=5)[2] == 7
    (tmp_path / "log").write_bytes(b"")
    assert read(tmp_path / "log")[1] == 0


def test_small_batches_are_left_to_whoever_reads_windows(tmp_path: Path) -> None:
    small = [batch_v2(plain_records(at, 1)) for at in range(30_000)]
    (tmp_path / "log").write_bytes(joined(small))
    rows, position, next_offset = read(tmp_path / "log")
    assert len(rows) == next_offset < 20_000
    assert position == sum(len(each.data) for each in small[: len(rows)])


def test_more_rows_than_fit_into_one_array_come_one_array_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(header_rows, "_MOST_ROWS", 7)
    monkeypatch.setattr(header_rows, "_FIRST_BYTES", 30_000)
    monkeypatch.setattr(header_rows, "_STRIDE", 40_000)
    batches = [large(at) for at in range(0, 80, 2)]
    (tmp_path / "log").write_bytes(joined(batches))
    rows, position, _ = read(tmp_path / "log")
    assert rows[:, 0].tolist() == list(range(0, 80, 2))
    assert position == len(joined(batches))


def test_numbers_are_those_of_the_kernel() -> None:
    assert (skip_headers.IS_REWRITTEN, skip_headers.FOLLOWS_A_GAP) == (IS_REWRITTEN, FOLLOWS_A_GAP)
    assert (skip_headers.ROW_FIELDS, skip_headers.HEADER_BYTES) == (10, 61)
    assert (header_rows._FIELDS, header_rows._HEADER_BYTES) == (10, 61)


def test_a_buffer_that_is_too_small_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(large(0).data)
    state = np.zeros(2, dtype=np.int64)
    rows, buffer = np.zeros(10, dtype=np.int64), np.zeros(60, dtype=np.uint8)
    with LocalFile(tmp_path / "log") as source:
        size = source.size()
        given = (source.descriptor, size, size, 100)
        assert skip_headers.header_rows(*given, buffer, rows, state) == 0
        whole = np.zeros(61, dtype=np.uint8)
        assert skip_headers.header_rows(*given, whole, rows[:9], state) == 0
        assert skip_headers.header_rows(*given, whole, rows, state) == 1
    assert not buffer.any()
