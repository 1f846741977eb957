"""``.log`` files, and ``.checkpoint`` files of the metadata log: batches, and what follows them.

Kernels decode and write whole groups of batches. Where they refuse one, since its records break the
format or are stranger than a reader may serve, the rest of the window goes record by record through
the readable reference, which is as forgiving as the tool: it prints what comes before the fault.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections import deque
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.columnar.arrow_buffers import allocate
from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.decode import RecordDecoder
from pylog.dump_log.lines import (
    COUNT,
    IS_CONTROL,
    IS_VALID,
    MAGIC,
    POSITION,
    SIZE,
    RecordsOneByOne,
    batch_and_record_lines,
    batch_table,
    control_text,
    decoded_records,
    decoded_text,
    in_utf8,
)
from pylog.dump_log.report import FileReport, OffsetGaps
from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    LogDirectoryError,
    TimestampOverflowError,
)
from pylog.files.storage import open_file
from pylog.internal_topics.versions import KafkaVersion
from pylog.log_file.segment_windows import SegmentWindows
from pylog.model import CompressionType, TopicPartition
from pylog.record.batch_header import (
    ENTRY_START_OF_KAFKA,
    HEADER_SIZE_UP_TO_MAGIC,
    LEGACY_CRC_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_VALUE_V1,
    MAGIC_VALUE_V2,
    MIN_ENTRY_SIZE_V1,
    RECORD_BATCH_OVERHEAD,
    RECORD_OVERHEAD_V0,
    SIZE_OFFSET,
)
from pylog.record.batch_scan import Window, find_batches
from pylog.record.header_sums import valid_checksums
from pylog.record_lines.line_template import LineTemplate, Records, write_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import numpy.typing as npt

    from pylog.dump_log.options import DumpFile, DumpOptions, RecordRange
    from pylog.files.byte_source import ByteSource
    from pylog.record.batch_scan import BatchHeaders

    Int64Array = npt.NDArray[np.int64]


ALL_OFFSETS = (-(2**63), 2**63 - 1)
_COLUMNS = ("offset", "timestamp", "key", "value", "headers")
_NOWHERE = TopicPartition("", 0)  # no column names it
_EARLIEST = -(2**63)
_NO_POSITION = -1


class Decoders(deque[RecordDecoder]):
    """Decoders that are idle: threads take them in turn and append them again; they keep memory."""

    def take(self, max_decompressed_bytes: int) -> RecordDecoder:
        """Return a decoder that nobody else has."""
        try:
            decoder = self.pop()
        except IndexError:
            schema = record_schema(columns=_COLUMNS, timestamp_unit="ms")
            return RecordDecoder(_NOWHERE, schema, max_decompressed_bytes=max_decompressed_bytes)
        decoder.restart(-1)
        return decoder


class LogLines(NamedTuple):
    """What the windows of one ``.log`` have in common; ``path`` is its name as it is printed."""

    path: str
    options: DumpOptions
    decoders: Decoders
    template: LineTemplate


class BatchLines:
    """Iterates the lines of a window's batches; once, in any thread."""

    def __init__(
        self,
        log: LogLines,
        window: Window,
        fault: str | None = None,
        changes: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self._log = log
        self._window = window
        self._fault = fault
        self._changes = changes
        self._gaps = OffsetGaps()
        self._invalid_batches = 0
        self._last_position = _NO_POSITION  # of the batch whose own line was written last

    def report_to(self, report: FileReport, gaps: OffsetGaps) -> None:
        """Add what was found to the report of the file, and to the gaps up to this window."""
        gaps.join(self._gaps)
        report.offset_gaps = gaps.pairs
        report.more_offset_gaps = gaps.more
        report.invalid_batches += self._invalid_batches

    def __iter__(self) -> Iterator[memoryview]:
        """Yield text; raise after the lines before what cannot be read."""
        scan, start = self._window, self._window.file_position
        options = self._log.options
        chosen = _wanted_batches(scan.headers, options.wanted)
        unknown = np.flatnonzero(scan.headers.codec_ids > max(CompressionType))
        if unknown.size:  # the tool ends there
            chosen = chosen[chosen < unknown[0]]
        headers = scan.headers.select(chosen)
        table = batch_table(headers)
        table[:, POSITION] += start
        table[:, IS_VALID] = valid_checksums(scan)[chosen]
        for column, value in self._changes.items():
            table[:, column] = value
        self._invalid_batches = len(table) - int(table[:, IS_VALID].sum())
        if not options.is_deep or self._fault is not None:
            yield from write_lines(self._log.template, table)
            if options.is_deep and self._fault is not None and len(headers):
                raise self._error(self._fault, start)
        elif len(headers):
            for rows, batch_rows, records in self._parts(headers, table):
                yield from self._part_lines(rows, batch_rows, records)
        if unknown.size:
            index = int(unknown[0])
            reason = f"Unknown compression type id: {scan.headers.codec_ids[index]}"
            raise self._error(reason, start + int(scan.headers.positions[index]))

    def _parts(
        self, headers: BatchHeaders, table: Int64Array
    ) -> Iterator[tuple[Int64Array, Int64Array, Records]]:
        """Yield rows of the table, how many records each has, and these records."""
        log = self._log
        window = replace(self._window, headers=headers, path=log.path)
        decoder = log.decoders.take(log.options.max_decompressed_bytes)
        done = 0  # batches of which all records have been given
        is_continued = False
        try:
            for group in decoder.decode_groups(window, *ALL_OFFSETS):
                first = int(np.searchsorted(headers.positions, group.headers.positions[0]))
                is_continued = first < done  # one more piece of a large batch
                rows = table[first : first + len(group.headers)]
                records = decoded_records(group, rows[:, IS_VALID] != 0)
                yield rows, group.columns.batch_rows, records
                done = first + len(rows)
        except (CorruptRecordError, InvalidRecordError, TimestampOverflowError):
            if is_continued:
                raise
            for index in range(done, len(headers)):
                position = int(headers.positions[index])
                data = window.buffer.data[position : position + int(headers.sizes_bytes[index])]
                batch = RecordsOneByOne(data, log.options.max_decompressed_bytes)
                for records in batch:
                    rows = np.array([records.rows], dtype=np.int64)
                    yield table[index : index + 1], rows, records
                if batch.fault is not None:
                    raise self._error(batch.fault, int(table[index, POSITION])) from None
        log.decoders.append(decoder)

    def _part_lines(
        self, table: Int64Array, batch_rows: Int64Array, records: Records
    ) -> Iterator[memoryview]:
        wanted = self._log.options.wanted
        if wanted.is_restricted:
            table, batch_rows, records = _wanted_records(table, batch_rows, records, wanted)
        texts, fault = self._texts(table, batch_rows, records)
        if fault is not None:  # what comes before it is printed
            row, reason = fault
            last = int(np.searchsorted(np.cumsum(batch_rows), row, side="right"))
            before = int(batch_rows[:last].sum())
            table, batch_rows = table[: last + 1], np.append(batch_rows[:last], row - before)
            records = records.filter(np.arange(records.rows) < row)
        if not wanted.is_restricted:  # else there are gaps by intention
            self._gaps.note(records.offsets)
        if len(table):
            is_continued = int(table[0, POSITION]) == self._last_position
            self._last_position = int(table[-1, POSITION])
            yield from write_lines(
                self._log.template,
                table,
                batch_rows,
                records,
                details=texts,
                is_continued=is_continued,
            )
            if fault is not None:
                raise self._error(reason, self._last_position)

    def _texts(
        self, table: Int64Array, batch_rows: Int64Array, records: Records
    ) -> tuple[dict[int, str], tuple[int, str] | None]:
        """Return the texts that are made for single records, by their place."""
        options = self._log.options
        decodes_all = options.prints_data and options.decoder is not None
        texts: dict[int, str] = {}
        if not decodes_all and not table[:, IS_CONTROL].any():
            return texts, None
        is_control = np.repeat(table[:, IS_CONTROL] != 0, batch_rows)
        for row in range(records.rows) if decodes_all else np.flatnonzero(is_control).tolist():
            key, value = records.keys[row].as_py(), records.values[row].as_py()
            try:
                if is_control[row]:
                    texts[row] = control_text(key, value, options)
                else:
                    texts[row] = decoded_text(key, value, int(records.offsets[row]), options)
            except InvalidRecordError as error:
                return texts, (row, error.reason)
        return texts, None

    def _error(self, reason: str, position: int) -> InvalidRecordError:
        return InvalidRecordError(reason, self._log.path, position)


def _wanted_batches(headers: BatchHeaders, wanted: RecordRange) -> Int64Array:
    """Return the places of the batches that may hold wanted records, by what headers say."""
    if not wanted.is_restricted:
        return np.arange(len(headers))
    is_wrapper = ~headers.is_v2 & (headers.codec_ids != 0)
    after_previous = np.append(np.int64(0), headers.last_offsets[:-1] + 1)
    firsts = np.where(is_wrapper, np.minimum(headers.offsets, after_previous), headers.offsets)
    has_one_time = headers.is_append_time | (headers.record_counts == 1)
    earliest = np.where(has_one_time, headers.max_timestamps, _EARLIEST)
    is_in = wanted.has_offsets(firsts, headers.last_offsets)
    places: Int64Array = np.flatnonzero(
        is_in & wanted.has_timestamps(earliest, headers.max_timestamps)
    )
    return places


def _wanted_records(
    table: Int64Array, batch_rows: Int64Array, records: Records, wanted: RecordRange
) -> tuple[Int64Array, Int64Array, Records]:
    """Return the same without unwanted records, and without batches that had only those."""
    is_in = wanted.has_offsets(records.offsets) & wanted.has_timestamps(records.timestamps)
    ends = np.append(np.int64(0), np.cumsum(is_in))[np.append(np.int64(0), np.cumsum(batch_rows))]
    kept_rows = np.diff(ends)
    stays = (kept_rows > 0) | ((batch_rows == 0) & (table[:, COUNT] == 0))
    return table[stays], kept_rows[stays], records.filter(is_in)


_WINDOW_BYTES = 1 << 22
"""As much as a reader takes at once; what Python does for a window is lost in what kernels do."""

_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint", re.ASCII)
_MOST_BYTES = 1 << 26
"""A larger odd batch is left to the error about its header."""


class DumpPart(NamedTuple):
    """Lines of a file; raising `LogStorageError`, they end the dump of the file."""

    report: FileReport
    lines: Iterable[memoryview]
    size_bytes: int = 0
    finish: Callable[[], None] = lambda: None


def text_part(report: FileReport, text: str) -> DumpPart:
    """Return a part that is known already."""
    return DumpPart(report, [in_utf8(text)])


def log_parts(
    file: DumpFile, report: FileReport, options: DumpOptions, decoders: Decoders
) -> Iterator[DumpPart]:
    """Yield the parts of a ``.log`` file, or of a snapshot of the metadata log, in order."""
    heading = _heading(file)
    if not options.is_json:
        yield text_part(report, heading)
    log = LogLines(file.path, options, decoders, batch_and_record_lines(options, file.path))
    gaps = OffsetGaps(last=-1 if options.kafka_version >= KafkaVersion.V4_3 else None)
    with open_file(file.location) as source:
        size = source.size()
        end = size if options.max_bytes is None else min(size, options.max_bytes)
        position = 0
        while True:
            windows = SegmentWindows(
                source,
                position,
                end,
                window_bytes=_WINDOW_BYTES,
                max_decompressed_bytes=options.max_decompressed_bytes,
                make_memory=_make_memory,
            )
            for window in windows:
                lines = BatchLines(log, window)
                finish = partial(lines.report_to, report, gaps)
                yield DumpPart(report, lines, window.size_bytes, finish)
            position, defect = windows.tail
            odd = _find_odd_batch(source, position, end) if defect else None
            if odd is None:
                break
            lines = BatchLines(log, odd.window, odd.fault, odd.changes)
            yield DumpPart(report, lines, odd.size_bytes, partial(lines.report_to, report, gaps))
            position += odd.size_bytes
        ensure_normal_end(source, position, end, defect)
        if position < end and options.max_bytes is None and not options.is_json:
            yield text_part(
                report, f"Found {end - position} invalid bytes at the end of {file.name}\n"
            )


def _heading(file: DumpFile) -> str:
    """Return the line that the dump of a ``.log`` or a snapshot of the metadata log begins with."""
    if file.suffix == ".log":
        return f"Log starting offset: {file.base_offset}\n"
    if file.name == "bootstrap.checkpoint":
        return "KRaft bootstrap snapshot\n"
    match = _SNAPSHOT.fullmatch(file.name)
    if match is None:
        reason = "not the name of a snapshot, <20 digits>-<10 digits>.checkpoint"
        raise LogDirectoryError(reason, file.location)
    return f"Snapshot end offset: {int(match[1])}, epoch: {int(match[2])}\n"


def _make_memory(size_bytes: int) -> memoryview:
    buffer, _ = allocate(size_bytes)
    return memoryview(buffer)[:size_bytes]


class _OddBatch(NamedTuple):
    window: Window  # the batch, with a magic and a size that can be read
    size_bytes: int
    fault: str | None  # why its records cannot be read
    changes: dict[int, int]  # what its line says that the window does not, by column


def _find_odd_batch(source: ByteSource, position: int, end: int) -> _OddBatch | None:
    """Return the batch at ``position`` if it is whole, and one that only the tool reads.

    The tool looks at a batch's fields before anything checks them. It takes a magic above that of
    v2 for v2, whose checksum leaves it out. Where a batch is shorter than its header, it reads the
    last fields from the bytes that follow, ends at its records, and goes on after it where none are
    asked for. Source: FileLogInputStream.nextBatch, DefaultRecordBatch.isValid, LegacyRecord.
    """
    head = source.read_at(position, HEADER_SIZE_UP_TO_MAGIC)
    if len(head) < HEADER_SIZE_UP_TO_MAGIC:
        return None
    _, size, magic = ENTRY_START_OF_KAFKA.unpack(head)
    size_bytes = LOG_OVERHEAD + size
    if size < RECORD_OVERHEAD_V0 or size_bytes > min(end - position, _MOST_BYTES):
        return None
    is_v1 = magic == MAGIC_VALUE_V1
    least = MIN_ENTRY_SIZE_V1 if is_v1 else RECORD_BATCH_OVERHEAD
    is_short = size_bytes < least
    if magic < MAGIC_VALUE_V1 or (magic <= MAGIC_VALUE_V2 and not is_short):
        return None
    # Of a header of v1, the tool reads less than the smallest message has.
    wanted = size_bytes if is_v1 else max(size_bytes, least)
    data = bytearray(source.read_at(position, wanted))
    if len(data) < wanted:
        return None
    changes = {MAGIC: magic, SIZE: size_bytes}
    fault = None
    if is_short:
        (stored,) = struct.unpack_from(">I", data, LEGACY_CRC_OFFSET)
        changes[IS_VALID] = is_v1 and stored == zlib.crc32(data[MAGIC_OFFSET:])
        fault = f"batch has {size_bytes} bytes, expected at least {least}"
        data = data[:least] + bytes(least - len(data))
        struct.pack_into(">i", data, SIZE_OFFSET, least - LOG_OVERHEAD)
    data[MAGIC_OFFSET] = min(magic, MAGIC_VALUE_V2)
    scan = find_batches(np.frombuffer(memoryview(data).toreadonly(), dtype=np.uint8))
    return _OddBatch(Window.of(scan, source.path, position), size_bytes, fault, changes)


def ensure_normal_end(source: ByteSource, position: int, end: int, defect: str | None) -> None:
    """Return unless what follows the last whole batch cannot be the beginning of another one.

    As FileLogInputStream tells it: up to 17 bytes, and a batch that is longer than what is left,
    are a normal end. A size below that of the smallest message, as in zeros, is an error, and so is
    a negative magic; `CorruptRecordError` has Kafka's words then.
    """
    head = source.read_at(position, HEADER_SIZE_UP_TO_MAGIC)
    if end - position <= HEADER_SIZE_UP_TO_MAGIC or len(head) < HEADER_SIZE_UP_TO_MAGIC:
        return
    _, size, magic = ENTRY_START_OF_KAFKA.unpack(head)
    if size < RECORD_OVERHEAD_V0:
        defect = (
            f"Found record size {size} smaller than minimum record overhead ({RECORD_OVERHEAD_V0})"
        )
    elif LOG_OVERHEAD + size > end - position:
        return
    elif magic < 0:
        defect = f"Invalid magic used in LegacyRecord: {magic}"
    if defect is not None:
        raise CorruptRecordError(defect, source.path, position)
