"""Segments whose offsets overflow are split when a log is loaded."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.config import LogConfig
from pylog.errors import KafkaStorageError
from tests.support.batches import COMMIT, Stored, marker, wrapper
from tests.support.crash_replay import Kind
from tests.support.recording_io import Fault, FaultyIO
from tests.unit.log.loaded_logs import INT32_MAX, file_of, load, names, owned
from tests.unit.log.owned_log import ABORT, NOW_MS, OwnedLog, one_batch

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["owned"]


OVERFLOWING = [0, 5, INT32_MAX, INT32_MAX + 1, INT32_MAX + 7, 2 * INT32_MAX + 9]
SPLIT = [0, INT32_MAX + 1, 2 * INT32_MAX + 9]


@pytest.fixture
def overflowed(tmp_path: Path) -> OwnedLog:
    """Leave a segment as brokers before 2.0 could compact it, and one after it."""
    owned = OwnedLog(tmp_path, LogConfig(segment_index_bytes=1200))
    owned.log.close()
    data = [one_batch(b"%d" % offset, base_offset=offset) for offset in OVERFLOWING]
    file_of(owned, 0, ".log").write_bytes(b"".join(data))
    file_of(owned, 3 * INT32_MAX, ".log").write_bytes(one_batch(b"z", base_offset=3 * INT32_MAX))
    file_of(owned, 3 * INT32_MAX, ".index").write_bytes(b"")
    return owned


def is_split(owned: OwnedLog) -> bool:
    assert [record.offset for record in owned.all_records()] == [*OVERFLOWING, 3 * INT32_MAX]
    assert names(owned, "*.cleaned") + names(owned, "*.swap") == []
    return owned.base_offsets == [*SPLIT, 3 * INT32_MAX]


@pytest.mark.parametrize("has_index", [True, False])
def test_a_segment_whose_offsets_overflow_is_split(
    overflowed: OwnedLog, *, has_index: bool
) -> None:
    index = file_of(overflowed, 0, ".index")
    index.unlink()
    if has_index:
        index.write_bytes(b"")
    load(overflowed, is_clean=False)
    assert is_split(overflowed)
    load(overflowed, is_clean=False)
    assert is_split(overflowed)


@pytest.mark.parametrize("kind", [Kind.CREATE, Kind.WRITE, Kind.SYNC, Kind.REPLACE, Kind.REMOVE])
def test_a_split_that_a_crash_stops_anywhere_is_begun_again_or_finished(
    overflowed: OwnedLog, tmp_path: Path, kind: Kind
) -> None:
    file_of(overflowed, 0, ".index").unlink()
    kept = tmp_path / "kept"
    shutil.copytree(overflowed.directory, kept)
    crashes = 0
    for number in range(1, 60):
        shutil.rmtree(overflowed.directory)
        shutil.copytree(kept, overflowed.directory)
        io = FaultyIO(Fault(kinds=frozenset({kind}), at=number, forever=True))
        try:
            load(overflowed, is_clean=False, io=io)
        except KafkaStorageError:
            crashes += 1
        load(overflowed, is_clean=False)
        assert is_split(overflowed), f"{kind} {number}"
        if io.counts[kind] < number:
            break
    assert crashes >= 3


def split_bases(tmp_path: Path, batches: list[bytes]) -> list[int]:
    """Return the base offsets of the segments that one with these batches is split into."""
    owned = OwnedLog(tmp_path, LogConfig(segment_index_bytes=1200))
    owned.log.close()
    file_of(owned, 0, ".log").write_bytes(b"".join(batches))
    file_of(owned, 0, ".index").unlink()
    load(owned, is_clean=False)
    found = owned.base_offsets
    assert b"".join(each.log.read_at(0, each.size_bytes) for each in owned.log.segments) == (
        b"".join(batches)
    )
    load(owned, is_clean=False)
    assert owned.base_offsets == found
    return found


def test_a_split_segment_is_named_after_the_first_offset_of_its_first_batch(tmp_path: Path) -> None:
    far = INT32_MAX + 5
    batches = [
        one_batch(b"a", b"b"),
        one_batch(b"c", b"d", b"e", base_offset=far),
        one_batch(b"f", b"g", base_offset=far + INT32_MAX - 1),
        one_batch(b"h", b"i", base_offset=4 * far),
    ]
    assert split_bases(tmp_path, batches) == [0, far, 4 * far]


@pytest.mark.parametrize(
    ("before", "expected"),
    # INT32_MAX below the wrapper's last offset, or where the batch before it ends.
    [([0], 7), ([0, 3], 7), ([0, 9], 10)],
)
def test_a_split_segment_that_begins_with_a_wrapper_holds_all_of_it(
    tmp_path: Path, before: list[int], expected: int
) -> None:
    records = [Stored(INT32_MAX + each, NOW_MS, None, b"x") for each in (5, 6, 7)]
    batches = [one_batch(b"y", base_offset=offset) for offset in before]
    batches.append(wrapper(records, magic=1, codec="gzip").data)
    assert split_bases(tmp_path, batches) == [0, expected]
    table = pylog.scan(tmp_path, columns=["offset"]).to_table()
    offsets = [*before, *(record.offset for record in records)]
    assert table.column("offset").to_pylist() == offsets


def test_a_split_keeps_the_name_of_a_segment_whose_first_batch_is_too_far(tmp_path: Path) -> None:
    far = INT32_MAX + 5
    assert split_bases(tmp_path, [one_batch(b"a", b"b", base_offset=far)]) == [0, far]


@pytest.mark.parametrize("is_clean", [True, False])
def test_the_transactions_of_a_split_segment_are_indexed_again(
    tmp_path: Path, *, is_clean: bool
) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_index_bytes=1200))
    owned.log.close()
    far = INT32_MAX + 5
    batches = [
        transactional(0, 1, b"aborted in the first segment"),
        transactional(1, 2, b"aborted in the second one"),
        marker(2, ABORT, producer_id=1, timestamp=NOW_MS).data,
        transactional(far, 3, b"aborted", b"there, too"),
        marker(far + 2, ABORT, producer_id=3, timestamp=NOW_MS).data,
        marker(far + 3, ABORT, producer_id=2, timestamp=NOW_MS).data,
        transactional(far + 4, 3, b"committed", sequence=2),
        marker(far + 5, COMMIT, producer_id=3, timestamp=NOW_MS).data,
    ]
    file_of(owned, 0, ".log").write_bytes(b"".join(batches))
    for path in owned.directory.glob("*index"):
        path.unlink()
    for _ in range(2):  # once it is split, and once more
        load(owned, is_clean=is_clean, recovery_point=far + 6)
        assert owned.base_offsets == [0, far]
        assert owned.log.log_end_offset == far + 6
        aborted = [(1, 0, 2, 1), (3, far, far + 2, 1), (2, 1, far + 3, far + 4)]
        assert owned.aborted() == aborted
        owned.log.close()
        rows = pylog.scan(tmp_path, isolation="read_committed", columns=["value"]).to_table()
        assert rows.column("value").to_pylist() == [b"committed"]


def transactional(offset: int, producer_id: int, *values: bytes, sequence: int = 0) -> bytes:
    return one_batch(
        *values,
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )
