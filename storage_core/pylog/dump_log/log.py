"""``.log`` files, and ``.checkpoint`` files of the metadata log: batches, and what follows them."""

from __future__ import annotations

import re
import struct
import zlib
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.columnar.arrow_schema import allocate
from pylog.dump_log.batches import BatchLines, LogLines
from pylog.dump_log.lines import IS_VALID, MAGIC, SIZE, batch_and_record_lines, in_utf8
from pylog.dump_log.report import OffsetGaps
from pylog.errors import CorruptRecordError, LogDirectoryError
from pylog.files.storage import open_file
from pylog.internal_topics.versions import KafkaVersion
from pylog.log_file.segment_windows import SegmentWindows
from pylog.record.batch_header import (
    HEADER_SIZE_UP_TO_MAGIC,
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pylog.dump_log.batches import Decoders
    from pylog.dump_log.options import DumpFile, DumpOptions
    from pylog.dump_log.report import FileReport
    from pylog.files.byte_source import ByteSource


_WINDOW_BYTES = 1 << 22
"""As much as a reader takes at once; what Python does for a window is lost in what kernels do."""

_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint", re.ASCII)
_MOST_BYTES = 1 << 26
"""A larger odd batch is left to the error about its header."""

_SIZE_AND_MAGIC = struct.Struct(">8xi4xb")
_CRC = struct.Struct(">12xI")


class Part(NamedTuple):
    """Lines of a file; raising `LogStorageError`, they end the dump of the file."""

    report: FileReport
    lines: Iterable[memoryview]
    size_bytes: int = 0
    finish: Callable[[], None] = lambda: None


def text_part(report: FileReport, text: str) -> Part:
    """Return a part that is known already."""
    return Part(report, [in_utf8(text)])


def log_parts(
    file: DumpFile, report: FileReport, options: DumpOptions, decoders: Decoders
) -> Iterator[Part]:
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
                yield Part(report, lines, window.size_bytes, finish)
            position, defect = windows.tail
            odd = _find_odd_batch(source, position, end) if defect else None
            if odd is None:
                break
            lines = BatchLines(log, odd.window, odd.fault, odd.changes)
            yield Part(report, lines, odd.size_bytes, partial(lines.report_to, report, gaps))
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
    size, magic = _SIZE_AND_MAGIC.unpack(head)
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
        changes[IS_VALID] = is_v1 and _CRC.unpack_from(data)[0] == zlib.crc32(data[MAGIC_OFFSET:])
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
    size, magic = _SIZE_AND_MAGIC.unpack(head)
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
