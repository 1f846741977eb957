"""READ_COMMITTED, case by case; the consumer's rule is held in tests/property."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import CorruptIndexError, CorruptRecordError
from pylog.files.producer_snapshot import ProducerSnapshotEntry, producer_snapshot_bytes
from pylog.reading.transactions import find_aborted_transactions, find_last_stable_offset
from tests.support.batches import (
    ABORT,
    COMMIT,
    Built,
    batch_v2,
    batch_v2_of,
    empty_batch_v2,
    marker,
    plain_records,
    record_v2,
    with_bad_crc,
)
from tests.support.log_files import (
    TRANSACTION_ENTRY,
    Transactions,
    segment_path,
    write_partition,
)
from tests.support.reading import scanned

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.log_view import LogView


def data(offset: int, producer_id: int = 1, *, plain: bool = False) -> Built:
    return batch_v2(plain_records(offset, 1), producer_id=producer_id, is_transactional=not plain)


def abort(offset: int, producer_id: int = 1) -> Built:
    return marker(offset, ABORT, producer_id=producer_id)


def commit(offset: int, producer_id: int = 1) -> Built:
    return marker(offset, COMMIT, producer_id=producer_id)


def committed(directory: Path, **options: object) -> list[int]:
    found = scanned(directory, isolation="read_committed", **options)
    return [record.offset for record in found]


def view(directory: Path) -> LogView:
    (found,) = pylog.open_directory(directory)
    return found


# Each with the offsets that are delivered, and the last stable offset.
CASES: dict[str, tuple[list[Built], list[int], int]] = {
    "committed": ([data(0), commit(1)], [0], 2),
    "aborted": ([data(0), abort(1)], [], 2),
    "open": ([data(0), data(1)], [], 0),
    "aborted, then committed": ([data(0), abort(1), data(2), commit(3)], [2], 4),
    "committed, then aborted": ([data(0), commit(1), data(2), abort(3)], [0], 4),
    "aborted, then open": ([data(0), abort(1), data(2)], [], 2),
    "aborted twice": ([data(0), abort(1), data(2), abort(3), data(4), commit(5)], [4], 6),
    "not transactional, of an aborted producer": ([data(0), data(1, plain=True), abort(2)], [1], 3),
    "interleaved": (
        [data(0, 1), data(1, 2), data(2, 1), abort(3, 1), data(4, 2), commit(5, 2)],
        [1, 4],
        6,
    ),
    "open from before a committed one": ([data(0, 1), data(1, 2), commit(2, 2)], [], 0),
    "plain records after an open transaction": ([data(0), data(1, -1, plain=True)], [], 0),
    "a marker of nothing": ([abort(0), data(1), commit(2), commit(3)], [1], 4),
    "an empty batch": (
        [
            data(0),
            empty_batch_v2(1, 3, producer_id=1, is_transactional=True),
            abort(4),
            data(5, -1, plain=True),
        ],
        [5],
        6,
    ),
}


@pytest.mark.parametrize("per_segment", [1, 2, 100])
@pytest.mark.parametrize("index", ["none", "true", "empty", "partly"])
@pytest.mark.parametrize("case", CASES)
def test_committed_records_and_last_stable_offset(
    tmp_path: Path, case: str, index: str, per_segment: int
) -> None:
    batches, offsets, stable = CASES[case]
    cuts = [batches[at : at + per_segment] for at in range(0, len(batches), per_segment)]
    segments = {cut[0].base_offset: cut for cut in cuts}
    directory = write_partition(tmp_path, segments)
    transactions = Transactions(batches)
    for place, (base, cut) in enumerate(segments.items()):
        content = transactions.index_bytes(base, cut[-1].last_offset + 1)
        is_lost = index == "empty" or (index == "partly" and place % 2 == 0)
        if index != "none":
            # A sound index of a segment without aborts would not be there; it must not matter.
            path = segment_path(directory, base, ".txnindex")
            path.write_bytes(b"" if is_lost else content)
    assert committed(directory) == offsets
    assert find_last_stable_offset(view(directory)) == stable
    for start in range(stable + 1):
        expected = [offset for offset in offsets if offset >= start]
        assert committed(directory, start=start) == expected


def test_an_index_whose_last_stable_offset_covers_the_range_is_enough(tmp_path: Path) -> None:
    segments = {0: [data(0), abort(1)], 2: [data(2, -1, plain=True)]}
    directory = write_partition(tmp_path, segments)
    segment_path(directory, 0, ".txnindex").write_bytes(TRANSACTION_ENTRY.pack(0, 1, 0, 1, 2))
    assert find_aborted_transactions(view(directory), 0, 2) == ((1, 0, 1),)
    assert find_aborted_transactions(view(directory), 2, 3) == ()
    assert committed(directory) == [2]


@pytest.mark.parametrize(
    "content",
    [
        struct.pack(">hqqqq", 1, 1, 0, 1, 2),
        TRANSACTION_ENTRY.pack(0, 1, 0, 1, 2) * 2,
        TRANSACTION_ENTRY.pack(0, 1, 0, -1, 2),
        TRANSACTION_ENTRY.pack(0, 1, 0, 1, 2)[:33],
    ],
)
def test_a_transaction_index_that_is_unsound_is_not_believed(
    tmp_path: Path, content: bytes
) -> None:
    directory = write_partition(tmp_path, {0: [data(0), abort(1), data(2), commit(3)]})
    segment_path(directory, 0, ".txnindex").write_bytes(content)
    assert committed(directory) == [2]


def test_control_batches_of_unusual_form_are_read_by_the_reference(tmp_path: Path) -> None:
    # Compressed, and with bytes that nobody counts: no broker writes these.
    key, value = struct.pack(">hh", 0, ABORT), struct.pack(">hi", 0, 0)
    odd = batch_v2_of(
        record_v2(0, 0, key + b"surplus", value),
        base_offset=1,
        attributes=0x30,
        producer_id=1,
        producer_epoch=0,
    )
    uncounted = batch_v2_of(
        record_v2(0, 0, struct.pack(">hh", 0, COMMIT), value),
        base_offset=1,
        attributes=0x30,
        record_count=0,
        producer_id=1,
        producer_epoch=0,
    )
    following = data(2, -1, plain=True)
    for name, control, stable in (("a-0", odd, 3), ("b-0", uncounted, 0)):
        built = Built(control, (), 2, 1, 1)
        directory = write_partition(tmp_path, {0: [data(0), built, following]}, name=name)
        assert find_last_stable_offset(view(directory)) == stable
    assert committed(tmp_path / "a-0") == [2]


def test_damage_that_has_to_be_looked_at_is_reported(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {0: [data(0)], 1: [abort(1)], 2: [data(2)]})
    path = segment_path(directory, 1)
    path.write_bytes(b"\xff" * 100)
    with pytest.raises(CorruptRecordError, match=f"^{path} at byte 0: "):
        find_last_stable_offset(view(directory))


def test_a_transaction_index_that_was_cut_shows_when_the_marker_comes_by(tmp_path: Path) -> None:
    batches = [data(0), abort(1), data(2), abort(3), data(4), commit(5)]
    directory = write_partition(tmp_path, {0: batches})
    whole = TRANSACTION_ENTRY.pack(0, 1, 0, 1, 2) + TRANSACTION_ENTRY.pack(0, 1, 2, 3, 4)
    path = segment_path(directory, 0, ".txnindex")
    path.write_bytes(whole)
    assert committed(directory) == [4]
    path.write_bytes(whole[: TRANSACTION_ENTRY.size])
    with pytest.raises(CorruptIndexError, match=r"lacks the transaction of producer 1 .* offset 3"):
        committed(directory)


@pytest.mark.parametrize("window_bytes", [17, 1 << 10])
@pytest.mark.parametrize("others", [0, 1, 40])
def test_a_missing_abort_shows_also_where_its_marker_is_in_a_later_window(
    tmp_path: Path, window_bytes: int, others: int
) -> None:
    # Records of others stand between the transaction's and its marker, so that windows do, too.
    between = [data(3 + number, -1, plain=True) for number in range(others)]
    batches = [data(0), abort(1), data(2), *between, abort(3 + others)]
    directory = write_partition(tmp_path, {0: batches})
    whole = TRANSACTION_ENTRY.pack(0, 1, 0, 1, 2) + TRANSACTION_ENTRY.pack(
        0, 1, 2, 3 + others, 4 + others
    )
    path = segment_path(directory, 0, ".txnindex")
    path.write_bytes(whole)
    expected = list(range(3, 3 + others))
    assert committed(directory, window_bytes=window_bytes) == expected
    path.write_bytes(whole[: TRANSACTION_ENTRY.size])
    lacks = rf"lacks the transaction of producer 1 .* offset {3 + others},"
    with pytest.raises(CorruptIndexError, match=lacks):
        committed(directory, window_bytes=window_bytes)


def test_a_missing_abort_shows_where_a_window_begins_with_a_batch_of_several_records(
    tmp_path: Path,
) -> None:
    first = batch_v2(plain_records(0, 5), producer_id=7, is_transactional=True)
    batches = [first, data(5, -1, plain=True), abort(6, 7), data(7, 2), abort(8, 2)]
    directory = write_partition(tmp_path, {0: batches})
    path = segment_path(directory, 0, ".txnindex")
    # What is there covers the range, and says nothing of producer 7.
    path.write_bytes(TRANSACTION_ENTRY.pack(0, 2, 7, 8, 9))
    with pytest.raises(CorruptIndexError, match=r"of producer 7 .* offset 6,"):
        committed(directory, window_bytes=17)


@pytest.mark.parametrize("window_bytes", [17, 1 << 20])
def test_a_gap_between_two_windows_is_a_gap(tmp_path: Path, window_bytes: int) -> None:
    # Compaction took the COMMIT at 1 and the records of the aborted transaction after it.
    batches = [data(0), data(2, -1, plain=True), abort(3), data(4), commit(5)]
    directory = write_partition(tmp_path, {0: batches})
    segment_path(directory, 0, ".txnindex").write_bytes(TRANSACTION_ENTRY.pack(0, 9, 0, 1, 2))
    assert committed(directory, window_bytes=window_bytes) == [0, 2, 4]


def test_what_a_removed_marker_committed_is_not_taken_for_aborted(tmp_path: Path) -> None:
    # Compaction took the COMMIT at 1 and the records of the aborted transaction after it.
    batches = [data(0), abort(3), data(4), commit(5)]
    directory = write_partition(tmp_path, {0: batches})
    segment_path(directory, 0, ".txnindex").write_bytes(TRANSACTION_ENTRY.pack(0, 9, 0, 1, 2))
    assert committed(directory) == [0, 4]


SKIPPING = ["DROPMALFORMED", "PERMISSIVE"]


def skipping(directory: Path, mode: str, **options: object) -> list[int | None]:
    scan = pylog.scan(directory, isolation="read_committed", mode=mode, **options)  # type: ignore[arg-type]
    found: list[int | None] = scan.to_table()["offset"].to_pylist()
    assert scan.count() == len(found)
    return found


@pytest.mark.parametrize("window_bytes", [17, 1 << 20])
@pytest.mark.parametrize("mode", SKIPPING)
@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([(1, 0, 1, 2), (1, 2, 3, 4), (1, 4, 5, 6)], id="lists a committed one"),
        pytest.param([(1, 0, 1, 6)], id="lacks an aborted one"),
        pytest.param([(2, 0, 1, 6)], id="lists another producer's only"),
        pytest.param([(1, 0, 5, 6)], id="lists all as one"),
    ],
)
def test_no_transaction_index_can_matter_where_damage_is_skipped(
    tmp_path: Path, entries: list[tuple[int, int, int, int]], mode: str, window_bytes: int
) -> None:
    batches = [data(0), abort(1), data(2), abort(3), data(4), commit(5), data(6, -1, plain=True)]
    directory = write_partition(tmp_path, {0: batches})
    path = segment_path(directory, 0, ".txnindex")
    path.write_bytes(b"".join(TRANSACTION_ENTRY.pack(0, *entry) for entry in entries))
    with pytest.raises(CorruptIndexError, match="use_indexes=False"):
        committed(directory)
    assert skipping(directory, mode, window_bytes=window_bytes) == [4, 6]
    assert skipping(directory, mode, window_bytes=window_bytes, start=2, end=5) == [4]
    assert skipping(directory, mode, window_bytes=window_bytes, start=2, end=3) == []


@pytest.mark.parametrize("mode", SKIPPING)
def test_beside_damage_too_the_markers_alone_decide_where_it_is_skipped(
    tmp_path: Path, mode: str
) -> None:
    damaged = with_bad_crc(data(2, -1, plain=True))
    batches = [data(0), commit(1), damaged, data(3), commit(4), data(5), abort(6)]
    directory = write_partition(tmp_path, {0: batches})
    path = segment_path(directory, 0, ".txnindex")
    path.write_bytes(TRANSACTION_ENTRY.pack(0, 1, 3, 4, 5) + TRANSACTION_ENTRY.pack(0, 1, 5, 6, 7))
    gap = [None] if mode == "PERMISSIVE" else []
    assert skipping(directory, mode) == [0, *gap, 3]


# ---- markers that are in no file


def _snapshot(directory: Path, offset: int, open_since: int | None) -> None:
    entry = ProducerSnapshotEntry(1, 0, 0, 0, 0, 0, 0, -1 if open_since is None else open_since)
    path = segment_path(directory, offset, ".snapshot")
    path.write_bytes(producer_snapshot_bytes([entry]))


def _without_the_marker(tmp_path: Path, *, later: Built, snapshots: bool, index: bool) -> Path:
    """Write a log whose segment 2 is gone, with the marker of the transaction at offset 0."""
    segments = {0: [data(0)], 9: [data(9), later], 11: [data(11, -1, plain=True)]}
    directory = write_partition(tmp_path, segments)
    if snapshots:
        _snapshot(directory, 9, None)
        _snapshot(directory, 11, None)
    if index:
        segment_path(directory, 9, ".txnindex").write_bytes(TRANSACTION_ENTRY.pack(0, 1, 9, 10, 11))
    return directory


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED"])
@pytest.mark.parametrize("use_indexes", [True, False])
def test_what_a_marker_in_a_missing_segment_ended_is_given_as_to_a_consumer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: str, *, use_indexes: bool
) -> None:
    directory = _without_the_marker(tmp_path, later=abort(10), snapshots=True, index=True)
    options = {"mode": mode, "use_indexes": use_indexes}
    assert committed(directory, **options) == [0, 11]
    assert committed(directory, max_records_per_partition=1, **options) == [0, 11]
    assert "the transaction of producer 1 from offset 0 on is in no file" in caplog.text


def test_the_transaction_index_alone_says_where_an_aborted_transaction_begins(
    tmp_path: Path,
) -> None:
    directory = _without_the_marker(tmp_path, later=abort(10), snapshots=False, index=True)
    assert committed(directory) == [0, 11]


def test_without_snapshot_and_index_a_gap_may_be_inside_the_transaction(tmp_path: Path) -> None:
    directory = _without_the_marker(tmp_path, later=abort(10), snapshots=False, index=False)
    assert committed(directory) == [11]


def test_a_transaction_without_any_marker_ended_if_a_snapshot_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    segments = {0: [data(0)], 9: [data(9, -1, plain=True)], 10: [data(10, -1, plain=True)]}
    directory = write_partition(tmp_path, segments)
    _snapshot(directory, 10, None)
    assert committed(directory) == [0, 9, 10]
    assert "the transaction of producer 1 from offset 0 on is in no file" in caplog.text
    _snapshot(directory, 10, 0)
    assert committed(directory) == []
