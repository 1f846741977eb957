"""Windows of headers alone: the same headers, few bytes read, and all bytes where they are asked.

Files are of batches large enough that headers pay, with small ones and control batches between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import pylog
from pylog.errors import CorruptRecordError, SegmentVanishedError
from pylog.files.byte_source import LocalFile
from pylog.log_file.segment_windows import SegmentWindows
from tests.support.batches import ABORT, COMMIT, Built, batch_v2, joined, marker, plain_records
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from pylog.record.batch_scan import Window


def large(offset: int, *, producer_id: int = -1, value_size: int = 9_000) -> Built:
    return batch_v2(
        plain_records(offset, 2, value_size=value_size),
        producer_id=producer_id,
        producer_epoch=-1 if producer_id < 0 else 0,
        base_sequence=-1 if producer_id < 0 else offset,
        is_transactional=producer_id >= 0,
    )


def mixed() -> list[Built]:
    """Two producers' transactions, every third aborted, one huge batch, 40 small ones."""
    batches, offset = [], 0
    for number in range(60):
        producer = number % 2 + 1
        value_size = 700_000 if number == 31 else 9_000 + number
        batches += [large(offset, producer_id=producer, value_size=value_size), large(offset + 2)]
        batches.append(marker(offset + 4, COMMIT if number % 3 else ABORT, producer_id=producer))
        offset += 5
    return batches + [batch_v2(plain_records(offset + i, 1)) for i in range(40)]


BATCHES = mixed()
DATA = joined(BATCHES)
STARTS = np.cumsum([0, *(len(built.data) for built in BATCHES)])[:-1].tolist()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return segment_path(write_partition(tmp_path, {0: BATCHES}), 0)


class CountingFile(LocalFile):
    """A file that counts the bytes that are read in whole stretches."""

    __slots__ = ("bytes_read",)

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.bytes_read = 0

    def read_into(self, position: int, buffer: memoryview) -> int:
        self.bytes_read += len(buffer)
        return super().read_into(position, buffer)


def windows_of(
    source: LocalFile, *, window_bytes: int, only_headers: bool = True, end: int | None = None
) -> Iterator[Window]:
    return iter(
        SegmentWindows(
            source,
            0,
            source.size() if end is None else end,
            window_bytes=window_bytes,
            first_window_bytes=min(window_bytes, 20_000),
            only_headers=only_headers,
        )
    )


@pytest.mark.parametrize("window_bytes", [17, 1_000, 30_000, 100_001, 1 << 22])
def test_headers_are_those_of_a_full_read(path: Path, window_bytes: int) -> None:
    def read(*, only_headers: bool) -> npt.NDArray[np.int64]:
        with LocalFile(path) as source:
            columns = []
            for window in windows_of(source, window_bytes=window_bytes, only_headers=only_headers):
                found = window.headers.columns.copy()
                found[0] += window.file_position
                columns.append(found)
        return np.concatenate(columns, axis=1)

    found = read(only_headers=True)
    assert found[0].tolist() == STARTS
    np.testing.assert_array_equal(found, read(only_headers=False))


def test_what_lies_between_headers_is_not_read(path: Path) -> None:
    with CountingFile(path) as source:
        for _ in windows_of(source, window_bytes=1 << 20):
            pass
        assert source.bytes_read < 0.1 * len(DATA)


@pytest.mark.parametrize("window_bytes", [30_000, 100_001, 1 << 22])
def test_batches_asked_for_are_whole_and_no_others_are_read(path: Path, window_bytes: int) -> None:
    seen = []
    with CountingFile(path) as source:
        for number, window in enumerate(windows_of(source, window_bytes=window_bytes)):
            headers = window.headers
            which = headers.is_control if number % 2 else None
            before = source.bytes_read
            window.read_batches(which)
            chosen = np.ones(len(headers), dtype=bool) if which is None else which
            if window.fetch is not None:
                assert source.bytes_read - before == headers.sizes_bytes[chosen].sum()
                seen.append(number % 2)
            for start, size in zip(
                headers.positions[chosen], headers.sizes_bytes[chosen], strict=True
            ):
                at = int(window.file_position + start)
                assert bytes(window.buffer[start : start + size]) == DATA[at : at + int(size)]
    assert set(seen) >= {1}


def test_small_batches_are_read_in_whole_stretches(tmp_path: Path) -> None:
    small = [batch_v2(plain_records(i, 1, value_size=1_000)) for i in range(200)]
    with CountingFile(segment_path(write_partition(tmp_path, {0: small}), 0)) as source:
        assert all(window.fetch is None for window in windows_of(source, window_bytes=50_000))
        assert source.bytes_read >= len(joined(small))


@pytest.mark.parametrize("kept_bytes", [STARTS[100] + 30, STARTS[100] + 500])
def test_a_file_that_has_become_shorter_is_reported(path: Path, kept_bytes: int) -> None:
    with LocalFile(path) as source:
        windows = windows_of(source, window_bytes=100_000)
        next(windows)
        with path.open("r+b") as file:
            file.truncate(kept_bytes)
        with pytest.raises(SegmentVanishedError, match="file ends here") as raised:
            list(windows)
    assert raised.value.position == kept_bytes


def test_a_file_that_has_become_shorter_is_reported_where_records_are_asked_for(path: Path) -> None:
    with LocalFile(path) as source:
        windows = windows_of(source, window_bytes=100_000)
        next(windows)
        window = next(windows)
        assert window.fetch is not None
        kept = window.file_position + 5_000
        with path.open("r+b") as file:
            file.truncate(kept)
        with pytest.raises(SegmentVanishedError, match="file ends here") as raised:
            window.read_batches()
    assert raised.value.position == kept


def expected_count(first: int, end: int) -> int:
    return sum(
        first <= record.offset < end
        for built in BATCHES
        if built.control_type is None
        for record in built.records
    )


@pytest.mark.parametrize(("first", "end"), [(0, 340), (1, 339), (146, 158), (158, 161), (51, 52)])
@pytest.mark.parametrize("window_bytes", [30_000, 1 << 22])
def test_count_of_a_range_that_cuts_batches(
    path: Path, first: int, end: int, window_bytes: int
) -> None:
    scan = pylog.scan(
        path.parents[1],
        start=first,
        end=end,
        isolation="read_uncommitted",
        window_bytes=window_bytes,
    )
    assert scan.count() == expected_count(first, end)


def test_count_verifies_the_checksum_of_a_batch_that_it_decodes(path: Path) -> None:
    data = bytearray(DATA)
    data[STARTS[94] + 5_000] ^= 1
    path.write_bytes(data)
    offset = BATCHES[94].records[1].offset
    scan = pylog.scan(path.parents[1], start=offset, isolation="read_uncommitted")
    with pytest.raises(CorruptRecordError, match="CRC stored") as raised:
        scan.count()
    assert raised.value.position == STARTS[94]


def test_offsets_that_go_back_are_reported_with_their_cause(path: Path) -> None:
    """The checksum is the cause; it needs all bytes of batches that so far are headers alone."""
    data = bytearray(DATA)
    data[STARTS[94] + 26] ^= 0x40  # last offset delta
    path.write_bytes(data)
    with pytest.raises(CorruptRecordError, match="CRC stored") as raised:
        pylog.scan(path.parents[1], isolation="read_uncommitted").count()
    assert raised.value.position == STARTS[94]


def test_transactions_are_known_from_markers_between_large_batches(path: Path) -> None:
    rows = pylog.read_table(path.parents[1], "transactions").to_pylist()
    states = [row["state"] for row in sorted(rows, key=lambda row: row["first_offset"])]
    assert states == ["committed" if number % 3 else "aborted" for number in range(60)]
