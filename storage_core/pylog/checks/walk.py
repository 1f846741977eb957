"""All batches of a log in one walk: each window is read, checksummed and decoded once.

Whoever looks at batches is shown the same windows. What is damaged is left out of them and noted,
in two reports: what a broker that scans the log finds as well, and batches whose checksum is right
while their records break the format, which only whoever decodes them notices. Those stay in the
windows, since their headers are covered by the checksum.

Decoding makes no columns: the kernels walk the records, and give none of them. Threads may read,
checksum and decode windows ahead (`pylog.reading.windows_ahead`): what is seen and noted is the
same.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.decode import RecordDecoder
from pylog.columnar.window import Window
from pylog.errors import LogStorageError
from pylog.log_file.segment_windows import DEFAULT_WINDOW_BYTES
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.damage import DamageReport
from pylog.reading.refused_batches import RefusedBatches
from pylog.reading.slicing import open_slice, slice_of
from pylog.reading.sound_decode import SoundDecode
from pylog.reading.windows_ahead import WindowsAhead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    import numpy.typing as npt

    from pylog.log_file.segment_windows import SegmentWindow
    from pylog.reading.log_segment_view import LogSegmentView
    from pylog.reading.log_view import LogView
    from pylog.reading.window_ahead import PartAhead
    from pylog.record.batch_scan import BatchHeaders
    from pylog.scheduling.worker_threads import WorkerThreads


_NO_OFFSETS = 0, 0
"""The range of the records that are given: none is."""


class LogWalk:
    """Iterates the segments of a log, each of which iterates its windows. One thread, one walk."""

    def __init__(
        self,
        view: LogView,
        damage: DamageReport,
        *,
        max_decompressed_bytes: int,
        on_bytes: Callable[[int], None] | None = None,
        window_bytes: int = DEFAULT_WINDOW_BYTES,
        workers: WorkerThreads | None = None,
    ) -> None:
        self.view = view
        self.damage = damage
        # batches whose records cannot be decoded; complete once a segment has been walked
        self.refused = DamageReport(is_logged=False)
        self.max_decompressed_bytes = max_decompressed_bytes
        self.window_bytes = window_bytes
        self._on_bytes = on_bytes
        self._refusing = RefusedBatches(self.refused)
        self._decoder = self._make_decoder()
        self.ahead: WindowsAhead | None = None
        if workers is not None:
            self.ahead = WindowsAhead(
                workers,
                self._make_decoder,
                _with_records,
                _NO_OFFSETS,
                window_bytes=window_bytes,
                max_decompressed_bytes=max_decompressed_bytes,
                cuts_windows=True,
                uses_indexes=view.directory.uses_indexes,
            )

    def _make_decoder(self) -> RecordDecoder:
        return RecordDecoder(
            self.view.topic_partition,
            record_schema([]),
            max_decompressed_bytes=self.max_decompressed_bytes,
        )

    def __iter__(self) -> Iterator[SegmentWalk]:
        """Yield the segments in offset order; each is to be walked before the next is asked for."""
        lowest_offset = 0
        for index in range(len(self.view.segments)):
            segment = SegmentWalk(self, index, lowest_offset)
            yield segment
            lowest_offset = segment.next_offset
        self._refusing.finish()

    def check_records(self, segment: SegmentWalk, window: SegmentWindow) -> None:
        """Decode the data batches of a window, and note those that cannot be."""
        self._refusing.enter(segment.slice, window)
        known = None if self.ahead is None else self.ahead.find(window)
        if known is None or not known.parts:
            headers, wanted = window.scan.headers, _with_records(window)
            chosen = headers if wanted is None else headers.select(wanted)
            self._decode(segment, window, chosen)
        else:
            for part in tuple(known.parts):
                self._take_over(segment, window, part)
        self._refusing.leave(window)

    def _take_over(self, segment: SegmentWalk, window: SegmentWindow, part: PartAhead) -> None:
        """Note what a thread could not decode of some batches of a window."""
        decoder = part.decoder
        if decoder is None:  # a forked child has no threads
            self._decode(segment, window, part.headers)
            return
        try:
            for _ in part.batches():
                pass
        except LogStorageError:
            rest = part.headers.select(slice(decoder.finished_batches, None))
        else:
            rest = part.headers.select(slice(len(part.headers), None))
            self._refusing.settle(window)
        if isinstance(decoder, RecordDecoder):
            self._decoder.follow(decoder)
        self._decode(segment, window, rest)
        if self.ahead is not None:
            self.ahead.release(part)

    def _decode(self, segment: SegmentWalk, window: SegmentWindow, chosen: BatchHeaders) -> None:
        """Decode batches of a window, and note those that cannot be."""

        def decode(part: BatchHeaders) -> Iterator[object]:
            batches = Window(window.scan.buffer, part, segment.slice.path, window.file_position)
            return self._decoder.decode(batches, *_NO_OFFSETS)

        for _ in SoundDecode(self._decoder, self._refusing, segment.slice, window).batches(
            chosen, decode
        ):
            pass

    def note_bytes(self, size_bytes: int) -> None:
        """Tell whoever wants to know that a window was read."""
        if self._on_bytes is not None:
            self._on_bytes(size_bytes)

    def end_segment(self) -> None:
        """Note what was refused at the end of a segment."""
        self._refusing.finish()


class SegmentWalk:
    """Iterates the windows of one segment; see `LogWalk`."""

    def __init__(self, walk: LogWalk, index: int, lowest_offset: int) -> None:
        self._walk = walk
        self._lowest_offset = lowest_offset
        self.index = index
        # Which one, and its bytes
        self.segment: LogSegmentView = walk.view.segments[index]
        self.slice = slice_of(walk.view, index)
        # Byte and offset after the last sound batch, once all windows have been seen
        self.end_position = 0
        self.next_offset = max(lowest_offset, self.segment.base_offset)

    def __iter__(self) -> Iterator[SegmentWindow]:
        """Yield windows in file order."""
        opened = open_slice(self.slice, self._walk.damage, self._lowest_offset)
        if opened is None:
            return
        with ExitStack() as stack:
            source = stack.enter_context(opened)
            windows = CheckedWindows(
                source,
                self.slice,
                lowest_offset=self._lowest_offset,
                damage=self._walk.damage,
                window_bytes=self._walk.window_bytes,
                max_decompressed_bytes=self._walk.max_decompressed_bytes,
                ahead=self._walk.ahead,
            )
            # Closed before the file is: threads may be reading it.
            checked = stack.enter_context(closing(iter(windows)))
            for window in checked:
                if window.end_position >= self.slice.end_position:
                    source.ensure_same()
                self._walk.check_records(self, window)
                self.next_offset = windows.next_offset
                self.end_position = window.end_position
                self._walk.note_bytes(window.scan.valid_bytes)
                yield window
            self._walk.end_segment()


def _with_records(window: SegmentWindow) -> npt.NDArray[np.bool_] | None:
    """Mask the batches that are decoded; None for all."""
    is_control = window.scan.headers.is_control
    return ~is_control if is_control.any() else None
