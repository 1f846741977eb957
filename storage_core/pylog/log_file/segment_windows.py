"""A ``.log`` file in windows of whole batches, through the kernels.

One buffer is read into again and again, so memory does not depend on the segment's size. No byte is
read twice, since each one may cost a request over a network: the batch that a window's end cuts is
moved to the beginning of the next one. Only a batch of more than 64 MiB is: it is checksummed chunk
by chunk before memory is made for it, so that a damaged size field costs an error, not a gigabyte.
A reader of records refuses an intact batch that is larger than what records may take.

Windows of which only the batch headers are read, where that is cheaper than reading all.

Only of local files: elsewhere a request a header would cost more than the bytes between them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import CorruptRecordError, SegmentVanishedError
from pylog.files.byte_source import LocalFile
from pylog.lazy_modules import LazyModule
from pylog.log_file.batch_walk import computed_checksum, is_zero, read_header
from pylog.native.checksum import wrong_checksum
from pylog.record.batch_header import HEADER_SIZE_UP_TO_MAGIC, peek_entry_size
from pylog.record.batch_scan import BatchScan, Window, find_batches
from pylog.record.byte_buffer import is_surely_over, over_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from pylog.files.byte_source import ByteSource
    from pylog.kernels import skip_headers  # compiles
else:
    skip_headers = LazyModule("pylog.kernels.skip_headers")


_LEAST_BATCH_BYTES = 1 << 12
"""Batches of this size on average: a system call costs as much as copying half of that."""
_STRIDE = 1 << 26
"""How far the system is asked to read ahead: scattered reads of a cold disk are slow."""


class HeaderReading:
    """Reads headers into a window's memory, each to its place. One file, one thread."""

    def __init__(self, source: LocalFile) -> None:
        self._source = source
        self._batch_bytes = 0.0
        self._asked_up_to = 0

    def note(self, scan: BatchScan) -> None:
        """Note how large batches are here; the next window is expected to be alike."""
        if len(scan.headers):
            self._batch_bytes = scan.valid_bytes / len(scan.headers)

    def fill(self, position: int, memory: memoryview) -> bool:
        """Fill in the headers of the batches that begin in the window at ``position``."""
        end = position + len(memory)
        if self._batch_bytes < _LEAST_BATCH_BYTES or end > self._source.size():
            return False
        while end > self._asked_up_to:
            start = max(position, self._asked_up_to)
            self._source.will_need(start, _STRIDE)
            self._asked_up_to = start + _STRIDE
        into = np.frombuffer(memory, dtype=np.uint8)
        return bool(skip_headers.read_headers(self._source.descriptor, position, into.size, into))

    def read_batches(
        self, memory: memoryview, window: Window, which: npt.NDArray[np.bool_]
    ) -> None:
        """Read the whole batches that a mask picks into the memory of a window."""
        headers, position = window.headers, window.file_position
        starts = headers.positions[which].tolist()
        ends = (headers.positions + headers.sizes_bytes)[which].tolist()
        for start, end in zip(starts, ends, strict=True):
            count = self._source.read_into(position + start, memory[start:end])
            if count < end - start:
                raise shorter_than_planned(self._source.path, position + start + count)


def shorter_than_planned(path: str, position: int, end: int | None = None) -> SegmentVanishedError:
    """Return the error for a file that ends at ``position`` now."""
    planned = "" if end is None else f" up to byte {end}"
    return SegmentVanishedError(
        f"file ends here, it was planned to be read{planned}", path, position
    )


DEFAULT_WINDOW_BYTES = 1 << 22
"""Large enough that what Python does a window is lost in what the kernels do."""

FIRST_WINDOW_BYTES = 1 << 18
"""So that the first rows of a query that stops early cost little."""

_GROWTH = 4
_LARGEST_KEPT = 1 << 24
_CHECK_BEFORE_READING = 1 << 26


class WindowMemory:
    """Memory that windows are read into, one after the other. One thread at a time."""

    def __init__(self) -> None:
        self._memory = bytearray()

    def __len__(self) -> int:
        return len(self._memory)

    def __call__(self, size_bytes: int) -> memoryview:
        """Return so many writable bytes, the same as before if there are enough."""
        if size_bytes > _LARGEST_KEPT:
            return memoryview(bytearray(size_bytes))
        if len(self._memory) < size_bytes:
            self._memory = bytearray(size_bytes)
        return memoryview(self._memory)[:size_bytes]


class SegmentTail(NamedTuple):
    """Where the whole batches of a file end, and what stands there instead of another one."""

    position: int
    defect: str | None


class SegmentWindows:
    """Iterates the whole batches in ``[start, end)`` of one file; `tail` is known afterwards.

    Each window is four times as large as the one before, up to ``window_bytes``. With
    ``only_headers``, where batches are large and the file is local, `Window.read_batches` reads the
    rest. A batch that has more than ``max_decompressed_bytes`` already as it is stored, by a margin
    for what compression may have added, is refused. ``make_memory`` returns so many writable bytes
    for each window: other ones each time if windows are to be kept. One thread, one iteration.
    """

    def __init__(  # noqa: PLR0913 - keyword-only options
        self,
        source: ByteSource,
        start: int,
        end: int,
        *,
        window_bytes: int = DEFAULT_WINDOW_BYTES,
        first_window_bytes: int = FIRST_WINDOW_BYTES,
        only_headers: bool = False,
        max_decompressed_bytes: int | None = None,
        make_memory: Callable[[int], memoryview] | None = None,
    ) -> None:
        self._source = source
        self._max_decompressed_bytes = max_decompressed_bytes
        self._make_memory = WindowMemory() if make_memory is None else make_memory
        self._headers = None
        if only_headers and isinstance(source, LocalFile) and source.is_read_by_kernels:
            self._headers = HeaderReading(source)
        self._has_all = True  # of the window that is held
        self._end = end
        self._window_bytes = max(HEADER_SIZE_UP_TO_MAGIC, min(window_bytes, end - start))
        if isinstance(make_memory, WindowMemory):
            first_window_bytes = max(first_window_bytes, len(make_memory))
        self._memory = self._make_memory(min(first_window_bytes, self._window_bytes))
        self._held_bytes = 0  # how much of the memory holds what is in the file at the position
        self.tail = SegmentTail(start, None)

    def __iter__(self) -> Iterator[Window]:
        """Yield windows in file order."""
        position = self.tail.position
        while self._end - position >= HEADER_SIZE_UP_TO_MAGIC:
            scan = self._before_too_large(find_batches(self._fill(position)))
            if len(scan.headers):
                following = position + scan.valid_bytes
                self.tail = SegmentTail(following, scan.defect)
                yield self._window(position, scan)
                position = following
                if scan.defect is None:
                    self._keep_from(
                        scan.valid_bytes, min(_GROWTH * len(self._memory), self._window_bytes)
                    )
                    continue
            elif scan.defect is None and self._grow(position):
                continue
            self.tail = SegmentTail(position, scan.defect)
            break
        if self.tail.defect and is_zero(self._source, self.tail.position, self._end):
            self.tail = SegmentTail(self.tail.position, None)

    def _before_too_large(self, scan: BatchScan) -> BatchScan:
        """Return what is before a batch that exceeds the limit: that is refused on its own."""
        sizes = scan.headers.sizes_bytes
        if not len(sizes) or not self._is_too_large(int(sizes.max())):
            return scan
        index = next(at for at, size in enumerate(sizes.tolist()) if self._is_too_large(size))
        end = int(scan.headers.positions[index])
        return BatchScan(scan.buffer, scan.headers.select(slice(0, index)), end, None)

    def _fill(self, position: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        wanted = min(len(self._memory), self._end - position)
        memory = self._memory[:wanted]
        if self._headers is not None:
            self._held_bytes = 0  # what is held may be headers alone
            self._has_all = not self._headers.fill(position, memory)
        if self._has_all:
            held = self._held_bytes
            self._held_bytes = held + self._source.read_into(position + held, memory[held:])
            if self._held_bytes < wanted:
                at = position + self._held_bytes
                raise shorter_than_planned(self._source.path, at, self._end)
        return np.frombuffer(memory.toreadonly(), dtype=np.uint8)

    def _window(self, position: int, scan: BatchScan) -> Window:
        window = Window.of(scan, self._source.path, position)
        if self._headers is not None:
            self._headers.note(scan)
            if not self._has_all:
                return replace(window, fetch=partial(self._headers.read_batches, self._memory))
        return window

    def _keep_from(self, used_bytes: int, memory_bytes: int) -> None:
        """Have memory of at least ``memory_bytes`` that begins with what was not used."""
        rest = self._memory[used_bytes : self._held_bytes]
        wanted = max(memory_bytes, len(rest))
        if isinstance(self._make_memory, WindowMemory):
            wanted = max(wanted, len(self._memory))  # what a large batch has needed
        self._memory = self._make_memory(wanted)
        self._memory[: len(rest)] = rest
        self._held_bytes = len(rest)

    def _grow(self, position: int) -> bool:
        """Make room for the batch at ``position``; False if it is cut short by the end."""
        path = self._source.path
        size_bytes = peek_entry_size(self._memory, path=path, position=position)
        if position + size_bytes > self._end:
            return False
        is_too_large = self._is_too_large(size_bytes)
        if is_too_large or size_bytes > _CHECK_BEFORE_READING:
            self._check(position)
        if is_too_large:
            reason = over_limit(f"batch has {size_bytes} bytes", self._max_decompressed_bytes or 0)
            raise CorruptRecordError(reason, path, position)
        self._keep_from(0, size_bytes)
        return True

    def _is_too_large(self, size_bytes: int) -> bool:
        limit = self._max_decompressed_bytes
        return limit is not None and is_surely_over(size_bytes, limit)

    def _check(self, position: int) -> None:
        """Refuse a batch with a wrong checksum before it is in memory."""
        batch = read_header(self._source, position, self._end)
        if batch is None:
            raise shorter_than_planned(self._source.path, position, self._end)
        computed = computed_checksum(self._source, batch)
        if computed != batch.header.crc:
            what = f"batch of {batch.header.size_bytes} bytes:"
            reason = wrong_checksum(what, batch.header.crc, computed)
            raise CorruptRecordError(reason, self._source.path, position)
