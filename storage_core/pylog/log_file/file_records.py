"""The ``.log`` file of a segment that we own: appended to at its end, cut, read by position.

With ``preallocate`` the file is longer than its content: it is extended with zeros when it is made
and cut to its content when the segment is rolled or closed. `size_bytes` is that of the content.

Source: FileRecords (Kafka 4.3).
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from pylog.errors import KafkaStorageError, SegmentVanishedError
from pylog.files import disk
from pylog.files.byte_source import ByteSource
from pylog.files.owned_file import OwnedFile
from pylog.log_file.batch_walk import PositionedHeader, walk_headers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.durable_io import DurableIO

_LOGGER = logging.getLogger(__name__)
MAX_FILE_BYTES = 2**31 - 1


class FileRecords(OwnedFile, ByteSource):
    """The batches of one file.

    Invariant: bytes below `size_bytes` were appended in whole and are never written again, so any
    number of threads may read them while one appends.
    """

    __slots__ = ("_size_bytes",)

    def __init__(
        self, io: DurableIO, path: str, *, is_new: bool = False, preallocated_bytes: int = 0
    ) -> None:
        super().__init__(path, io)
        if is_new:
            file = self._open(create=True)
            self._size_bytes = 0
            if preallocated_bytes:
                file.truncate(preallocated_bytes)
        else:
            self._size_bytes = _size_of(path)

    @property
    def size_bytes(self) -> int:
        """Length of the content."""
        return self._size_bytes

    def size(self) -> int:
        """Return the length of the content, which is what a reader may read."""
        return self._size_bytes

    def append(self, records: bytes | bytearray | memoryview) -> int:
        """Write whole batches at the end; return the position where they begin."""
        position = self._size_bytes
        if position + len(records) > MAX_FILE_BYTES:
            msg = (
                f"appending {len(records)} bytes at {position} of {self.path} would pass "
                f"{MAX_FILE_BYTES} bytes"
            )
            raise ValueError(msg)
        try:
            self._file.write_at(position, records)
        except KafkaStorageError:
            self.revert_to(position)
            raise
        self._size_bytes = position + len(records)
        return position

    def take_over(self, path: str) -> None:
        """Rename another file of batches to this one's name, and take over its content."""
        with self._lock:
            self._io.replace(path, self.path)
            self.release()
            self._size_bytes = _size_of(self.path)

    def truncate_to(self, size_bytes: int) -> int:
        """Cut the content (and what was preallocated) to ``size_bytes``; return how much went."""
        if not 0 <= size_bytes <= self._size_bytes:
            msg = f"cannot truncate {self.path} of {self._size_bytes} bytes to {size_bytes}"
            raise ValueError(msg)
        removed = self._size_bytes - size_bytes
        if size_bytes < self._file.size():
            self._file.truncate(size_bytes)
        self._size_bytes = size_bytes
        return removed

    def trim(self) -> bool:
        """Cut off what was preallocated after the content; return whether there was something."""
        if not self._is_in_use or self._file.size() == self._size_bytes:
            return False
        self.truncate_to(self._size_bytes)
        return True

    def sync(self) -> None:
        """Force the content to disk."""
        self._file.sync()  # also of a file not written here: its last writer may have crashed

    def read_at(self, position: int, length: int) -> bytes:
        """Return content bytes ``[position, position + length)``, fewer at the end."""
        return self._file.read_at(position, max(0, min(length, self._size_bytes - position)))

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill ``buffer`` from ``position`` on; return how many bytes of content there were."""
        length = max(0, min(len(buffer), self._size_bytes - position))
        return self._file.read_into(position, buffer[:length])

    def next_data(self, position: int) -> int | None:
        """Return ``position``: content has no holes worth looking for."""
        return position if position < self._size_bytes else None

    def batches_from(
        self, position: int = 0, *, checks_order: bool = True
    ) -> Iterator[PositionedHeader]:
        """Yield the header and position of every whole batch from a batch boundary on.

        Kafka does not check that offsets go up.
        """
        lowest_offset = 0 if checks_order else None
        return walk_headers(self, position, self._size_bytes, lowest_offset=lowest_offset)

    def find_batch(
        self, target_offset: int, position: int = 0, *, checks_order: bool = True
    ) -> PositionedHeader | None:
        """Return the first batch whose last offset is at or above a target, None if none is."""
        for batch in self.batches_from(position, checks_order=checks_order):
            if batch.header.last_offset >= target_offset:
                return batch
        return None

    def revert_to(self, position: int) -> None:
        """Take back an append that failed, so that nobody sees a half of it."""
        self._size_bytes = position
        with suppress(KafkaStorageError):
            self._file.truncate(position)


def _size_of(path: str) -> int:
    try:
        return disk.stat(path).st_size
    except FileNotFoundError as error:
        reason = "file is gone since the directory was listed"
        raise SegmentVanishedError(reason, path) from error
    except OSError as error:
        reason = f"cannot stat file: {error.strerror}"
        raise KafkaStorageError(reason, path, errno=error.errno) from error
