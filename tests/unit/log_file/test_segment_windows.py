from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import CorruptRecordError, SegmentVanishedError
from pylog.files.byte_source import LocalFile
from pylog.log_file.segment_windows import SegmentTail, SegmentWindows
from tests.support.batches import Built, batch_v2, joined, plain_records

if TYPE_CHECKING:
    from pathlib import Path

SMALL = [batch_v2(plain_records(10 * i, 10)) for i in range(40)]
LARGE = batch_v2(plain_records(400, 3, value_size=50_000))
BATCHES = [*SMALL, LARGE, *(batch_v2(plain_records(403 + i, 1)) for i in range(5))]


def read_windows(
    path: Path, *, start: int = 0, end: int | None = None, window_bytes: int = 4_000
) -> tuple[list[int], SegmentTail, int]:
    """Return the batches' positions in the file, the tail, and how many windows there were."""
    positions, count = [], 0
    with LocalFile(path) as source:
        limit = source.size() if end is None else end
        windows = SegmentWindows(source, start, limit, window_bytes=window_bytes)
        for window in windows:
            found = window.headers.positions + window.file_position
            positions += found.tolist()
            assert window.end_position == found[-1] + window.headers.sizes_bytes[-1]
            count += 1
    return positions, windows.tail, count


def batch_starts(batches: list[Built]) -> list[int]:
    return [sum(len(built.data) for built in batches[:index]) for index in range(len(batches))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "00000000000000000000.log"
    made.write_bytes(joined(BATCHES))
    return made


@pytest.mark.parametrize("window_bytes", [17, 100, 1_000, 4_000, 10_000_000])
def test_every_batch_is_in_one_window_whatever_its_size(path: Path, window_bytes: int) -> None:
    positions, tail, count = read_windows(path, window_bytes=window_bytes)
    assert positions == batch_starts(BATCHES)
    assert tail == (len(joined(BATCHES)), None)
    assert (count == 1) == (window_bytes == 10_000_000)


class CountingFile(LocalFile):
    """A file that notes the ranges it is asked for."""

    __slots__ = ("ranges",)

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.ranges: list[tuple[int, int]] = []

    def read_at(self, position: int, length: int) -> bytes:
        self.ranges.append((position, position + length))
        return super().read_at(position, length)

    def read_into(self, position: int, buffer: memoryview) -> int:
        if len(buffer):
            self.ranges.append((position, position + len(buffer)))
        return super().read_into(position, buffer)


@pytest.mark.parametrize("first_window_bytes", [17, 900, 100_000])
@pytest.mark.parametrize("window_bytes", [17, 1_000, 4_000, 10_000_000])
def test_no_byte_is_read_twice(path: Path, window_bytes: int, first_window_bytes: int) -> None:
    end = len(joined(BATCHES)) - 1  # the last batch is cut
    with CountingFile(path) as source:
        windows = SegmentWindows(
            source, 0, end, window_bytes=window_bytes, first_window_bytes=first_window_bytes
        )
        content = [bytes(window.buffer[: window.size_bytes]) for window in windows]
        assert b"".join(content) == joined(BATCHES[:-1])
        assert windows.tail == (batch_starts(BATCHES)[-1], None)
        begins, ends = zip(*source.ranges, strict=True)
    assert begins == (0, *ends[:-1])
    assert ends[-1] == end


def test_windows_begin_and_end_where_they_should(path: Path) -> None:
    begin, end = batch_starts(BATCHES)[3], batch_starts(BATCHES)[20]
    positions, tail, _ = read_windows(path, start=begin, end=end)
    assert positions == batch_starts(BATCHES)[3:20]
    assert tail == (end, None)


def test_nothing_to_read_gives_no_window(path: Path) -> None:
    assert read_windows(path, start=0, end=0) == ([], (0, None), 0)
    end = len(joined(BATCHES))
    assert read_windows(path, start=end, end=end) == ([], (end, None), 0)


@pytest.mark.parametrize("cut", [1, 16, 17, 70])
@pytest.mark.parametrize("window_bytes", [100, 10_000_000])
def test_a_batch_cut_by_the_end_is_the_tail(path: Path, cut: int, window_bytes: int) -> None:
    last = batch_starts(BATCHES)[-1]
    positions, tail, _ = read_windows(
        path, end=len(joined(BATCHES)) - cut, window_bytes=window_bytes
    )
    assert positions == batch_starts(BATCHES)[:-1]
    assert tail == (last, None)


@pytest.mark.parametrize("window_bytes", [100, 10_000_000])
def test_zeros_after_the_batches_are_not_a_defect(path: Path, window_bytes: int) -> None:
    path.write_bytes(joined(SMALL) + bytes(30_000))
    positions, tail, _ = read_windows(path, window_bytes=window_bytes)
    assert positions == batch_starts(SMALL)
    assert tail == (len(joined(SMALL)), None)


@pytest.mark.parametrize("window_bytes", [100, 10_000_000])
def test_an_impossible_header_is_reported_after_the_batches_before_it(
    path: Path, window_bytes: int
) -> None:
    path.write_bytes(joined(SMALL) + bytes(1_000) + b"\x01" + bytes(1_000))
    positions, tail, _ = read_windows(path, window_bytes=window_bytes)
    assert positions == batch_starts(SMALL)
    assert tail == (len(joined(SMALL)), "batch size is 0, expected at least 14 in format v0")


def test_a_file_that_has_become_shorter_is_reported(path: Path) -> None:
    content = joined(BATCHES)
    path.write_bytes(content[:1_000])
    with pytest.raises(SegmentVanishedError) as caught:
        read_windows(path, end=len(content), window_bytes=10_000_000)
    assert str(caught.value) == (
        f"{path} at byte 1000: file ends here, it was planned to be read up to byte {len(content)}"
    )


def test_a_size_that_is_damaged_costs_no_memory(path: Path) -> None:
    # The header claims 2 GB, the file is sparse and as long.
    claim = bytearray(batch_v2(plain_records(0, 1)).data)
    claim[8:12] = (2**31 - 100).to_bytes(4, "big")
    path.write_bytes(bytes(claim))
    with path.open("r+b") as file:
        file.truncate(2**31)
    with LocalFile(path) as source:
        windows = iter(SegmentWindows(source, 0, 90 * 2**20 + 5, window_bytes=1_000))
        assert next(windows, None) is None
    claim[8:12] = (80 * 2**20).to_bytes(4, "big")
    path.write_bytes(bytes(claim))
    with path.open("r+b") as file:
        file.truncate(90 * 2**20)
    with pytest.raises(
        CorruptRecordError, match=r"batch of 83886092 bytes: CRC stored 0x.*, computed 0x"
    ):
        read_windows(path)
