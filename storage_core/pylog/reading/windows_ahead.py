"""Windows of a file read ahead, so that several are decoded at a time.

Everything that decides stays with the one reader that asks for the windows in order: offsets,
checksums, damage, transactions. What rows some batches with right checksums hold depends on nothing
else; threads work that out ahead. Where the reader turns out to ask for something else, because
there is damage, it works that out itself, and what was made ahead is dropped: so rows, errors and
damage are those of one thread.

Only windows whose codec takes long for a batch are given to threads. With the others, and without a
codec, so much of the work holds the interpreter's lock, in slices of some microseconds, that two
threads are slower than one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.window import Window
from pylog.errors import LogStorageError
from pylog.model import CompressionType
from pylog.reading.head_start import HeadStart
from pylog.record.batch_layout import COMPRESSION_CODEC_MASK
from pylog.record.batch_scan import find_bad_checksum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt
    import pyarrow as pa

    from pylog.columnar.decode import RecordDecoder
    from pylog.log_file.segment_windows import SegmentWindow, SegmentWindows
    from pylog.reading.filtered_decode import FilteredDecoder
    from pylog.record.batch_scan import BadChecksum, BatchHeaders
    from pylog.worker_threads import WorkerThreads

    Decoder = RecordDecoder | FilteredDecoder
    Wanted = Callable[[SegmentWindow], npt.NDArray[np.bool_] | None]

_SLOW_CODECS = tuple(
    codec.value for codec in (CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.ZSTD)
)
_LARGEST_WINDOW_BYTES = 1 << 23
"""A batch that makes a larger one is held alone, as with one thread."""
_PART_BYTES = 1 << 22
"""About how many bytes of records a thread decodes at a time."""
_MOST_BYTES = 2 * _PART_BYTES
"""How much a thread makes before it is asked for: records may turn out to be more than a part."""
_FIRST_RATIO = 8.0
"""How many times its size a compressed batch is expected to have, before one was seen."""


class PartAhead:
    """Consecutive batches of a window, with right checksums, that a thread decodes.

    Attributes
    ----------
    headers
        The batches.
    """

    def __init__(
        self, window: SegmentWindow, path: str, headers: BatchHeaders, last_offset: int
    ) -> None:
        self.headers = headers
        self._window = Window(window.scan.buffer, headers, path, window.file_position)
        self._last_offset = last_offset  # of the batch before
        self._decoder: Decoder | None = None
        self._batches: HeadStart | None = None

    @property
    def decoder(self) -> Decoder | None:
        """What decodes it; None where no thread of this process does."""
        return self._decoder if self._batches is not None and self._batches.is_here else None

    def start(self, workers: WorkerThreads, decoder: Decoder, offsets: tuple[int, int]) -> None:
        """Have a thread decode the records in the range of offsets, ``[start, end)``."""
        self._decoder = decoder

        def make() -> Iterator[pa.RecordBatch]:
            decoder.restart(self._last_offset)
            return decoder.decode(self._window, *offsets)

        self._batches = HeadStart(workers, make, _MOST_BYTES)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield its records; errors as of the decoder."""
        if self._batches is not None:
            yield from self._batches

    def abandon(self) -> None:
        """Have the thread stop soon."""
        if self._batches is not None:
            self._batches.abandon()


@dataclass(slots=True)
class WindowAhead:
    """A window that was read ahead.

    Attributes
    ----------
    window
        As read.
    memory
        What it was read into.
    wanted
        Mask of its batches that are decoded; None for all.
    is_checked
        Whether its checksums have been looked at.
    bad
        The first batch whose checksum is wrong.
    parts
        Its wanted batches; none where whoever asks for the window decodes them.
    """

    window: SegmentWindow
    memory: bytearray
    wanted: npt.NDArray[np.bool_] | None
    is_checked: bool = False
    bad: BadChecksum | None = None
    parts: list[PartAhead] = field(default_factory=list)

    def find_bad_checksum(self) -> BadChecksum | None:
        """Return the first batch with a wrong checksum, None if all are right."""
        return self.bad if self.is_checked else find_bad_checksum(self.window.scan)


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
    cuts_windows
        Whether parts of a window can be decoded on their own.
    """

    def __init__(
        self,
        workers: WorkerThreads,
        make_decoder: Callable[[], Decoder],
        wanted: Wanted,
        offsets: tuple[int, int],
        *,
        cuts_windows: bool,
    ) -> None:
        self._workers = workers
        self._make_decoder = make_decoder
        self._wanted = wanted
        self._offsets = offsets
        self._cuts_windows = cuts_windows
        self._most_parts = workers.count + 1
        self._ahead = 1  # how many parts there are to be, more with each window
        self._waiting: deque[WindowAhead] = deque()
        self._current: WindowAhead | None = None
        self._idle: list[Decoder] = []
        self._memory = bytearray()  # of the window that was read last
        self._free_memory: list[bytearray] = []
        self._last_offset = -1
        self._ratio = _FIRST_RATIO

    def over(self, windows: SegmentWindows, path: str) -> Iterator[SegmentWindow]:
        """Yield the windows of a slice, as ``windows`` does, having read the next ones already.

        What stops the reading is raised once the windows before it have been given.
        """
        reading = iter(windows)
        stopped_by: LogStorageError | None = None
        is_at_end = False
        self.drop()
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
