"""``.log`` files: batches, and what follows the last whole one.

The end of the whole batches is told as Kafka's FileLogInputStream tells it: up to 17 bytes, and a
batch that is longer than what is left, are a normal end and counted as bytes at the end. A size
below that of the smallest message, as in zeros, is an error, and so is a negative magic. A magic
above that of v2, and a batch that is shorter than its header, are none: see
`pylog.inspect.dump.odd_batch`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pylog.columnar.arrow_buffers import allocate
from pylog.errors import CorruptRecordError
from pylog.files.storage import open_file
from pylog.inspect.dump.dump_part import TextPart
from pylog.inspect.dump.log_context import LogContext
from pylog.inspect.dump.odd_batch import find_odd_batch
from pylog.inspect.dump.offset_gaps import OffsetGaps
from pylog.inspect.dump.window_lines import WindowLines
from pylog.internal_topics.versions import KafkaVersion
from pylog.log_file.segment_windows import SegmentWindows
from pylog.record.batch_layout import HEADER_SIZE_UP_TO_MAGIC, LOG_OVERHEAD, RECORD_OVERHEAD_V0

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.byte_source import ByteSource
    from pylog.inspect.dump.dump_file import DumpFile
    from pylog.inspect.dump.dump_options import DumpOptions
    from pylog.inspect.dump.dump_part import DumpPart
    from pylog.inspect.dump.file_report import FileReport
    from pylog.inspect.dump.log_context import Decoders
    from pylog.inspect.dump.odd_batch import OddBatch
    from pylog.record.window import Window

WINDOW_BYTES = 1 << 22
"""As much as a reader takes at once; what Python does for a window is lost in what kernels do."""

_SIZE_AND_MAGIC = struct.Struct(">8xi4xb")


def log_heading(file: DumpFile) -> str:
    """Return the line that a ``.log`` file's dump begins with."""
    return f"Log starting offset: {file.base_offset}\n"


class LogDump:
    """Gives the parts of one file that consists of batches.

    Parameters
    ----------
    file
        The file.
    options
        Of the dump.
    decoders
        Of all its files.
    """

    def __init__(self, file: DumpFile, options: DumpOptions, decoders: Decoders) -> None:
        self._file = file
        self._options = options
        self._context = LogContext(file.path, options, decoders)
        has_start = options.kafka_version >= KafkaVersion.V4_3
        self._gaps = OffsetGaps(has_start=has_start)

    def parts(self) -> Iterator[DumpPart]:
        """Yield the parts in file order.

        Raises
        ------
        CorruptRecordError
            What follows the last whole batch cannot be the beginning of one.
        LogStorageError
            The file cannot be read.
        """
        with open_file(self._file.location) as source:
            end = self._end(source)
            position = 0
            while True:
                windows = self._windows(source, position, end)
                for window in windows:
                    yield self._part(window)
                position, defect = windows.tail
                odd = find_odd_batch(source, position, end) if defect else None
                if odd is None:
                    break
                yield self._part(odd.window, odd)
                position = odd.end_position
            ensure_normal_end(source, position, end, defect)
            left = end - position
            if left > 0 and self._options.max_bytes is None and not self._options.is_json:
                yield TextPart(f"Found {left} invalid bytes at the end of {self._file.name}\n")

    def _part(self, window: Window, odd: OddBatch | None = None) -> DumpPart:
        lines = WindowLines(self._context, window, odd=odd)
        size_bytes = window.size_bytes if odd is None else odd.size_bytes
        return _WindowPart(lines, self._gaps, size_bytes)

    def _end(self, source: ByteSource) -> int:
        size = source.size()
        return size if self._options.max_bytes is None else min(size, self._options.max_bytes)

    def _windows(self, source: ByteSource, position: int, end: int) -> SegmentWindows:
        return SegmentWindows(
            source,
            position,
            end,
            window_bytes=WINDOW_BYTES,
            max_decompressed_bytes=self._options.max_decompressed_bytes,
            make_memory=_make_memory,
        )


class _WindowPart:
    """The lines of a window, and what is noted of it for the file."""

    def __init__(self, lines: WindowLines, gaps: OffsetGaps, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self._lines = lines
        self._gaps = gaps

    def __iter__(self) -> Iterator[memoryview]:
        """Yield the lines."""
        return iter(self._lines)

    def report_to(self, report: FileReport) -> None:
        """Note the offsets and checksums."""
        self._gaps.note_part(self._lines.gaps)
        report.offset_gaps = self._gaps.pairs
        report.more_offset_gaps = self._gaps.more
        report.invalid_batches += self._lines.invalid_batches


def _make_memory(size_bytes: int) -> memoryview:
    buffer, _ = allocate(size_bytes)
    return memoryview(buffer)[:size_bytes]


def ensure_normal_end(source: ByteSource, position: int, end: int, defect: str | None) -> None:
    """Return unless what follows the last whole batch cannot be the beginning of another one.

    Raises
    ------
    CorruptRecordError
        The text is Kafka's where it raises an error, too.
    """
    if end - position <= HEADER_SIZE_UP_TO_MAGIC:
        return
    head = source.read_at(position, HEADER_SIZE_UP_TO_MAGIC)
    if len(head) < HEADER_SIZE_UP_TO_MAGIC:
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
