"""A v2 batch that records are still added to, and the buffer that it and those after it lie in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.kernels import encode_records as kernel

if TYPE_CHECKING:
    import numpy.typing as npt

CHUNK_BYTES = 1 << 19
"""Bytes of batches that one kernel call writes; a larger batch makes the buffer grow."""


class OpenBatch:
    """What `RecordEncoder` adds records to, one partition's after the other. One thread.

    Attributes
    ----------
    buffer
        uint8; batches that have got full lie there, then the open one, whose header is still to
        be written.
    fields
        int64: where it lies and what it holds; see `pylog.kernels.encode_records`.
    """

    __slots__ = ("buffer", "fields")

    def __init__(self) -> None:
        self.buffer: npt.NDArray[np.uint8] = np.empty(CHUNK_BYTES, dtype=np.uint8)
        self.fields: npt.NDArray[np.int64] = np.zeros(kernel.OPEN_FIELDS, dtype=np.int64)

    @property
    def record_count(self) -> int:
        """How many records it has; without any there is no batch."""
        return int(self.fields[kernel.OPEN_RECORDS])

    @property
    def size_bytes(self) -> int:
        """Its bytes so far."""
        if not self.record_count:
            return 0
        return int(self.fields[kernel.OPEN_END] - self.fields[kernel.OPEN_START])

    def move_to_front(self) -> None:
        """Put it at the start of the buffer, where it can grow: over batches that were written."""
        start = int(self.fields[kernel.OPEN_START])
        if self.record_count and start:
            size = self.size_bytes
            self.buffer[:size] = self.buffer[start : start + size]
            self.fields[kernel.OPEN_START] = 0
            self.fields[kernel.OPEN_END] = size

    def make_room(self, size_bytes: int) -> None:
        """Have a larger buffer, for a batch of at least ``size_bytes``; this one is in front."""
        grown = np.empty(max(2 * self.buffer.size, size_bytes + kernel.SPARE_BYTES), dtype=np.uint8)
        size = self.size_bytes
        grown[:size] = self.buffer[:size]
        self.buffer = grown

    def give_back_memory(self) -> None:
        """Have a new buffer, none of which is in memory yet; nothing may be open."""
        self.buffer = np.empty(CHUNK_BYTES, dtype=np.uint8)
