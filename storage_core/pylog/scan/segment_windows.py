"""A ``.log`` file in windows of whole batches, through the kernels.

One buffer is read into again and again, so memory does not depend on the segment's size. No byte is
read twice, since each one may cost a request over a network: the batch that a window's end cuts is
moved to the beginning of the next one. Only a batch of more than 64 MiB is: it is checksummed chunk
by chunk before memory is made for it, so that a damaged size field costs an error, not a gigabyte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import CorruptRecordError, SegmentVanishedError
from pylog.record.batch_header import peek_entry_size
from pylog.record.batch_layout import HEADER_SIZE_UP_TO_MAGIC
from pylog.record.batch_scan import BatchScan, find_batches
from pylog.scan.batch_walk import computed_checksum, is_zero, read_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.byte_source import ByteSource

DEFAULT_WINDOW_BYTES = 1 << 22
"""Large enough that what Python does a window is lost in what the kernels do."""

FIRST_WINDOW_BYTES = 1 << 18
"""So that the first rows of a query that stops early cost little."""

_CHECK_BEFORE_READING = 1 << 26


class SegmentWindow(NamedTuple):
    """Whole batches of a file; valid until the next window is asked for."""

    file_position: int
    scan: BatchScan

    @property
    def end_position(self) -> int:
        """The byte of the file after the last batch of the window."""
        return self.file_position + self.scan.valid_bytes


class SegmentTail(NamedTuple):
    """Where the whole batches of a file end, and what stands there instead of another one."""

    position: int
    defect: str | None


class SegmentWindows:
    """Iterates the whole batches in ``[start, end)`` of one file; `tail` is known afterwards.

    One thread, one iteration.

    Parameters
    ----------
    source
        The opened ``.log`` file.
    start
        Where a batch begins.
    end
        Byte behind the last one to read.
    window_bytes
        How much is read at once, at the most: the first windows are smaller.
    first_window_bytes
        How much is read at first; each window is twice as large as the one before.
    """

    def __init__(
        self,
        source: ByteSource,
        start: int,
        end: int,
        *,
        window_bytes: int = DEFAULT_WINDOW_BYTES,
        first_window_bytes: int = FIRST_WINDOW_BYTES,
    ) -> None:
        self._source = source
        self._end = end
        self._window_bytes = max(HEADER_SIZE_UP_TO_MAGIC, min(window_bytes, end - start))
        self._memory = bytearray(min(first_window_bytes, self._window_bytes))
        self._held_bytes = 0  # how much of the memory holds what is in the file at the position
        self.tail = SegmentTail(start, None)

    def __iter__(self) -> Iterator[SegmentWindow]:
        """Yield windows in file order.

        Raises
        ------
        SegmentVanishedError
            The file is shorter than ``end`` now.
        CorruptRecordError
            A batch of more than 64 MiB has a wrong checksum.
        """
        position = self.tail.position
        while self._end - position >= HEADER_SIZE_UP_TO_MAGIC:
            scan = find_batches(self._fill(position))
            if len(scan.headers):
                yield SegmentWindow(position, scan)
                position += scan.valid_bytes
                self.tail = SegmentTail(position, scan.defect)
                if scan.defect is None:
                    self._keep_from(
                        scan.valid_bytes, min(2 * len(self._memory), self._window_bytes)
                    )
                    continue
            elif scan.defect is None and self._grow(position):
                continue
            self.tail = SegmentTail(position, scan.defect)
            break
        if self.tail.defect and is_zero(self._source, self.tail.position, self._end):
            self.tail = SegmentTail(self.tail.position, None)

    def _fill(self, position: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        wanted = min(len(self._memory), self._end - position)
        view = memoryview(self._memory)[:wanted]
        held = self._held_bytes
        self._held_bytes = held + self._source.read_into(position + held, view[held:])
        if self._held_bytes < wanted:
            reason = f"file ends here, it was planned to be read up to byte {self._end}"
            raise SegmentVanishedError(reason, self._source.path, position + self._held_bytes)
        return np.frombuffer(view.toreadonly(), dtype=np.uint8)

    def _keep_from(self, used_bytes: int, memory_bytes: int) -> None:
        """Have memory of at least ``memory_bytes`` that begins with what was not used."""
        rest = memoryview(self._memory)[used_bytes : self._held_bytes]
        if memory_bytes > len(self._memory):
            self._memory = bytearray(memory_bytes)
        memoryview(self._memory)[: len(rest)] = rest
        self._held_bytes = len(rest)

    def _grow(self, position: int) -> bool:
        """Make room for the batch at ``position``; False if it is cut short by the end."""
        path = self._source.path
        size_bytes = peek_entry_size(memoryview(self._memory), path=path, position=position)
        if position + size_bytes > self._end:
            return False
        if size_bytes > _CHECK_BEFORE_READING:
            self._check(position)
        self._keep_from(0, size_bytes)
        return True

    def _check(self, position: int) -> None:
        """Refuse a batch with a wrong checksum before it is in memory."""
        found = read_header(self._source, position, self._end)
        if found is None:
            reason = f"file ends here, it was planned to be read up to byte {self._end}"
            raise SegmentVanishedError(reason, self._source.path, position)
        computed = computed_checksum(self._source, found)
        if computed != found.header.crc:
            reason = (
                f"batch of {found.header.size_bytes} bytes: CRC stored "
                f"{found.header.crc:#010x}, computed {computed:#010x}"
            )
            raise CorruptRecordError(reason, self._source.path, position)
