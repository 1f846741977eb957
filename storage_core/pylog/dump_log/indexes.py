"""``.index``, ``.timeindex`` and ``.txnindex`` files, held against the log; ``.snapshot`` files.

Entries are those that the tool sees: raw, slot 0 included, up to the zero tail of a preallocated
file. Of an offset index, the batch that an entry points to has to end with its offset. Of a time
index, a batch has to end with it, its records' largest timestamp has to be that of the entry, and
timestamps have to go up.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pylog.dump_log.lines import RecordsOneByOne, entry_lines, in_utf8, json_line
from pylog.dump_log.log import ALL_OFFSETS, ensure_normal_end
from pylog.errors import (
    CorruptIndexError,
    CorruptRecordError,
    InvalidRecordError,
    LogStorageError,
    SegmentVanishedError,
)
from pylog.files.offset_index import OffsetIndexEntries
from pylog.files.producer_snapshot import NO_OFFSET, ProducerSnapshotEntry, read_producer_snapshot
from pylog.files.storage import open_file
from pylog.files.time_index import TimeIndexEntries
from pylog.files.transaction_index import ENTRY, ensure_readable_size
from pylog.internal_topics.versions import KafkaVersion
from pylog.log_file.segment_windows import SegmentWindows
from pylog.model import NO_TIMESTAMP
from pylog.record.batch_header import (
    ENTRY_START_OF_KAFKA,
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_VALUE_V2,
    RECORD_OVERHEAD_V0,
    V2_SPAN,
)
from pylog.record_lines.line_template import write_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.dump_log.log import Decoders
    from pylog.dump_log.options import DumpFile, DumpOptions
    from pylog.dump_log.report import FileReport
    from pylog.files.byte_source import ByteSource
    from pylog.record.batch_scan import Window

    Int64Array = npt.NDArray[np.int64]


_OFFSET_ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
_ENTRIES_AT_ONCE = 1 << 20
_ABORTED_TRANSACTION = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")
_ABORTED_TRANSACTION_VERSION = 0
_NOT_FOUND = -1


def offset_index_lines(
    file: DumpFile, options: DumpOptions, report: FileReport
) -> Iterator[memoryview]:
    """Yield the lines of an offset index."""
    with ExitStack() as stack:
        source = stack.enter_context(open_file(file.location))
        if source.size() < _OFFSET_ENTRY.itemsize:
            if not options.is_json:
                yield in_utf8(f"{file.path} is empty.\n")
            return
        if options.only_checks_sanity:
            yield from _sanity(file, OffsetIndexEntries, options)
            return
        template = entry_lines(("offset", "position"), "indexEntry", file.path, options)
        log = missing = None
        try:
            log = stack.enter_context(open_file(file.log))
        except LogStorageError as error:
            error.add_note("without it the entries could not be verified")
            missing = error
        for table in _entries(source, _OFFSET_ENTRY, file):
            wanted = table[options.wanted.has_offsets(table[:, 0])]
            if log is not None:
                _verify_offsets(wanted, log, file, options, report)
            if not options.only_verifies_indexes:
                yield from write_lines(template, wanted)
        if log is not None:
            _ensure_same_files(file, report, source, log)
    if missing is not None:
        raise missing


def time_index_lines(
    file: DumpFile, options: DumpOptions, report: FileReport, decoders: Decoders
) -> Iterator[memoryview]:
    """Yield the lines of a time index."""
    if options.only_checks_sanity:
        yield from _sanity(file, TimeIndexEntries, options)
        return
    template = entry_lines(("timestamp", "offset"), "timeIndexEntry", file.path, options)
    before = NO_TIMESTAMP
    with open_file(file.location) as source:
        for entries in _entries(source, _TIME_ENTRY, file):
            with open_file(file.log) as log:
                found, error = _find_indexed_batches(log, entries[:, 1], options, decoders)
                table = entries[: len(found)]
                before = _verify_timestamps(table, found, before, report)
                _ensure_same_files(file, report, source, log)
            if not options.only_verifies_indexes:
                is_in = options.wanted.has_timestamps(table[:, 0])
                yield from write_lines(
                    template, table[is_in & options.wanted.has_offsets(table[:, 1])]
                )
            if error is not None:
                raise error


def transaction_index_lines(file: DumpFile, options: DumpOptions) -> Iterator[memoryview]:
    """Yield the lines of a transaction index, of a segment's aborted transactions."""
    template = entry_lines(_ABORTED_TRANSACTION, "abortedTransaction", file.path, options)
    with open_file(file.location) as source:
        ensure_readable_size(source)
        data = source.read_at(0, source.size())
    whole = data[: len(data) // ENTRY.size * ENTRY.size]
    table = np.array(list(ENTRY.iter_unpack(whole)), dtype=np.int64)
    table = table.reshape(-1, len(_ABORTED_TRANSACTION))
    later = np.flatnonzero(table[:, 0] > _ABORTED_TRANSACTION_VERSION)
    known = table[: later[0]] if later.size else table
    yield from write_lines(template, known[options.wanted.has_offsets(known[:, 2], known[:, 3])])
    if later.size:
        reason = (
            f"Unexpected aborted transaction version {table[later[0], 0]}, "
            f"current version is {_ABORTED_TRANSACTION_VERSION}"
        )
        raise CorruptIndexError(reason, file.location, int(later[0]) * ENTRY.size)


def _sanity(
    file: DumpFile,
    kind: type[OffsetIndexEntries | TimeIndexEntries],
    options: DumpOptions,
) -> Iterator[memoryview]:
    with kind.open(file.location, file.base_offset) as index:
        defect = index.find_defect()
    if defect is not None:
        raise CorruptIndexError(defect, file.location)
    if not options.is_json:
        yield in_utf8(f"{file.path} passed sanity check.\n")


def _entries(source: ByteSource, kind: np.dtype[np.void], file: DumpFile) -> Iterator[Int64Array]:
    """Yield tables of the entries, until one after the first has a relative offset of 0."""
    names = kind.names or ()
    position = 0
    while data := source.read_at(position, _ENTRIES_AT_ONCE * kind.itemsize):
        entries = np.frombuffer(data[: len(data) // kind.itemsize * kind.itemsize], dtype=kind)
        is_zero = entries["offset"] == 0
        is_zero[:1] &= position > 0
        end = int(is_zero.argmax()) if is_zero.any() else entries.size
        if end:
            table = np.column_stack([entries[name][:end].astype(np.int64) for name in names])
            table[:, names.index("offset")] += file.base_offset
            yield table
        if end < _ENTRIES_AT_ONCE:
            return
        position += len(data)


def _ensure_same_files(
    file: DumpFile, report: FileReport, index: ByteSource, log: ByteSource
) -> None:
    """Take back what does not agree if a broker has put other files in their place meanwhile."""
    if not report.compares_badly:
        return
    for opened, path in ((log, file.log), (index, file.location)):
        if _is_replaced(opened, path):
            report.take_back_comparison()
            reason = "file was replaced or deleted (by a broker, say) while it was compared"
            raise SegmentVanishedError(reason, path)


def _is_replaced(opened: ByteSource, path: str) -> bool:
    try:
        with open_file(path) as now:
            return now.file_id() != opened.file_id()
    except SegmentVanishedError:
        return True


def _verify_offsets(
    table: Int64Array, log: ByteSource, file: DumpFile, options: DumpOptions, report: FileReport
) -> None:
    for offset, position in table.tolist():
        found = _last_offset_at(log, position, options.max_message_bytes)
        if found is None and not report.errors:
            report.errors.append(
                f"{file.path}: entry for offset {offset} leads to byte {position} "
                "of the .log, where no whole batch begins"
            )
        elif found not in (None, offset):
            report.index_mismatches.append((offset, found))


def _last_offset_at(log: ByteSource, position: int, most_bytes: int) -> int | None:
    """Return the last offset of the batch at a byte of a ``.log``; None where none begins."""
    left = min(log.size() - position, most_bytes)
    if position < 0 or left <= HEADER_SIZE_UP_TO_MAGIC:
        return None
    head = log.read_at(position, V2_SPAN.size)
    if len(head) < HEADER_SIZE_UP_TO_MAGIC:
        return None
    offset, size, magic = ENTRY_START_OF_KAFKA.unpack_from(head)
    if size < RECORD_OVERHEAD_V0 or LOG_OVERHEAD + size > left:
        return None
    if magic < MAGIC_VALUE_V2:
        return int(offset)
    if len(head) < V2_SPAN.size:
        return None
    base_offset, _, last_offset_delta = V2_SPAN.unpack(head)
    return int(base_offset) + int(last_offset_delta)


def _verify_timestamps(
    table: Int64Array, found: Int64Array, before: int, report: FileReport
) -> int:
    """Report what is wrong; return the last timestamp."""
    rows = zip(table.tolist(), found.tolist(), strict=True)
    for (timestamp, offset), (last_offset, max_timestamp) in rows:
        if last_offset != offset:
            report.offsets_not_found.append((offset, last_offset))
        else:
            if max_timestamp != timestamp:
                report.timestamp_mismatches.append((timestamp, max_timestamp))
            if before >= timestamp:
                report.timestamps_out_of_order.append((timestamp, before))
        before = timestamp
    return before


def _find_indexed_batches(
    log: ByteSource, offsets: Int64Array, options: DumpOptions, decoders: Decoders
) -> tuple[Int64Array, LogStorageError | None]:
    """Return what a ``.log`` has at some offsets, in any order, in one pass over its batches.

    That is the last offset of the first batch that ends at or after each, -1 if there is none, and
    the largest timestamp of its records if it ends exactly there. Where the tool ends before it has
    looked at all of them, the rest is left out, and the error there. Since 4.3 it reads all batches
    before it looks at the first entry, so that an error anywhere comes first.
    """
    reads_all = options.kafka_version >= KafkaVersion.V4_3
    order = np.argsort(offsets, kind="stable")
    ascending = offsets[order]
    found = np.full((offsets.size, 2), (_NOT_FOUND, NO_TIMESTAMP), dtype=np.int64)
    limit = options.max_decompressed_bytes
    end = log.size()
    windows = SegmentWindows(log, 0, end, max_decompressed_bytes=limit)
    done = 0
    try:
        for window in windows:
            if done == offsets.size and not reads_all:
                break
            lasts = window.headers.last_offsets
            highest = np.maximum.accumulate(lasts)
            stop = int(np.searchsorted(ascending, highest[-1], side="right"))
            if stop <= done:
                continue
            places = np.searchsorted(highest, ascending[done:stop])
            which = order[done:stop]
            found[which, 0] = lasts[places]
            is_there = lasts[places] == ascending[done:stop]
            found[which[is_there], 1] = _max_timestamps(
                window, log.path, places[is_there], limit, decoders
            )
            done = stop
        else:
            ensure_normal_end(log, windows.tail.position, end, windows.tail.defect)
    except (CorruptRecordError, InvalidRecordError) as raised:
        missing = np.flatnonzero(found[:, 0] == _NOT_FOUND)
        if reads_all or missing.size:
            return found[: 0 if reads_all else missing[0]], raised
    return found, None


def _max_timestamps(
    window: Window, path: str, places: Int64Array, limit: int, decoders: Decoders
) -> Int64Array:
    """Return the largest timestamp of the records of each batch; -1 where there are none."""
    unique, inverse = np.unique(places, return_inverse=True)
    headers = window.headers.select(unique)
    maxima = np.full(unique.size, NO_TIMESTAMP, dtype=np.int64)
    if not unique.size:
        return maxima
    decoder = decoders.take(limit)
    chosen = replace(window, headers=headers, path=path)
    try:
        for group in decoder.decode_groups(chosen, *ALL_OFFSETS):
            if group.columns.rows:
                first = int(np.searchsorted(headers.positions, group.headers.positions[0]))
                stamps = group.columns.arrays["timestamp"].view("int64").to_numpy()
                rows = group.columns.batch_rows
                has_rows = rows > 0
                places = first + np.flatnonzero(has_rows)
                largest = np.maximum.reduceat(stamps, (np.cumsum(rows) - rows)[has_rows])
                maxima[places] = np.maximum(maxima[places], largest)
        decoders.append(decoder)
    except (CorruptRecordError, InvalidRecordError):
        for index, position in enumerate(headers.positions.tolist()):
            end = position + int(headers.sizes_bytes[index])
            batch = RecordsOneByOne(window.buffer.data[position:end], limit)
            largest_ones = [each.timestamps.max(initial=NO_TIMESTAMP) for each in batch]
            if batch.fault is not None:
                raise InvalidRecordError(batch.fault) from None
            maxima[index] = max(largest_ones)
    return maxima[inverse]


_MOST_SEQUENCE = 0x7FFFFFFF


def snapshot_lines(file: DumpFile, options: DumpOptions) -> Iterator[memoryview]:
    """Yield a line for each producer; its last batch is there if it has one."""
    text = ""
    for entry in read_producer_snapshot(file.location):
        start = None if entry.current_txn_first_offset < 0 else entry.current_txn_first_offset
        producer, batch = _fields(entry, start)
        if options.is_json:
            text += json_line({"type": "producer", "path": file.path, **producer, **batch})
            continue
        producer["currentTxnFirstOffset"] = (
            "OptionalLong.empty" if start is None else f"OptionalLong[{start}]"
        )
        text += " ".join(f"{name}: {value}" for name, value in (producer | batch).items())
        has_blank = not batch and options.kafka_version < KafkaVersion.V4_3
        text += " \n" if has_blank else "\n"
    yield in_utf8(text)


def _fields(
    entry: ProducerSnapshotEntry, start: int | None
) -> tuple[dict[str, object], dict[str, object]]:
    producer: dict[str, object] = {
        "producerId": entry.producer_id,
        "producerEpoch": entry.producer_epoch,
        "coordinatorEpoch": entry.coordinator_epoch,
        "currentTxnFirstOffset": start,
        "lastTimestamp": entry.timestamp,
    }
    if entry.last_offset <= NO_OFFSET:
        return producer, {}
    return producer, {
        # Sequences wrap from 0 back to 2^31-1.
        "firstSequence": (entry.last_sequence - entry.offset_delta) & _MOST_SEQUENCE,
        "lastSequence": entry.last_sequence,
        "lastOffset": entry.last_offset,
        "offsetDelta": entry.offset_delta,
        "timestamp": entry.timestamp,
    }
