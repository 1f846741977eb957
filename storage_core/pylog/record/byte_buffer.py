"""A byte buffer that grows and is used again, so that decompression touches the same pages."""

from __future__ import annotations

from pylog.errors import InvalidRecordError

# The one limit on what a batch of records may take: its size, decompressed.
#
# A few kilobytes can decompress to gigabytes, so whoever decompresses stops at a limit. A batch
# that was never compressed needs its size in memory just as well, so the limit is for it, too.


DEFAULT_MAX_DECOMPRESSED_BYTES = 256 << 20
"""Most bytes one batch may have, decompressed, unless the caller says otherwise (256 MiB)."""


RAISE_THE_OPTION = (
    "; if the batch is to be trusted, raise max_decompressed_bytes (in Spark maxDecompressedBytes, "
    "on the command line --max-decompressed-bytes)"
)
SEND_LESS = "; send smaller batches"


_NOT_SHRUNK_BYTES = 1 << 16


def is_surely_over(size_bytes: int, limit: int) -> bool:
    """Whether a batch of that size in its file is over the limit, whatever its codec."""
    return size_bytes > limit + limit // 8 + _NOT_SHRUNK_BYTES


def over_limit(what: str, limit: int, advice: str = RAISE_THE_OPTION) -> str:
    """Return the text for a batch that exceeds ``limit`` bytes."""
    return f"{what}, more than the limit of {limit} bytes{advice}"


_GROWN_BYTES = 1 << 22


class ByteBuffer:
    """Bytes appended one after the other into memory that is kept between uses.

    Invariant: ``memory[:length]`` is what was appended since the last `clear`. Views handed out
    are valid until the next `clear` or append. One thread.
    """

    __slots__ = ("_advice", "_batch_start", "_ready", "_view", "length", "limit", "memory")

    def __init__(self, limit: int, advice: str = RAISE_THE_OPTION) -> None:
        self.limit = limit
        self._advice = advice
        self.memory = bytearray(1 << 16)
        self._view = memoryview(self.memory)
        self.length = 0
        self._batch_start = 0
        self._ready = 0  # up to here there is memory, and the batch within its limit
        self._find_ready()

    def clear(self) -> None:
        """Forget the content; keep the memory."""
        self.length = 0
        self._batch_start = 0
        self._find_ready()

    def open_batch(self) -> int:
        """Return the position where the next batch begins; `limit` counts from here."""
        self._batch_start = self.length
        self._find_ready()
        return self.length

    def reserve(self, count: int) -> memoryview:
        """Return a writable view of at least ``count`` bytes after the content."""
        if self.length + count > self._ready:
            if count > self.room():
                self.refuse(count)
            self._grow(self.length + count)
        return self._view[self.length :]

    def reserve_up_to(self, count: int) -> memoryview:
        """Return a writable view for a stream of unknown length, one byte over the limit."""
        if self.length + count > self._ready:
            room = self.room()
            if room < 0:
                self.refuse(0)
            count = min(count, room + 1)
            self._grow(self.length + count)
        return self._view[self.length : self.length + count]

    def _grow(self, needed: int) -> None:
        if needed > len(self.memory):
            # Doubled, so that bytes are seldom moved. The last time to what the batch may need at
            # the most: a second copy of half of that is bearable, one of all of it is not. At least
            # to what a group of batches takes: memory that is not touched costs nothing.
            doubled, most = 2 * len(self.memory), self._batch_start + self.limit + 1
            doubled = max(doubled, _GROWN_BYTES)
            size = most if 2 * doubled > most else doubled
            # Views of the old memory may be alive, so it cannot be resized in place.
            grown = bytearray(max(needed, size))
            grown[: self.length] = self._view[: self.length]
            self.memory = grown
            self._view = memoryview(grown)
            self._find_ready()

    def _find_ready(self) -> None:
        self._ready = min(len(self.memory), self._batch_start + self.limit)

    def room(self) -> int:
        """Return how many more bytes the current batch may have."""
        return self.limit - (self.length - self._batch_start)

    def refuse(self, count: int) -> None:
        """Raise the error for a batch that exceeds `limit` with ``count`` bytes more."""
        size = self.length - self._batch_start + count
        raise InvalidRecordError(
            over_limit(f"batch has at least {size} bytes of records", self.limit, self._advice)
        )

    def advance(self, count: int) -> None:
        """Count ``count`` bytes of the reserved view as content."""
        self.length += count

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Append a copy of ``data``."""
        count = len(data)
        self.reserve(count)[:count] = data
        self.length += count

    def view(self, start: int, end: int) -> memoryview:
        """Return a read-only view of the bytes ``[start, end)``."""
        return self._view[start:end].toreadonly()
