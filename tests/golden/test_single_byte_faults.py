"""Every byte of segments that brokers wrote flipped, every cut, every 64-byte block zeroed.

The plain-Python reference over the sound segment gives what is expected, batch by batch. A
fault may cost the records of the batches it touches, never another record, and never makes a row
that was not written. Outside the checksum lie a batch's offset and its leader epoch: a wrong offset
is caught by the neighbours, or by what the next segment is called; where nothing shows it, as in
the gaps that compaction leaves, the rows come with it. Those cases are counted and printed.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pytest

import pylog
from pylog.errors import LogStorageError
from pylog.record.record_batch import RecordBatch
from tests.support.corruption import entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pylog.reading.damage import ReadModeName
    from tests.conftest import Counted
    from tests.support.golden import GoldenRoot

# Partition, base offset of the segment, batches taken from its head.
SEGMENTS = [
    ("0.8.2.2/compacted-drop-tombstones:before/accounts-tiny-0", 115, 12),
    ("0.8.2.2/compacted-drop-tombstones:after/accounts-tiny-0", 70, 4),
    ("0.8.2.2/codec-gzip:u-gzip-0", 0, 2),
    ("2.8.2/message-format-version:fmt0-snappy-0", 0, 2),
    ("2.8.2/message-format-version:fmt0-lz4-0", 0, 2),
    ("2.8.2/mixed-magic-compressed:upgraded-zip-0", 0, 3),
    ("0.10.0.1/codec-recompress:re-gzip-uncompressed-0", 0, 6),
    ("0.10.0.1/log-append-time:lat-old-0", 0, 6),
    ("0.10.0.1/compacted-keep-tombstones:after/accounts-0", 153, 8),
    ("0.10.0.1/compacted-compressed:after/accounts-gz-0", 239, 3),
    ("0.10.0.1/codec-lz4:u-lz4-0", 0, 2),
    ("2.8.2/message-format-version:fmt1-snappy-0", 0, 2),
    ("0.11.0.3/compacted-keep-tombstones:after/profiles-0", 68, 2),
    ("0.11.0.3/compacted-txn:after/profiles-txn-0", 138, 6),
    ("0.11.0.3/compacted-txn:after/profiles-txn-0", 0, 3),
    ("2.8.2/compacted-txn:after/profiles-txn-0", 165, 3),
    ("4.3.0/compacted-empty-batches:after/empty-batches-0", 24, 4),
    ("4.3.0/idempotent:idem-0", 99, 3),
    ("4.3.0/foreign-librdkafka:rdk-txn-0", 0, 3),
    ("4.3.0/txn:payments-0", 143, 3),
    ("4.3.0/log-append-time:events-lat-0", 66, 3),
    ("4.3.0/internal-logdir:__cluster_metadata-0", 0, 3),
    ("2.8.2/mixed-magic-compacted:after/upgraded-kv-zip-0", 360, 5),
    ("4.3.0/compacted-compressed:after/profiles-lz4-0", 0, 2),
    ("4.3.0/crash-mid-clean:after/mid-clean-0", 176, 3),
    ("3.9.1/replicas-diverged:broker-3/ledger-unclean-0", 44, 3),
]
BLOCK = 64
COLUMNS = ("offset", "timestamp", "key", "value")


class Row(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class Batch:
    """A batch of the sound segment and its records, control records left out."""

    start: int
    end: int
    magic: int
    rows: tuple[Row, ...]

    def outside_checksum(self, position: int) -> str | None:
        """Name the header field at a byte of the file that no checksum covers."""
        inside = position - self.start
        if inside < 8:
            return "offset"
        return "leader epoch" if self.magic == 2 and 12 <= inside < 16 else None


class FaultyCopy:
    """A partition of one segment, of which bytes are made wrong and right again."""

    def __init__(self, directory: Path, base_offset: int, data: bytes) -> None:
        self.data = data
        self.batches = list(_batches(data))
        self.directory = directory / "faults-0"
        self.directory.mkdir()
        self._path = self.directory / f"{base_offset:020d}.log"

    def write(self, data: bytes) -> None:
        self._path.write_bytes(data)

    def table(self, mode: ReadModeName) -> pa.Table:
        scan = pylog.scan(self.directory, columns=COLUMNS, timestamp_unit="ms", mode=mode)
        return scan.to_table()

    def scan(self, mode: str) -> list[Row]:
        return rows_in(self.table(mode))  # type: ignore[arg-type]

    def failfast(self) -> list[Row] | None:
        """Return the rows, None for the error that a user may expect."""
        try:
            return self.scan("FAILFAST")
        except LogStorageError:
            return None


def _batches(data: bytes) -> Iterator[Batch]:
    at = 0
    for entry in entries(data):
        batch = RecordBatch(memoryview(entry))
        rows = (
            ()
            if batch.header.is_control_batch
            else tuple(
                Row(each.offset, each.timestamp, _bytes(each.key), _bytes(each.value))
                for each in batch.records()
            )
        )
        yield Batch(at, at + len(entry), entry[16], rows)
        at += len(entry)


def _bytes(data: memoryview | bytes | None) -> bytes | None:
    return None if data is None else bytes(data)


def rows_in(table: pa.Table) -> list[Row]:
    columns = [table.column("offset"), table.column("timestamp").cast("int64")]
    columns += [table.column("key"), table.column("value")]
    return list(map(Row, *(column.to_pylist() for column in columns)))


def rows_of(batches: Iterable[Batch]) -> list[Row]:
    return [row for batch in batches for row in batch.rows]


@pytest.fixture(params=SEGMENTS, ids=lambda each: f"{each[0]}/{each[1]}")
def copy(request: pytest.FixtureRequest, golden_root: GoldenRoot, tmp_path: Path) -> FaultyCopy:
    partition_id, base_offset, count = request.param
    path = golden_root.partition(partition_id).directory / f"{base_offset:020d}.log"
    data = b"".join(entries(path.read_bytes())[:count])
    return FaultyCopy(tmp_path, base_offset, data)


def test_the_sound_segment_is_read_whole(copy: FaultyCopy) -> None:
    copy.write(copy.data)
    assert copy.failfast() == copy.scan("DROPMALFORMED") == rows_of(copy.batches)


class Judge:
    """Says what became of the flips in one batch.

    Tables are compared, not rows: there are a hundred thousand flips.
    """

    def __init__(self, copy: FaultyCopy, batch: Batch, schema: pa.Schema) -> None:
        self._copy = copy
        self._batch = batch
        others = rows_of(each for each in copy.batches if each is not batch)
        self._everything, self._others = (
            pa.Table.from_pylist([row._asdict() for row in rows], schema)
            for rows in (rows_of(copy.batches), others)
        )

    def outcome(self, position: int) -> str:
        """Return what became of one flip; WRONG where that must not be."""
        found, strict = self._copy.table("DROPMALFORMED"), self._failfast()
        field = self._batch.outside_checksum(position)
        is_whole = found.equals(self._everything)
        are_same = strict is not None and strict.equals(found)
        if field == "leader epoch":
            return field if is_whole and are_same else f"WRONG {field} {position}"
        if strict is None and found.equals(self._others):
            return "caught"
        if not self._batch.rows and is_whole:
            return "caught, no record was in it" if strict is None else "no record was in it"
        if field != "offset":
            return f"WRONG at {position}"
        others = COLUMNS[1:]
        if are_same and found.select(others).equals(self._everything.select(others)):
            return "offset wrong, nothing shows it"
        if strict is None and set(rows_in(found)) <= set(rows_in(self._everything)):
            return "offset wrong, and a neighbour left out with it"
        return f"WRONG offset at {position}"

    def _failfast(self) -> pa.Table | None:
        try:
            return self._copy.table("FAILFAST")
        except LogStorageError:
            return None


@pytest.mark.slow
@pytest.mark.thorough(one_in=13)
def test_every_byte_flipped(copy: FaultyCopy, counted: Counted) -> None:
    copy.write(copy.data)
    outcomes: Counter[str] = Counter()
    schema = copy.table("FAILFAST").schema
    descriptor = os.open(copy._path, os.O_RDWR)
    try:
        for batch in copy.batches:
            judge = Judge(copy, batch, schema)
            for position in range(batch.start, batch.end):
                for pattern in (0x01, 0xFF):
                    flipped = bytes([copy.data[position] ^ pattern])
                    os.pwrite(descriptor, flipped, position)
                    outcomes[judge.outcome(position)] += 1
                os.pwrite(descriptor, copy.data[position : position + 1], position)
    finally:
        os.close(descriptor)
    counted("flips", outcomes)
    assert not [each for each in outcomes if each.startswith("WRONG")], outcomes


@pytest.mark.slow
@pytest.mark.thorough(one_in=13)
def test_every_cut(copy: FaultyCopy, counted: Counted) -> None:
    copy.write(copy.data)
    for length in range(len(copy.data) - 1, -1, -1):
        os.truncate(copy._path, length)
        whole = rows_of(batch for batch in copy.batches if batch.end <= length)
        assert copy.failfast() == whole, length
        assert copy.scan("DROPMALFORMED") == whole, length
    counted("cuts", {"as they are to be": len(copy.data)})


def test_every_block_zeroed(copy: FaultyCopy, counted: Counted) -> None:
    outcomes: Counter[str] = Counter()
    for start in range(0, len(copy.data), BLOCK):
        end = min(start + BLOCK, len(copy.data))
        zeroed = copy.data[:start] + bytes(end - start) + copy.data[end:]
        copy.write(zeroed)
        sound = [
            each
            for each in copy.batches
            if zeroed[each.start : each.end] == copy.data[each.start : each.end]
        ]
        found, strict = copy.scan("DROPMALFORMED"), copy.failfast()
        if found != rows_of(sound):
            # Of the last batch touched, only the offset may have become zero: its checksum fits.
            assert [row[1:] for row in found if row not in rows_of(sound)] == [
                row[1:] for row in _only_offset_changed(copy, zeroed)
            ], start
            outcomes["offset wrong, nothing shows it"] += 1
            continue
        outcomes["caught" if strict is None else "a normal end"] += 1
        if strict is not None:
            assert not any(zeroed[sound[-1].end if sound else 0 :]), start
            assert strict == rows_of(sound), start
    counted("zeroed blocks", outcomes)


def _only_offset_changed(copy: FaultyCopy, data: bytes) -> list[Row]:
    return rows_of(
        each
        for each in copy.batches
        if data[each.start : each.end] != copy.data[each.start : each.end]
        and data[each.start + 8 : each.end] == copy.data[each.start + 8 : each.end]
    )
