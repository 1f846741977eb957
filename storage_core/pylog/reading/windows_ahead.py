"""Windows of a file read ahead, so that several are decoded at a time.

Everything that decides stays with the one reader that asks for the windows in order: offsets,
checksums, damage, transactions. What rows some batches with right checksums hold depends on nothing
else; threads work that out ahead. Where the reader turns out to ask for something else, because
there is damage, it works that out itself, and what was made ahead is dropped: so rows, errors and
damage are those of one thread.

The first window of a slice is read by whoever asks for it. After it threads read, check and decode
ranges of the file on their own, from one entry of the offset index to another, so that hardly
anything is handed over. A range that is not just what its window was to be, since the index is
wrong or the file is damaged, is read once more, and so is all that follows it in the slice: window
by window, of which threads decode parts where the codec takes long for a batch. So they do where
there is no index, or the file is remote. LZ4 is left to one thread: its library keeps the
interpreter's lock, and two threads were slower.
"""

from __future__ import annotations

from collections import deque
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import LogStorageError
from pylog.files.byte_source import LocalFile
from pylog.model import CompressionType
from pylog.reading.index_cuts import IndexCuts
from pylog.reading.range_ahead import RangeAhead
from pylog.reading.window_ahead import PartAhead, WindowAhead
from pylog.record.batch_layout import COMPRESSION_CODEC_MASK
from pylog.record.batch_scan import find_bad_checksum

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from pylog.files.byte_source import ByteSource
    from pylog.log_file.segment_windows import SegmentWindow, SegmentWindows
    from pylog.reading.range_ahead import Wanted
    from pylog.reading.segment_slice import SegmentSlice
    from pylog.reading.window_ahead import Decoder
    from pylog.record.batch_scan import BatchHeaders
    from pylog.scheduling.worker_threads import WorkerThreads

_SLOW_CODECS = tuple(
    codec.value for codec in (CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.ZSTD)
)
_LARGEST_WINDOW_BYTES = 1 << 23
"""A batch that makes a larger one is held alone, as with one thread."""
_PART_BYTES = 1 << 22
"""About how many bytes of records a thread decodes at a time."""
_LEAST_RANGE_BYTES = 1 << 16
_MEMORY_UNIT = 1 << 19
"""Memory of ranges has a multiple of it, so that it is of use for others, too."""
_FIRST_RATIO = 8.0
"""How many times its size a compressed batch is expected to have, before one was seen."""


class WindowsAhead:
    """Reads windows ahead and has threads look at them. For one pass of one reader, one thread.

    Parameters
    ----------
    workers
        The threads.
    make_decoder
        Returns a decoder like the reader's own.
    wanted
        Says which batches of a window the reader decodes.
    offsets
        The range ``[start, end)`` that it reads.
    window_bytes
        How much of a file is read at once, at the most.
    max_decompressed_bytes
        As of the decoder.
    cuts_windows
        Whether parts of a window can be decoded on their own.
    uses_indexes
        Whether an offset index may say where ranges begin.
    """

    def __init__(  # noqa: PLR0913 - keyword-only options
        self,
        workers: WorkerThreads,
        make_decoder: Callable[[], Decoder],
        wanted: Wanted,
        offsets: tuple[int, int],
        *,
        window_bytes: int,
        max_decompressed_bytes: int,
        cuts_windows: bool,
        uses_indexes: bool,
    ) -> None:
        self._workers = workers
        self._make_decoder = make_decoder
        self._wanted = wanted
        self._offsets = offsets
        self._window_bytes = window_bytes
        self._max_decompressed_bytes = max_decompressed_bytes
        self._cuts_windows = cuts_windows
        self._uses_indexes = uses_indexes
        self._most_parts = workers.count + 1
        self._ahead = 1  # how many parts there are to be, more with each window
        self._waiting: deque[WindowAhead] = deque()
        self._current: WindowAhead | None = None
        self._idle: list[Decoder] = []
        self._memory = bytearray()  # of the window that was read last
        self._free_memory: list[bytearray] = []
        self._last_offset = -1
        self._ratio = _FIRST_RATIO

    def over(
        self, windows: SegmentWindows, source: ByteSource, segment_slice: SegmentSlice
    ) -> Iterator[SegmentWindow]:
        """Yield the windows of a slice, as ``windows`` does, having read the next ones already.

        What stops the reading is raised once the windows before it have been given.

        Parameters
        ----------
        windows
            The windows, of which none has been asked for.
        source
            The opened file of which they are.
        segment_slice
            The slice whose end is theirs.
        """
        self.drop()
        reading = iter(windows)
        for first in reading:
            position = None
            if self._is_for_ranges(first, source, segment_slice):
                position = yield from self._in_ranges(first, source, segment_slice)
            if position is None:
                reading = chain((first,), reading)
            else:
                windows.skip_to(position)
                reading = iter(windows)
            break
        yield from self._window_by_window(reading, segment_slice.path)

    def _is_for_ranges(
        self, first: SegmentWindow, source: ByteSource, segment_slice: SegmentSlice
    ) -> bool:
        return (
            self._uses_indexes
            and self._workers.are_here
            and isinstance(source, LocalFile)
            and first.scan.defect is None
            and first.scan.headers.traits.all_v2
            and not (first.scan.headers.codec_ids == CompressionType.LZ4).any()
            and first.end_position < segment_slice.end_position
        )

    def _in_ranges(
        self, first: SegmentWindow, source: ByteSource, segment_slice: SegmentSlice
    ) -> Generator[SegmentWindow, None, int | None]:
        """Yield the first window, and those that threads make; return the byte after the last.

        None, and nothing is yielded, where the index cuts off no range.
        """
        if not first.scan.headers.traits.any_has(COMPRESSION_CODEC_MASK):
            self._ratio = 1.0
        ranges: deque[RangeAhead] = deque()
        position = first.end_position
        try:
            with IndexCuts(segment_slice, position) as cuts:
                self._current = WindowAhead(first, self._memory, self._wanted(first))
                self._begin_ranges(ranges, cuts, source)
                if not ranges:
                    return None
                yield first
                self._reuse_memory(self._current)
                while ranges:
                    made = ranges[0].finish()
                    if made is None:
                        break
                    del ranges[0]
                    self._ahead = min(self._ahead + 1, self._most_parts)
                    self._begin_ranges(ranges, cuts, source)
                    self._current = made
                    position = made.window.end_position
                    yield made.window
                    self._reuse_memory(made)
        finally:
            self._current = None
            for each in ranges:  # before the file is closed
                decoder = each.stop()
                if decoder is not None:
                    self._idle.append(decoder)
        return position

    def _begin_ranges(self, ranges: deque[RangeAhead], cuts: IndexCuts, source: ByteSource) -> None:
        while len(ranges) < self._ahead and self._workers.are_here:
            most = min(self._window_bytes, _LARGEST_WINDOW_BYTES)
            wanted = min(max(int(_PART_BYTES / self._ratio), _LEAST_RANGE_BYTES), most)
            bounds = cuts.next_range(wanted, 2 * most)
            if bounds is None:
                break
            size_bytes = bounds[1] - bounds[0]
            self.memory(-(-size_bytes // _MEMORY_UNIT) * _MEMORY_UNIT)
            each = RangeAhead(source, bounds, self._memory, self._max_decompressed_bytes)
            ranges.append(each)
            decoder = self._idle.pop() if self._idle else self._make_decoder()
            each.begin(self._workers, decoder, self._wanted, self._offsets)

    def _window_by_window(
        self, reading: Iterator[SegmentWindow], path: str
    ) -> Iterator[SegmentWindow]:
        stopped_by: LogStorageError | None = None
        is_at_end = False
        while True:
            while not is_at_end and self._wants_more():
                try:
                    window = next(reading, None)
                except LogStorageError as error:
                    stopped_by, window = error, None
                if window is None:
                    is_at_end = True
                else:
                    self._waiting.append(self._described(window, path))
                    self._start_more()
            if not self._waiting:
                break
            self._current = self._waiting.popleft()
            self._start_more()
            self._ahead = min(self._ahead + 1, self._most_parts)
            yield self._current.window
            self._reuse_memory(self._current)
        self._current = None
        if stopped_by is not None:
            raise stopped_by

    def memory(self, size_bytes: int) -> memoryview:
        """Return writable bytes for the next window, if possible some of a window that is done.

        Fresh memory would cost more than what is done with it.
        """
        fits = [each for each in self._free_memory if len(each) >= size_bytes]
        if fits:
            self._free_memory.remove(fits[0])
        self._memory = fits[0] if fits else bytearray(size_bytes)
        return memoryview(self._memory)[:size_bytes]

    def _reuse_memory(self, done: WindowAhead) -> None:
        # A part that was not given to its end may be with a thread still.
        if not done.parts and len(self._free_memory) <= self._most_parts:
            self._free_memory = [
                each for each in self._free_memory if len(each) >= len(done.memory)
            ]
            self._free_memory.append(done.memory)

    def find(self, window: SegmentWindow) -> WindowAhead | None:
        """Return what was made ahead of a window, None if it is not the one that was yielded."""
        current = self._current
        return current if current is not None and current.window.scan is window.scan else None

    def release(self, part: PartAhead) -> None:
        """Note that nobody needs a part any more."""
        if self._current is not None and part in self._current.parts:
            self._current.parts.remove(part)
        if part.decoder is not None:
            self._idle.append(part.decoder)
        self._start_more()

    def note_ratio(self, part: PartAhead, size_bytes: int) -> None:
        """Note how much a part has come to: the next ones are expected to be alike."""
        stored = int(part.headers.sizes_bytes.sum())
        self._ratio = max(1.0, size_bytes / max(1, stored))

    def drop(self) -> None:
        """Forget all windows."""
        for each in [*([] if self._current is None else [self._current]), *self._waiting]:
            for part in each.parts:
                part.abandon()
        self._waiting.clear()
        self._current = None
        self._last_offset = -1

    def _wants_more(self) -> bool:
        if not self._waiting:
            return True
        parts = sum(len(each.parts) for each in self._waiting)
        # Nothing is gained where the last window is not for the threads.
        return bool(self._waiting[-1].parts) and parts < self._ahead

    def _start_more(self) -> None:
        if not self._workers.are_here:
            return
        held = [*([] if self._current is None else [self._current]), *self._waiting]
        parts = [part for each in held for part in each.parts]
        for part in parts[: self._most_parts]:
            if part.decoder is None:
                decoder = self._idle.pop() if self._idle else self._make_decoder()
                part.start(self._workers, decoder, self._offsets)

    def _described(self, window: SegmentWindow, path: str) -> WindowAhead:
        headers = window.scan.headers
        wanted = self._wanted(window)
        ahead = WindowAhead(window, self._memory, wanted)
        if not headers.traits.any_has(COMPRESSION_CODEC_MASK):
            self._last_offset = int(headers.last_offsets[-1])
            return ahead
        chosen = headers if wanted is None else headers.select(wanted)
        if not len(chosen):
            return ahead
        last_offset, self._last_offset = self._last_offset, int(chosen.last_offsets[-1])
        is_v2 = headers.traits.all_v2
        if not np.isin(chosen.codec_ids, _SLOW_CODECS).any() or not (self._cuts_windows or is_v2):
            return ahead
        if window.scan.valid_bytes > _LARGEST_WINDOW_BYTES:
            return ahead
        # A small part of the work where decompression is slow.
        ahead.is_checked, ahead.bad = True, find_bad_checksum(window.scan)
        if ahead.bad is not None:
            return ahead
        # Which of two batches of v0 or v1 is misplaced depends on what is decoded together.
        cuts = self._cuts(chosen) if self._cuts_windows and is_v2 else [slice(0, len(chosen))]
        for cut in cuts:
            part = PartAhead(window, path, chosen.select(cut), last_offset)
            last_offset = int(part.headers.last_offsets[-1])
            ahead.parts.append(part)
        return ahead

    def _cuts(self, headers: BatchHeaders) -> list[slice]:
        """Return slices of batches that come to about `_PART_BYTES` each, decompressed."""
        number = headers.sizes_bytes.cumsum() * self._ratio // _PART_BYTES
        edges = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(headers)]
        return [slice(start, end) for start, end in pairwise(edges)]
