from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pylog.errors import CorruptRecordError
from pylog.files.byte_source import LocalFile
from pylog.log_file.batch_walk import (
    PositionedHeader,
    WholeBatches,
    find_whole_batches,
    has_valid_checksum,
    is_zero,
    read_header,
    walk_headers,
)
from tests.support.batches import Stored, batch_v2, joined, message, plain_records, with_bad_crc

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BATCHES = [
    batch_v2(plain_records(0, 3)),
    message(plain_records(3, 1)[0], magic=0),
    batch_v2(plain_records(4, 400, value_size=100)),
    batch_v2(plain_records(404, 2)),
]
DATA = joined(BATCHES)
STARTS = [sum(len(built.data) for built in BATCHES[:index]) for index in range(len(BATCHES))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "00000000000000000000.log"


@pytest.fixture
def source(path: Path) -> Iterator[LocalFile]:
    path.write_bytes(DATA)
    with LocalFile(path) as file:
        yield file


def whole_batches_of(path: Path, content: bytes, start: int = 0) -> WholeBatches:
    path.write_bytes(content)
    with LocalFile(path) as file:
        return find_whole_batches(file, start, file.size(), lowest_offset=0)


def test_every_header_is_walked_over(source: LocalFile) -> None:
    found = list(walk_headers(source, 0, len(DATA)))
    assert [each.position for each in found] == STARTS
    assert [each.end_position for each in found] == [*STARTS[1:], len(DATA)]
    assert [each.header.last_offset for each in found] == [2, 3, 403, 405]


def test_a_walk_may_begin_at_any_batch_and_ends_before_one_that_is_cut(source: LocalFile) -> None:
    assert [e.position for e in walk_headers(source, STARTS[2], len(DATA) - 1)] == STARTS[2:3]
    assert list(walk_headers(source, len(DATA), len(DATA))) == []


def test_an_impossible_header_ends_a_walk_with_an_error(path: Path) -> None:
    path.write_bytes(DATA + b"\xff" * 100)
    walked: list[PositionedHeader] = []
    with (
        LocalFile(path) as file,
        pytest.raises(CorruptRecordError, match=rf"^{path} at byte {len(DATA)}: "),
    ):
        walked.extend(walk_headers(file, 0, file.size()))
    assert read_positions(path) == STARTS


def read_positions(path: Path) -> list[int]:
    found: list[int] = []
    with LocalFile(path) as file:
        walk = walk_headers(file, 0, file.size())
        while len(found) < len(STARTS):
            found.append(next(walk).position)
    return found


def test_whole_batches_reach_to_the_end_of_a_sound_file(path: Path) -> None:
    found = whole_batches_of(path, DATA)
    assert (found.end_position, found.defect) == (len(DATA), None)
    assert found.last is not None
    assert found.last.header.last_offset == 405
    assert whole_batches_of(path, b"") == WholeBatches(0, None, None)


@pytest.mark.parametrize("cut", [1, 60, 61, 62, 100])
def test_a_torn_tail_is_a_normal_end(path: Path, cut: int) -> None:
    found = whole_batches_of(path, DATA[:-cut])
    assert found.defect is None
    assert found.end_position == STARTS[-1]
    assert found.last is not None
    assert found.last.header.last_offset == 403


@pytest.mark.parametrize("zeros", [1, 16, 17, 61, 5_000, 3_000_000])
def test_a_tail_of_zeros_is_a_normal_end(path: Path, zeros: int) -> None:
    found = whole_batches_of(path, DATA + bytes(zeros))
    assert (found.end_position, found.defect) == (len(DATA), None)


def test_a_file_of_zeros_is_empty(path: Path) -> None:
    assert whole_batches_of(path, bytes(10_000)) == WholeBatches(0, None, None)


def test_a_hole_at_the_end_is_a_normal_end(path: Path) -> None:
    path.write_bytes(DATA)
    os.truncate(path, len(DATA) + (1 << 32))
    with LocalFile(path) as file:
        found = find_whole_batches(file, 0, file.size(), lowest_offset=0)
    assert (found.end_position, found.defect) == (len(DATA), None)


@pytest.mark.parametrize("at", [20, 100, 4_999])
def test_zeros_with_anything_in_them_are_a_defect(path: Path, at: int) -> None:
    tail = bytearray(5_000)
    tail[at] = 1
    found = whole_batches_of(path, DATA + bytes(tail))
    assert found.end_position == len(DATA)
    assert found.defect == "batch size is 0, expected at least 14 in format v0"


def test_zeros_are_looked_for_across_holes_and_data(path: Path) -> None:
    path.write_bytes(bytes(100_000))
    os.truncate(path, 10_000_000)
    with path.open("r+b") as file:
        file.seek(9_999_999)
        file.write(b"\x01")
    with LocalFile(path) as source:
        assert is_zero(source, 0, 9_999_999)
        assert not is_zero(source, 0, 10_000_000)
        assert not is_zero(source, 9_999_999, 10_000_000)
        assert is_zero(source, 5, 5)


def test_a_header_is_read_only_if_the_whole_batch_is_there(source: LocalFile) -> None:
    assert read_header(source, 0, STARTS[1]) is not None
    assert read_header(source, 0, STARTS[1] - 1) is None
    assert read_header(source, STARTS[1], STARTS[2]) is not None
    assert read_header(source, len(DATA) - 5, len(DATA)) is None


def test_a_checksum_is_that_of_the_batch(path: Path) -> None:
    path.write_bytes(joined([with_bad_crc(BATCHES[0]), BATCHES[1]]))
    with LocalFile(path) as file:
        header = read_header(file, 0, file.size())
        assert header is not None
        assert not has_valid_checksum(file, header)


def test_a_checksum_is_computed_over_many_chunks(path: Path) -> None:
    built = batch_v2([Stored(0, 0, None, bytes(range(256)) * 12_000)])
    path.write_bytes(built.data)
    with LocalFile(path) as file:
        found = read_header(file, 0, file.size())
        assert found is not None
        assert has_valid_checksum(file, found)
