"""Decoding that leaves out the batches whose records break the format.

Their checksum is right, and so where they end is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np

from pylog.errors import CorruptRecordError, InvalidRecordError, MisplacedBatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pylog.reading.refused_batches import RefusedBatches
    from pylog.reading.scan_task import SegmentSlice
    from pylog.record.window import Window

_Decoded = TypeVar("_Decoded")

_AFTER_DAMAGE = 16
"""Batches that are decoded together after one that was refused, twice as many each time they are
sound: every refusal costs what was decoded with it."""


class _Decoder(Protocol):
    """What says after an error how many batches of the call before it were decoded."""

    @property
    def finished_batches(self) -> int: ...


class SoundDecode(NamedTuple):
    """Decodes batches of one window.

    Attributes
    ----------
    decoder
        What `batches` decodes with; it says how far it came.
    refused
        Where what is left out is noted.
    segment_slice
        Where the batches lie.
    """

    decoder: _Decoder
    refused: RefusedBatches
    segment_slice: SegmentSlice

    def batches(
        self, window: Window, decode: Callable[[Window], Iterable[_Decoded]]
    ) -> Iterator[_Decoded]:
        """Yield what ``decode`` does of the sound batches, part by part.

        Raises
        ------
        LogStorageError
            One that is not about a batch.
        """
        start, size = 0, len(window.headers)
        while start < len(window.headers):
            part = window.select(slice(start, start + size))
            try:
                for batch in decode(part):
                    self.refused.settle(window)  # the first of this part is sound, then
                    yield batch
            except (CorruptRecordError, InvalidRecordError) as error:
                if error.position is None:
                    raise
                bad = int(
                    np.searchsorted(part.headers.positions, error.position - part.file_position)
                )
                done = self.decoder.finished_batches
                first = bad
                if isinstance(error, MisplacedBatchError) and bad > done:
                    first = bad - 1  # nobody knows which of the two is wrong
                start += done
                if first > done:
                    size = first - done  # what is before may be sound; then this one once more
                    continue
                if done:
                    self.refused.settle(window)
                self.refused.add(
                    self.segment_slice,
                    window,
                    (part.position_of(first), error.position),
                    error.reason,
                )
                start += bad + 1 - done
                size = _AFTER_DAMAGE
            else:
                self.refused.settle(window)
                start += len(part.headers)
                size *= 2
