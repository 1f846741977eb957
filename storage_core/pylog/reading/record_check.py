"""Whether the records of batches can be decoded: their checksums say nothing about that.

Decoding makes no columns: the kernels walk the records, and give none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.decode import RecordDecoder
from pylog.reading.damage import DamageReport
from pylog.reading.refused_batches import RefusedBatches, decode_sound
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from pylog.columnar.decode import DecodedGroup
    from pylog.model import TopicPartition
    from pylog.reading.task_range import SegmentSlice
    from pylog.record.batch_scan import Window

_NO_OFFSETS = 0, 0
"""The range of the records that are given: none is."""


class RecordCheck:
    """Decodes the data batches of a log, window by window. One thread."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        *,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        note: Callable[[Window, DecodedGroup], None] | None = None,
    ) -> None:
        # what cannot be decoded; complete once a segment has ended
        self.damage = DamageReport(is_logged=False)
        self._refusing = RefusedBatches(self.damage)
        self._note = note  # is called with each group that can be decoded
        self._decoder = RecordDecoder(
            topic_partition, record_schema([]), max_decompressed_bytes=max_decompressed_bytes
        )

    def refused_in(self, segment_slice: SegmentSlice, window: Window) -> npt.NDArray[np.bool_]:
        """Return which batches of the next window cannot be decoded, and note them."""
        self._refusing.enter(segment_slice, window)
        is_control = window.headers.is_control
        data = window.select(~is_control if is_control.any() else None)

        def decode(part: Window) -> Iterator[object]:
            for group in self._decoder.decode_groups(part, *_NO_OFFSETS):
                if self._note is not None:
                    self._note(part, group)
                yield group

        for _ in decode_sound(self._decoder, self._refusing, segment_slice, data, decode):
            pass
        self._refusing.leave(window)
        refused = np.zeros(len(window.headers), dtype=np.bool_)
        positions = window.headers.positions + window.file_position
        for start, end in self._refusing.in_window:
            refused |= (positions >= start) & (positions < end)
        return refused & ~is_control

    def end_segment(self) -> None:
        """Note what was refused at the end of a segment."""
        self._refusing.finish()
