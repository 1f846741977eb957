"""The checksum of a batch whose size is not known: held against more and more bytes."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from pylog.native.checksum import crc32c
from pylog.record.batch_layout import (
    ATTRIBUTES_OFFSET,
    CRC_LENGTH,
    CRC_OFFSET,
    LEGACY_CRC_OFFSET,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
)

if TYPE_CHECKING:
    from pylog.files.byte_source import ByteSource

_CHUNK = 1 << 20


class RunningChecksum:
    """Tells where a batch may end, by the checksum in its header. One thread.

    Parameters
    ----------
    source
        A ``.log`` file.
    position, end
        Where the batch begins, and the end of the bytes that may be its header (exclusive).
    """

    def __init__(self, source: ByteSource, position: int, end: int) -> None:
        header = source.read_at(position, min(ATTRIBUTES_OFFSET, end - position))
        self._is_known = len(header) == ATTRIBUTES_OFFSET
        is_v2 = self._is_known and header[MAGIC_OFFSET] == MAGIC_VALUE_V2
        at = CRC_OFFSET if is_v2 else LEGACY_CRC_OFFSET
        self._stored = int.from_bytes(header[at : at + CRC_LENGTH], "big")
        self._update = crc32c if is_v2 else zlib.crc32
        self._source = source
        self._position = position + (ATTRIBUTES_OFFSET if is_v2 else MAGIC_OFFSET)
        self._value = 0

    def is_of_bytes_up_to(self, end: int) -> bool:
        """Whether the stored checksum is that of the bytes before ``end``; it never goes back."""
        if not self._is_known or end <= self._position:
            return False
        while self._position < end:
            data = self._source.read_at(self._position, min(_CHUNK, end - self._position))
            if not data:
                self._is_known = False
                return False
            self._value = self._update(data, self._value)
            self._position += len(data)
        return self._value == self._stored
