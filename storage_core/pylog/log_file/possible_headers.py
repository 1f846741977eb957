"""Where bytes could be a batch header: the candidates of a byte-by-byte search.

A few bytes are looked at: a magic of 0 to 2, an offset a little above the one that is expected, and
a size above 0. What they belong to may be anything, and is checked by whoever searches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.record.batch_layout import (
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
    OFFSET_LENGTH,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.byte_source import ByteSource

LARGEST_OFFSET_STEP = 1 << 31
"""How far above the expected offset a header's may be (exclusive)."""

_CHUNK = 1 << 20
_SIGN_BIT = 0x80


def possible_headers(
    source: ByteSource, position: int, end: int, next_offset: int
) -> Iterator[int]:
    """Yield where bytes could be a header with an offset a little above ``next_offset``.

    Parameters
    ----------
    source
        A ``.log`` file.
    position, end
        Headers that begin at or after ``position`` and lie before ``end`` are looked for.
    next_offset
        The lowest offset that fits.
    """
    next_offset = max(0, next_offset)
    while end - position >= HEADER_SIZE_UP_TO_MAGIC:
        data = np.frombuffer(source.read_at(position, min(_CHUNK, end - position)), np.uint8)
        starts = data.size - HEADER_SIZE_UP_TO_MAGIC + 1
        if starts < 1:
            return
        plausible = data[MAGIC_OFFSET : MAGIC_OFFSET + starts] <= MAGIC_VALUE_V2
        offsets = np.zeros(starts, dtype=np.uint64)
        for byte in range(OFFSET_LENGTH):
            offsets = (offsets << np.uint64(8)) | data[byte : byte + starts]
        plausible &= offsets - np.uint64(next_offset) < LARGEST_OFFSET_STEP
        # Else every byte of a tail of zeros could be a header with offset 0.
        plausible &= data[OFFSET_LENGTH : OFFSET_LENGTH + starts] < _SIGN_BIT
        any_size = data[OFFSET_LENGTH : OFFSET_LENGTH + starts].copy()
        for byte in range(OFFSET_LENGTH + 1, LOG_OVERHEAD):
            any_size |= data[byte : byte + starts]
        plausible &= any_size > 0
        yield from (position + np.flatnonzero(plausible)).tolist()
        position += starts
