"""Checks that the kernels and the plain-Python reference make the same of a segment."""

from __future__ import annotations

import contextlib
import struct
import zlib
from typing import TYPE_CHECKING

from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.decode import RecordDecoder
from pylog.errors import LogStorageError, TimestampOverflowError
from pylog.record.batch_scan import BatchScan, Window, find_bad_checksum, find_batches
from pylog.record.compression import Decompressor
from pylog.record.record_batch import RecordBatch
from tests.fuzz.repair import MIN_ENTRY_BYTES
from tests.support.batches import INT64_MAX, Stored, crc32c
from tests.support.decoding import PARTITION, SEGMENT
from tests.support.reading import as_buffer, rows, stored

if TYPE_CHECKING:
    import pyarrow as pa

MAX_DECOMPRESSED_BYTES = 1 << 16
ALL_COLUMNS = record_schema(include_headers=True, timestamp_unit="ms")
MICROSECONDS = record_schema(include_headers=True, timestamp_unit="us")
OFFSETS = record_schema(["offset"])
INT64_MIN = -(2**63)

Entries = list[tuple[int, bytes]]
"""Position and bytes of each."""
Batches = list[list[Stored] | None]
"""Records of each; None for one that is refused."""


def check_segment(data: bytes) -> None:
    """Check batch boundaries and checksums, and records where the checksums are right."""
    scan = find_batches(as_buffer(data))
    if _check_scan(scan, data):
        _check_records(scan)


def _check_scan(scan: BatchScan, data: bytes) -> bool:
    """Check a scan against its linear definition; return whether all checksums are right."""
    entries, end, is_sound = _walk(data)
    assert scan.headers.positions.tolist() == [at for at, _ in entries]
    assert scan.valid_bytes == end
    assert (scan.defect is None) == is_sound
    bad = next((n for n, (_, entry) in enumerate(entries) if not _has_right_crc(entry)), None)
    found = find_bad_checksum(scan)
    assert (None if found is None else found.index) == bad
    return bad is None


def _walk(data: bytes) -> tuple[Entries, int, bool]:
    """Return the whole entries, where they end, and whether what follows may be an entry's head."""
    entries: Entries = []
    at = 0
    while len(data) - at >= 17:
        size, magic = 12 + struct.unpack_from(">i", data, at + 8)[0], data[at + 16]
        if magic not in MIN_ENTRY_BYTES or size < MIN_ENTRY_BYTES[magic]:
            return entries, at, False
        if size > len(data) - at:
            break
        entries.append((at, data[at : at + size]))
        at += size
    return entries, at, True


def _has_right_crc(entry: bytes) -> bool:
    at, computed = (17, crc32c(entry[21:])) if entry[16] == 2 else (12, zlib.crc32(entry[16:]))
    return int(struct.unpack_from(">I", entry, at)[0]) == computed


def _check_records(scan: BatchScan) -> None:
    """Check the records of batches, with all columns and with fewer."""
    batches = _by_reference(scan)
    # Offsets outside int64 cannot be in a segment: the reader holds each batch's offsets against
    # the file's name. The end of a range is exclusive, so the largest one cannot be asked for.
    every = [record for batch in batches for record in batch or ()]
    if any(not INT64_MIN <= record.offset < INT64_MAX for record in every):
        return
    if None in batches:
        _check_refusal(scan, batches, ALL_COLUMNS)
        _check_refusal(scan, batches, OFFSETS)
        return
    assert rows(_decoded(scan, ALL_COLUMNS)) == every
    offsets = [record.offset for record in every]
    assert _offsets(_decoded(scan, OFFSETS)) == offsets
    _check_microseconds(scan, every)
    if every:
        start, end = offsets[len(every) // 3], offsets[2 * len(every) // 3]
        inside = [offset for offset in offsets if start <= offset < end]
        assert _offsets(_decoded(scan, OFFSETS, start, end)) == inside


def _check_refusal(scan: BatchScan, batches: Batches, schema: pa.Schema) -> None:
    """Check that a batch which the reference refuses is named, and what was read before it."""
    decoder = _decoder(schema)
    found = []
    try:
        for batch in decoder.decode(_window(scan), INT64_MIN, INT64_MAX):
            found.append(batch)  # noqa: PERF402 - what came before the error counts
    except LogStorageError as error:
        position = getattr(error, "position", None)
    else:
        message = "only the reference refuses"
        raise AssertionError(message)
    named = dict(zip(scan.headers.positions.tolist(), batches, strict=True))
    assert position in named
    assert named[position] is None, "only the kernels refuse"
    finished = batches[: decoder.finished_batches]
    assert None not in finished
    assert _offsets(found) == [record.offset for batch in finished for record in batch or ()]


def _check_microseconds(scan: BatchScan, expected: list[Stored]) -> None:
    fit = all(abs(record.timestamp) <= INT64_MAX // 1000 for record in expected)
    try:
        found = _decoded(scan, MICROSECONDS)
    except TimestampOverflowError:
        assert not fit
    else:
        assert fit
        assert rows(found) == expected


def _by_reference(scan: BatchScan) -> Batches:
    """Return the records of each batch as the reference reads them, None where it refuses."""
    decompressor = Decompressor(MAX_DECOMPRESSED_BYTES)
    batches: Batches = []
    last_before = -1
    for position in scan.headers.positions.tolist():
        batch = RecordBatch(scan.buffer.data[position:], decompressor)
        is_legacy = batch.header.magic < 2
        records: list[Stored] | None = None
        with contextlib.suppress(LogStorageError):
            records = stored(batch.records())
        # What the reference, which knows one batch only, cannot see: messages that overlap.
        if records and is_legacy and records[0].offset <= last_before:
            records = None
        # As 64 bits hold it: a hostile delta goes below the least offset.
        last_before = (batch.header.last_offset - INT64_MIN) % 2**64 + INT64_MIN
        batches.append(records)
    return batches


def _decoded(
    scan: BatchScan,
    schema: pa.Schema,
    start_offset: int = INT64_MIN,
    end_offset: int = INT64_MAX,
) -> list[pa.RecordBatch]:
    return list(_decoder(schema).decode(_window(scan), start_offset, end_offset))


def _decoder(schema: pa.Schema) -> RecordDecoder:
    return RecordDecoder(PARTITION, schema, max_decompressed_bytes=MAX_DECOMPRESSED_BYTES)


def _window(scan: BatchScan) -> Window:
    return Window.of(scan, SEGMENT, 0)


def _offsets(batches: list[pa.RecordBatch]) -> list[int]:
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]
