"""All batches of a log in one walk: each window is read, checksummed and decoded once.

Whoever looks at batches is shown the same windows. What is damaged is left out of them and noted,
in two reports: what a broker that scans the log finds as well, and batches whose checksum is right
while their records break the format, which only whoever decodes them notices. Those stay in the
windows, since their headers are covered by the checksum.

Decoding makes no columns: the kernels walk the records, and give none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.decode import RecordDecoder
from pylog.log_file.segment_windows import DEFAULT_WINDOW_BYTES, WindowMemory
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.damage import DamageReport
from pylog.reading.read_options import ReadOptions
from pylog.reading.skipped_batches import RefusedBatches, SoundDecode
from pylog.reading.slicing import open_slice, slice_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pylog.reading.log_view import LogView
    from pylog.reading.segments import LogSegmentView
    from pylog.record.window import Window

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
    ) -> None:
        self.view = view
        self.damage = damage
        # batches whose records cannot be decoded; complete once a segment has been walked
        self.refused = DamageReport(is_logged=False)
        self.options = ReadOptions(
            window_bytes=window_bytes, max_decompressed_bytes=max_decompressed_bytes
        )
        self._on_bytes = on_bytes
        self._refusing = RefusedBatches(self.refused)
        self.memory = WindowMemory()
        self._decoder = RecordDecoder(
            view.topic_partition, record_schema([]), max_decompressed_bytes=max_decompressed_bytes
        )

    def __iter__(self) -> Iterator[SegmentWalk]:
        """Yield the segments in offset order; each is to be walked before the next is asked for."""
        lowest_offset = 0
        for index in range(len(self.view.segments)):
            segment = SegmentWalk(self, index, lowest_offset)
            yield segment
            lowest_offset = segment.next_offset
        self._refusing.finish()

    def check_records(self, segment: SegmentWalk, window: Window) -> None:
        """Decode the data batches of a window, and note those that cannot be."""
        self._refusing.enter(segment.slice, window)
        is_control = window.headers.is_control
        data = window.select(~is_control if is_control.any() else None)

        def decode(part: Window) -> Iterator[object]:
            return self._decoder.decode(part, *_NO_OFFSETS)

        for _ in SoundDecode(self._decoder, self._refusing, segment.slice).batches(data, decode):
            pass
        self._refusing.leave(window)

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

    def __iter__(self) -> Iterator[Window]:
        """Yield windows in file order."""
        opened = open_slice(self.slice, self._walk.damage, self._lowest_offset)
        if opened is None:
            return
        with opened as source:
            windows = CheckedWindows(
                source,
                self.slice,
                self._walk.options,
                lowest_offset=self._lowest_offset,
                damage=self._walk.damage,
                memory=self._walk.memory,
            )
            for window in windows:
                if window.end_position >= self.slice.end_position:
                    source.ensure_same()
                self._walk.check_records(self, window)
                self.next_offset = windows.next_offset
                self.end_position = window.end_position
                self._walk.note_bytes(window.size_bytes)
                yield window
            self._walk.end_segment()
