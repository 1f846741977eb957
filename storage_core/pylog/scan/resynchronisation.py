"""Where sound batches go on behind a batch that is wrong.

Two things lead on. The size of the wrong batch: where it ends exactly at a sound one, or at the end
of what is read, its own bytes are all that is lost. And a search, byte by byte, for what could be a
header with an offset that fits, has a right checksum, and is followed as a batch of the log is: a
record's value may well hold the image of a batch, but what follows there is the rest of the record.

The search comes first, inside the size that the wrong batch claims: a size field that has grown by
just another batch's size would hide that one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import CorruptRecordError
from pylog.record.batch_layout import (
    HEADER_SIZE_UP_TO_MAGIC,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
)
from pylog.scan.batch_walk import has_valid_checksum, read_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.byte_source import ByteSource
    from pylog.scan.batch_walk import PositionedHeader

_CHUNK = 1 << 20
_NEAR = 1 << 31
_CHECKSUM_BUDGET = 1 << 30
"""Bytes that one search checks at the most: a file made of headers alone must not take for ever."""

_STEPS = 1 << 16


def possible_headers(
    source: ByteSource, position: int, end: int, next_offset: int
) -> Iterator[int]:
    """Yield where bytes could be a header with an offset a little above ``next_offset``.

    Parameters
    ----------
    source
        A ``.log`` file.
    position, end
        Headers that begin at ``position`` or behind and lie before ``end`` are looked for.
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
        for byte in range(8):
            offsets = (offsets << np.uint64(8)) | data[byte : byte + starts]
        plausible &= offsets - np.uint64(next_offset) < _NEAR
        yield from (position + np.flatnonzero(plausible)).tolist()
        position += starts


def find_next_batch(
    source: ByteSource,
    position: int,
    end: int,
    *,
    lowest_offset: int,
    limit_offset: int | None = None,
) -> int:
    """Return where the next sound batch begins, ``end`` if there is none.

    Parameters
    ----------
    source
        A ``.log`` file.
    position
        Where the wrong batch begins.
    end
        Byte behind the last one to look at.
    lowest_offset
        The offset after the last sound batch before the wrong one.
    limit_offset
        Records of this file are below; None if that is not known.
    """
    search = _Search(source, end, lowest_offset, limit_offset)
    boundary = search.end_of(position)
    limit = end if boundary is None else boundary
    for candidate in possible_headers(source, position + 1, limit, lowest_offset):
        if search.is_exhausted:
            break
        if search.leads_on(candidate, boundary):
            return candidate
    return limit


class _Search:
    """One search; counts the bytes it has checked."""

    def __init__(
        self, source: ByteSource, end: int, lowest_offset: int, limit_offset: int | None
    ) -> None:
        self._source = source
        self._end = end
        self._lowest = lowest_offset
        self._limit = limit_offset
        self._budget = _CHECKSUM_BUDGET

    @property
    def is_exhausted(self) -> bool:
        return self._budget <= 0

    def end_of(self, position: int) -> int | None:
        """Return the end of the batch at ``position`` if the log goes on there, else None."""
        found = self._header(position)
        if found is None:
            return None
        if found.end_position == self._end or self._sound(found.end_position, self._lowest):
            return found.end_position
        return None

    def leads_on(self, candidate: int, boundary: int | None) -> bool:
        """Whether the batch at ``candidate`` is sound and one of the log's own."""
        found = self._sound(candidate, self._lowest)
        if found is None:
            return False
        if boundary is not None:
            return self._chain_reaches(found, boundary)
        if found.end_position == self._end:
            return True
        # The one behind may be wrong, too: it suffices that it has a header that fits.
        following = self._header(found.end_position)
        if following is None:
            return self._ends_in(found)
        gap = following.header.offset - found.header.next_offset
        return 0 <= gap < _NEAR

    def _chain_reaches(self, found: PositionedHeader, boundary: int) -> bool:
        for _ in range(_STEPS):
            if found.end_position >= boundary:
                return found.end_position == boundary
            following = self._sound(found.end_position, found.header.next_offset)
            if following is None:
                return False
            found = following
        return False

    def _ends_in(self, found: PositionedHeader) -> bool:
        """Whether zeros, or a batch that the end cuts, stand behind a batch."""
        rest = self._end - found.end_position
        after = self._source.read_at(found.end_position, min(HEADER_SIZE_UP_TO_MAGIC, rest))
        if len(after) < HEADER_SIZE_UP_TO_MAGIC or not any(after):
            return True
        offset = int.from_bytes(after[:8], "big", signed=True)
        return after[MAGIC_OFFSET] <= MAGIC_VALUE_V2 and offset == found.header.next_offset

    def _header(self, position: int) -> PositionedHeader | None:
        try:
            return read_header(self._source, position, self._end)
        except CorruptRecordError:
            return None

    def _sound(self, position: int, lowest: int) -> PositionedHeader | None:
        found = self._header(position)
        if found is None or not lowest <= found.header.offset <= found.header.last_offset:
            return None
        if self._limit is not None and found.header.last_offset >= self._limit:
            return None
        self._budget -= found.header.size_bytes
        return found if has_valid_checksum(self._source, found) else None
