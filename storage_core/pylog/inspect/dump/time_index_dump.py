"""``.timeindex`` files: the entries, each held against the batch with its offset.

The tool wants three things of an entry: that a batch has its offset as the last one, that the
largest timestamp of that batch's records is the entry's, and that timestamps go up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import CorruptIndexError, CorruptRecordError, InvalidRecordError, LogStorageError
from pylog.files.file_names import LOG_FILE_SUFFIX
from pylog.files.storage import open_file
from pylog.files.time_index import TimeIndexEntries
from pylog.inspect.dump.index_file import TIME_INDEX, read_entries
from pylog.inspect.dump.index_lines import number_lines
from pylog.inspect.dump.line_writer import write_lines
from pylog.inspect.dump.log_dump import ensure_normal_end
from pylog.inspect.dump.record_arrays import no_records
from pylog.inspect.dump.single_batch import SingleBatch
from pylog.internal_topics.versions import KafkaVersion
from pylog.log_file.segment_windows import SegmentWindows
from pylog.model import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.files.byte_source import ByteSource
    from pylog.inspect.dump.dump_file import DumpFile
    from pylog.inspect.dump.dump_options import DumpOptions
    from pylog.inspect.dump.file_report import FileReport
    from pylog.inspect.dump.log_context import Decoders
    from pylog.record.window import Window

    Int64Array = npt.NDArray[np.int64]

_NOT_FOUND = -1
_MOST_RECORDS = 1 << 14
_ALL_OFFSETS = (-(2**63), 2**63 - 1)


class TimeIndexDump:
    """The lines of one time index. A part of a dump, see `pylog.inspect.dump.dump_part`."""

    size_bytes = 0

    def __init__(self, file: DumpFile, options: DumpOptions, decoders: Decoders) -> None:
        self._file = file
        self._options = options
        self._decoders = decoders
        self._mismatches: list[tuple[int, int]] = []
        self._out_of_order: list[tuple[int, int]] = []
        self._not_found: list[tuple[int, int]] = []

    def __iter__(self) -> Iterator[memoryview]:
        """Yield the lines.

        Raises
        ------
        LogStorageError
            The index or its ``.log`` cannot be read, or the sanity check fails.
        """
        file, options = self._file, self._options
        if options.only_checks_sanity:
            yield from self._check_sanity()
            return
        template = number_lines(("timestamp", "offset"), "timeIndexEntry", file.path, options)
        before = NO_TIMESTAMP
        with open_file(file.location) as source:
            for timestamps, relative in read_entries(source, TIME_INDEX):
                table = np.column_stack((timestamps, file.base_offset + relative))
                with open_file(file.sibling(LOG_FILE_SUFFIX).location) as log:
                    found = find_indexed_batches(log, table[:, 1], options, self._decoders)
                table = table[: found.known]
                self._verify(table, found, before)
                before = int(table[-1, 0]) if len(table) else before
                if not options.only_verifies_indexes:
                    is_in = options.wanted.has_timestamps(table[:, 0])
                    table = table[is_in & options.wanted.has_offsets(table[:, 1])]
                    none = np.zeros(len(table), dtype=np.int64)
                    yield from write_lines(template, table, none, no_records())
                if found.error is not None:
                    raise found.error

    def report_to(self, report: FileReport) -> None:
        """Add the entries that the log says otherwise of."""
        report.timestamp_mismatches += self._mismatches
        report.timestamps_out_of_order += self._out_of_order
        report.offsets_not_found += self._not_found

    def _check_sanity(self) -> Iterator[memoryview]:
        with TimeIndexEntries.open(self._file.location, self._file.base_offset) as index:
            defect = index.find_defect()
        if defect is not None:
            raise CorruptIndexError(defect, self._file.location)
        if not self._options.is_json:
            text = f"{self._file.path} passed sanity check.\n"
            yield memoryview(text.encode("utf-8", "surrogateescape"))

    def _verify(self, table: Int64Array, found: IndexedBatches, before: int) -> None:
        rows = zip(
            table.tolist(), found.last_offsets.tolist(), found.max_timestamps.tolist(), strict=False
        )
        for (timestamp, offset), last_offset, max_timestamp in rows:
            if last_offset != offset:
                self._not_found.append((offset, last_offset))
            else:
                if max_timestamp != timestamp:
                    self._mismatches.append((timestamp, max_timestamp))
                if before >= timestamp:
                    self._out_of_order.append((timestamp, before))
            before = timestamp


class IndexedBatches(NamedTuple):
    """What a ``.log`` has at indexed offsets.

    Attributes
    ----------
    last_offsets
        Of the first batch that ends at or after each; -1 if there is none.
    max_timestamps
        Of that batch's records, if it ends exactly there; -1 without records.
    known
        Of how many of the offsets, from the first one on, this is known.
    error
        What the tool ends with after these.
    """

    last_offsets: Int64Array
    max_timestamps: Int64Array
    known: int
    error: LogStorageError | None


def find_indexed_batches(
    log: ByteSource, offsets: Int64Array, options: DumpOptions, decoders: Decoders
) -> IndexedBatches:
    """Return what a ``.log`` has at some offsets, in one pass over its batches.

    Parameters
    ----------
    log
        The file.
    offsets
        In any order.
    options
        Of the dump. Since 4.3 the tool reads all batches before it looks at the first entry, so
        that an error anywhere comes first.
    decoders
        To read the batches that are found.
    """
    order = np.argsort(offsets, kind="stable")
    ascending = offsets[order]
    last_offsets = np.full(offsets.size, _NOT_FOUND, dtype=np.int64)
    max_timestamps = np.full(offsets.size, NO_TIMESTAMP, dtype=np.int64)
    end = log.size()
    windows = SegmentWindows(log, 0, end, max_decompressed_bytes=options.max_decompressed_bytes)
    done = 0
    error: LogStorageError | None = None
    try:
        for window in windows:
            if done == offsets.size and options.kafka_version < KafkaVersion.V4_3:
                break
            highest = np.maximum.accumulate(window.headers.last_offsets)
            stop = int(np.searchsorted(ascending, highest[-1], side="right"))
            if stop <= done:
                continue
            places = np.searchsorted(highest, ascending[done:stop])
            which = order[done:stop]
            last_offsets[which] = window.headers.last_offsets[places]
            is_there = last_offsets[which] == ascending[done:stop]
            max_timestamps[which[is_there]] = _max_timestamps(
                window, log.path, places[is_there], options, decoders
            )
            done = stop
        else:
            ensure_normal_end(log, windows.tail.position, end, windows.tail.defect)
    except (CorruptRecordError, InvalidRecordError) as raised:
        error = raised
    count = offsets.size
    if error is not None:
        is_later = options.kafka_version >= KafkaVersion.V4_3
        missing = np.flatnonzero(last_offsets == _NOT_FOUND)
        count = 0 if is_later else int(missing[0]) if missing.size else offsets.size
        if count == offsets.size:
            error = None
    return IndexedBatches(last_offsets, max_timestamps, count, error)


def _max_timestamps(
    window: Window,
    path: str,
    places: Int64Array,
    options: DumpOptions,
    decoders: Decoders,
) -> Int64Array:
    """Return the largest timestamp of the records of each batch; -1 where there are none."""
    unique, inverse = np.unique(places, return_inverse=True)
    headers = window.headers.select(unique)
    maxima = np.full(unique.size, NO_TIMESTAMP, dtype=np.int64)
    if not unique.size:
        return maxima
    decoder = decoders.take()
    chosen = replace(window, headers=headers, path=path)
    try:
        for group in decoder.decode_groups(chosen, *_ALL_OFFSETS):
            if not group.columns.rows:
                continue
            first = int(np.searchsorted(headers.positions, group.headers.positions[0]))
            stamps = group.columns.arrays["timestamp"].view("int64").to_numpy()
            starts = np.cumsum(group.columns.batch_rows) - group.columns.batch_rows
            has_rows = group.columns.batch_rows > 0
            of_group = first + np.flatnonzero(has_rows)
            largest = np.maximum.reduceat(stamps, starts[has_rows])
            maxima[of_group] = np.maximum(maxima[of_group], largest)
        decoders.give_back(decoder)
    except (CorruptRecordError, InvalidRecordError):
        for index, (position, size) in enumerate(
            zip(headers.positions.tolist(), headers.sizes_bytes.tolist(), strict=True)
        ):
            data = window.buffer.data[position : position + size]
            maxima[index] = _max_timestamp(data, options.max_decompressed_bytes)
    return maxima[inverse]


def _max_timestamp(data: memoryview, max_decompressed_bytes: int) -> int:
    batch = SingleBatch(data, max_decompressed_bytes)
    largest = NO_TIMESTAMP
    while not batch.is_finished:
        records = batch.next_part(_MOST_RECORDS)
        if records.rows:
            largest = max(largest, int(records.timestamps.max()))
    if batch.fault is not None:
        raise InvalidRecordError(batch.fault)
    return largest
