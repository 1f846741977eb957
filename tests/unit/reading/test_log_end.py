"""Index entries that lead into a value, and what of an index is held against the log."""

from __future__ import annotations

import os
import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import CorruptIndexError
from pylog.reading import log_end
from pylog.reading.offset_resolution import find_max_timestamp, find_offset_for_timestamp
from tests.support.batches import (
    ABORT,
    COMMIT,
    Built,
    Stored,
    batch_v2,
    crc32c,
    joined,
    marker,
    plain_records,
)
from tests.support.damage import flip
from tests.support.images import chain, holding
from tests.support.log_files import (
    TRANSACTION_ENTRY,
    Transactions,
    offset_index_bytes,
    segment_path,
    time_index_bytes,
    write_partition,
)
from tests.support.reading import scanned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pylog.reading.damage import ReadModeName

BEFORE = [batch_v2([Stored(offset, 1_000, b"k", b"v%d" % offset)]) for offset in range(5)]
MODES = ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]


def write(
    directory: Path, image_offset: int, images: int, *, to_the_end: bool, after: int = 0
) -> tuple[Path, list[Stored]]:
    """Write batches 0 to 4, one at 5 that holds images, and an index entry for the first image."""
    held = chain(image_offset, images)
    outer = holding([Stored(5, 1_000, b"k", None)], held, to_the_end=to_the_end)
    batches = [*BEFORE, outer, *(batch_v2(plain_records(6 + each, 1)) for each in range(after))]
    path = write_partition(directory, {0: batches}, with_index=False, with_time_index=False)
    at = joined(batches).index(held[0].data[:-1])
    index = offset_index_bytes([(image_offset, at)], 0)
    segment_path(path, 0, ".index").write_bytes(index)
    return path, [record for built in batches for record in built.records]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("to_the_end", [True, False])
@pytest.mark.parametrize(("images", "after"), [(1, 0), (2, 0), (2, 2), (5, 1)])
@pytest.mark.parametrize("image_offset", [0, 3, 5, 9])
@pytest.mark.thorough(one_in=5)
def test_an_entry_that_leads_to_an_image_changes_no_row_range_cut_or_end(
    tmp_path: Path,
    image_offset: int,
    images: int,
    after: int,
    mode: ReadModeName,
    *,
    to_the_end: bool,
) -> None:
    path, records = write(tmp_path, image_offset, images, to_the_end=to_the_end, after=after)
    end = 6 + after
    assert scanned(path, mode=mode) == records
    for start in range(end + 1):
        assert scanned(path, mode=mode, start=start) == records[start:]
        assert scanned(path, mode=mode, end=start) == records[:start]
    for size in (1, 60, 200):
        assert scanned(path, mode=mode, max_partition_bytes=size) == records
    (view,) = pylog.scan(path, mode=mode).partitions
    assert view.log_end_offset == end


def test_a_read_without_indexes_opens_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [
        data(0),
        marker(1, ABORT),
        *(batch_v2(plain_records(at, 2)) for at in range(2, 40, 2)),
    ]
    segments = {0: batches[:8], 14: batches[8:]}
    path = write_partition(tmp_path, segments)
    entry = TRANSACTION_ENTRY.pack(0, 1, 0, 1, 2)
    segment_path(path, 0, ".txnindex").write_bytes(entry)
    opened: list[str] = []
    real = os.open

    def open_and_record(name: Any, *args: Any, **more: Any) -> int:  # noqa: ANN401 - of os.open
        opened.append(str(name))
        return real(name, *args, **more)

    monkeypatch.setattr(os, "open", open_and_record)
    options: dict[str, Any] = {"isolation": "read_committed", "max_partition_bytes": 200}
    for start, end in ((3, 30), (pylog.Timestamp(1_000), pylog.Timestamp(1_001))):
        with_indexes = scanned(path, start=start, end=end, **options)
        assert any(name.endswith("index") for name in opened)
        opened.clear()
        assert scanned(path, start=start, end=end, use_indexes=False, **options) == with_indexes
        assert opened
        assert not any(name.endswith("index") for name in opened)


def test_a_chain_of_images_longer_than_a_walk_fools_no_read_without_indexes(
    tmp_path: Path,
) -> None:
    images = chain(7, 200)
    outer = holding(plain_records(3, 3), images, to_the_end=True)
    batches = [batch_v2(plain_records(0, 3)), outer, batch_v2(plain_records(300, 1))]
    path = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    at = joined(batches).index(images[0].data)
    size = len(images[0].data)
    lies = [(7 + place, at + place * size) for place in range(200)]
    segment_path(path, 0, ".index").write_bytes(offset_index_bytes(lies, 0))
    assert scanned(path, start=190, use_indexes=False) == list(batches[-1].records)
    assert scanned(path, use_indexes=False) == [r for built in batches for r in built.records]


def batch_at(offset: int, timestamp: int) -> Built:
    return batch_v2([Stored(offset, timestamp, None, b"v")])


def test_a_rolled_segment_is_passed_over_for_no_timestamp_that_its_last_batch_lacks(
    tmp_path: Path,
) -> None:
    segments = {
        base: [batch_at(base + place, 1_000 + base + place) for place in range(5)]
        for base in range(0, 25, 5)
    }
    path = write_partition(tmp_path, segments)
    for lying in ([0], [1], [1, 2], [0, 1, 2, 3]):
        for base in range(0, 20, 5):
            stamps = [(1_000 + base, base), (1_004 + base, base + 4)]
            if base // 5 in lying:
                stamps = [(900, base), (901, base + 4)]
            segment_path(path, base, ".timeindex").write_bytes(time_index_bytes(stamps, base))
        (view,) = pylog.open_directory(path)
        for stamp in range(1_000, 1_025):
            assert find_offset_for_timestamp(view, stamp) == (stamp, stamp - 1_000)
        assert find_max_timestamp(view) == (1_024, 24)


@pytest.mark.parametrize(
    "entries", [[(1_003, 1), (1_009, 4)], [(1_009, 4), (1_003, 5)], [(1_002, 9), (1_003, 5)]]
)
def test_time_index_entries_that_do_not_go_up_are_not_used(
    tmp_path: Path, entries: list[tuple[int, int]]
) -> None:
    stamps = [1_000, 1_003, 1_001, 1_002, 1_009, 1_003, 1_004]
    path = write_partition(tmp_path, {0: [batch_at(*each) for each in enumerate(stamps)]})
    segment_path(path, 0, ".timeindex").write_bytes(time_index_bytes(entries, 0))
    (view,) = pylog.open_directory(path)
    for stamp in range(1_000, 1_010):
        offset = next(place for place, each in enumerate(stamps) if each >= stamp)
        assert find_offset_for_timestamp(view, stamp) == (stamps[offset], offset)


def data(offset: int, producer_id: int = 1) -> Built:
    records = [Stored(offset, 1_000, b"k", b"v%d" % offset)]
    return batch_v2(records, producer_id=producer_id, producer_epoch=0, is_transactional=True)


# Committed 0-1, aborted 3, committed 5-6, aborted 8-9; producer 2 commits 7.
TRANSACTIONS = [
    data(0),
    data(1),
    marker(2, COMMIT),
    data(3),
    marker(4, ABORT),
    data(5),
    data(6),
    data(7, 2),
    data(8, 1),
    marker(9, COMMIT),
    marker(10, COMMIT, producer_id=2),
    data(11),
    data(12),
    marker(13, ABORT),
    data(14),
    marker(15, COMMIT),
]
ENTRIES = Transactions(TRANSACTIONS).aborted
COMMITTED = [0, 1, 5, 6, 7, 8, 14]

LIES: dict[str, list[tuple[int, int, int, int]]] = {
    "one is missing": ENTRIES[:1],
    "the other is missing": ENTRIES[1:],
    "one more": [*ENTRIES, (1, 14, 15, 16)],
    "another producer": [(2, *ENTRIES[0][1:]), (2, *ENTRIES[1][1:])],
    "begins too early": [(1, 0, *ENTRIES[0][2:]), ENTRIES[1]],
    "begins too late": [ENTRIES[0], (1, 12, *ENTRIES[1][2:])],
    "ends too late": [(1, 3, 9, 5), ENTRIES[1]],
    "ends too early": [(1, 3, 3, 5), (1, 11, 11, 14)],
    "a last stable offset that is too high": [(*ENTRIES[0][:3], 99), ENTRIES[1]],
}


def test_the_oracle_of_transactions_is_what_was_meant() -> None:
    assert ENTRIES == [(1, 3, 4, 5), (1, 11, 13, 14)]
    transactions = Transactions(TRANSACTIONS)
    visible = [
        built.base_offset
        for built in TRANSACTIONS
        if not built.is_control and not transactions.drops(built)
    ]
    assert visible == COMMITTED


def committed(path: Path, **options: Any) -> list[int] | None:  # noqa: ANN401 - of pylog.scan
    """Return the offsets given; None for an error that names the way out of it."""
    try:
        found = scanned(path, isolation="read_committed", **options)
    except CorruptIndexError as error:
        return None if "use_indexes=False" in str(error) else []
    return [record.offset for record in found]


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
@pytest.mark.parametrize("options", [{}, {"max_partition_bytes": 1}, {"window_bytes": 17}])
@pytest.mark.thorough(one_in=4)
def test_a_transaction_index_that_lies_gives_the_right_rows_or_an_error(
    tmp_path: Path, lie: Sequence[tuple[int, int, int, int]], options: dict[str, Any]
) -> None:
    path = write_partition(tmp_path, {0: TRANSACTIONS})
    content = b"".join(TRANSACTION_ENTRY.pack(0, *entry) for entry in lie)
    segment_path(path, 0, ".txnindex").write_bytes(content)
    assert committed(path, **options) is None
    for start in (0, 1, 4, 6, 12):
        for end in (2, 4, 7, 9, 12, 14, 16):
            if start >= end:
                continue
            expected = [offset for offset in COMMITTED if start <= offset < end]
            found = committed(path, start=start, end=end, **options)
            assert found in (None, expected), (start, end)
            without = committed(path, start=start, end=end, use_indexes=False, **options)
            assert without == expected
            scan = pylog.scan(path, start=start, end=end, isolation="read_committed", **options)
            try:
                assert scan.count() == len(expected)
            except CorruptIndexError:
                assert found is None


def test_damage_after_a_range_does_not_matter_to_its_transactions(tmp_path: Path) -> None:
    path = write_partition(tmp_path, {0: TRANSACTIONS[:9], 9: TRANSACTIONS[9:]})
    content = b"".join(TRANSACTION_ENTRY.pack(0, *entry) for entry in ENTRIES)
    for base in (0, 9):
        entry = content[: TRANSACTION_ENTRY.size] if base == 0 else content[34:]
        segment_path(path, base, ".txnindex").write_bytes(entry)
    # A snapshot without open transactions, so that planning need not look for the markers.
    content = bytes(4)
    snapshot = struct.pack(">hI", 1, crc32c(content)) + content
    segment_path(path, 16, ".snapshot").write_bytes(snapshot)
    log = segment_path(path, 9)
    flip(log, 70)
    assert committed(path, start=5, end=7) == [5, 6]


def test_a_batch_that_is_just_being_written_is_looked_at_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = [batch_v2(plain_records(offset, 5)) for offset in range(0, 30, 5)]
    whole = joined(batches)
    path = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    log = segment_path(path, 0)
    for skips_damage in (False, True):
        # A preallocated file: the header is there already, the rest of the last batch is not.
        log.write_bytes(whole[:-40] + bytes(40))
        waits: list[float] = []

        def finish(seconds: float, waits: list[float] = waits) -> None:
            waits.append(seconds)
            log.write_bytes(whole)

        monkeypatch.setattr(log_end, "time", SimpleNamespace(sleep=finish))
        (view,) = pylog.open_directory(path)
        found = log_end.find_log_end(view.segments[0], skips_damage=skips_damage)
        assert (found.end_position, found.defect) == (len(whole), None)
        assert found.last is not None
        assert found.last.header.last_offset == 29
        log_end.ensure_last_batch_is_sound(view.segments[0], found.last)
        assert len(waits) == 1


@pytest.mark.parametrize("mode", MODES[1:])
def test_the_end_of_a_log_is_reported_after_overlapping_batches_too(
    tmp_path: Path, mode: ReadModeName
) -> None:
    batches = [batch_v2(plain_records(at, count)) for at, count in ((0, 5), (3, 4), (7, 2))]
    path = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    (view,) = pylog.scan(path, mode=mode).partitions
    assert view.log_end_offset == 9
