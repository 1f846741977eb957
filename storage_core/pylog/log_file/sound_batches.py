"""Which batches are sound by themselves, and what follows them: the evidence of a search.

A batch is sound if its checksum is right and its offsets fit. A batch of the log and the
image of one in a record's value may both pass that, so a search looks at what follows, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError
from pylog.log_file.batch_walk import has_valid_checksum, read_header
from pylog.log_file.possible_headers import LARGEST_OFFSET_STEP
from pylog.record.batch_layout import (
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
    OFFSET_LENGTH,
    RECORD_OVERHEAD_V0,
)

if TYPE_CHECKING:
    from pylog.files.byte_source import ByteSource
    from pylog.log_file.batch_walk import PositionedHeader

SOUND_STEPS = 64
"""How many sound batches are followed: no value is expected to hold images of more in a row."""

_STEPS = 16
"""How many wrong batches in a row are followed by their sizes."""

_CHECKSUM_BUDGET = 1 << 30
"""Bytes that one search checks at the most: a file made of headers alone must not take for ever."""

_HIGHEST_OFFSET = 2**63 - 1


class SoundBatches:
    """Batches of one file that a search takes for sound, and where sizes lead from one to the next.

    Counts the bytes whose checksum it computes, so that a search comes to an end. One thread.

    Parameters
    ----------
    source
        A ``.log`` file.
    end
        The byte after the last one to look at.
    lowest_offset
        The offset after the last sound batch before the search begins.
    limit_offset
        Records of this file are below; None if that is not known.
    """

    def __init__(
        self, source: ByteSource, end: int, lowest_offset: int, limit_offset: int | None
    ) -> None:
        self.source = source
        self.end = end
        self.lowest = lowest_offset
        self._limit = _HIGHEST_OFFSET if limit_offset is None else limit_offset
        self._budget = _CHECKSUM_BUDGET

    @property
    def is_exhausted(self) -> bool:
        """Whether no more checksums are to be computed."""
        return self._budget <= 0

    def sound(self, position: int, lowest: int | None = None) -> PositionedHeader | None:
        """Return the batch at ``position`` if its checksum is right and its offsets fit."""
        lowest = self.lowest if lowest is None else lowest
        batch = self._header(position)
        if batch is None or not lowest <= batch.header.offset <= batch.header.last_offset:
            return None
        if batch.header.last_offset >= self._limit:
            return None
        return batch if self._has_valid_checksum(batch) else None

    def certain_end(self, position: int) -> int | None:
        """Return the end of the batch at ``position`` if its checksum is right, else None."""
        batch = self._header(position)
        if batch is None or not self._has_valid_checksum(batch):
            return None
        return batch.end_position

    def own_offset(self, position: int) -> int:
        """Return the offset that a wrong batch claims, -1 if it cannot be right.

        In formats v0 and v1 nothing follows a value: the image of a batch in it is followed
        by the log's next batch, and only offsets distinguish the two.
        """
        if not self._may_begin_at(position, self.lowest):
            return -1
        return int.from_bytes(self.source.read_at(position, OFFSET_LENGTH), "big")

    def boundary_of(self, position: int) -> int | None:
        """Return where sizes lead from a wrong batch to a sound one or the end, else None.

        Wrong batches on the way have headers that fit.
        """
        for _ in range(_STEPS):
            after = self._end_by_size(position)
            if after is None or after == self.end or self.sound(after) is not None:
                return after
            if not self._may_begin_at(after, self.lowest):
                return None
            position = after
        return None

    def leads_to(self, batch: PositionedHeader, position: int) -> bool:
        """Whether sound batches lead from one of them exactly to ``position``."""
        following: PositionedHeader | None = batch
        while following is not None and following.end_position < position:
            following = self.sound(following.end_position, following.header.next_offset)
        return following is not None and following.end_position == position

    def leads_on(self, batch: PositionedHeader) -> bool:
        """Whether what follows a sound batch is what follows a batch of a log.

        Sound batches, and after them the end, or something that still has what distinguishes a
        header from the rest of a record: an offset that fits, zeros, or a size that leads on.
        """
        for _ in range(SOUND_STEPS):
            if batch.end_position == self.end:
                return True
            following = self.sound(batch.end_position, batch.header.next_offset)
            if following is None:
                break
            batch = following
        else:
            return True
        position, next_offset = batch.end_position, batch.header.next_offset
        if self.certain_end(position) is not None:
            return False  # a batch of the log, that begins below the end of the one in question
        if self._may_begin_at(position, next_offset) or self._is_rest_of_log(position, next_offset):
            return True
        # A damaged one that claims offsets of the one in question is a batch of the log, too.
        claims_its_offsets = self._may_begin_at(position, self.lowest)
        return not claims_its_offsets and self.boundary_of(position) is not None

    def _is_rest_of_log(self, position: int, next_offset: int) -> bool:
        """Whether zeros stand at ``position``, or a header's first bytes and then the end.

        Less than an offset may be the rest of a record, too: it is better to leave a batch out
        here, and report it, than to take one from a value.
        """
        rest = self.end - position
        start = self.source.read_at(position, min(LOG_OVERHEAD, rest))
        if len(start) == LOG_OVERHEAD and not any(start):
            return True
        is_torn = OFFSET_LENGTH <= rest < HEADER_SIZE_UP_TO_MAGIC
        return is_torn and int.from_bytes(start[:OFFSET_LENGTH], "big") == next_offset

    def _may_begin_at(self, position: int, lowest: int) -> bool:
        """Whether a header with an offset at or a little above ``lowest`` begins there."""
        header = self.source.read_at(position, min(HEADER_SIZE_UP_TO_MAGIC, self.end - position))
        if len(header) < HEADER_SIZE_UP_TO_MAGIC or header[MAGIC_OFFSET] > MAGIC_VALUE_V2:
            return False
        return 0 <= int.from_bytes(header[:OFFSET_LENGTH], "big") - lowest < LARGEST_OFFSET_STEP

    def _end_by_size(self, position: int) -> int | None:
        """Return where the entry at ``position`` ends by its size, whatever its magic says."""
        start = self.source.read_at(position, min(LOG_OVERHEAD, self.end - position))
        size = int.from_bytes(start[OFFSET_LENGTH:], "big", signed=True)
        if len(start) < LOG_OVERHEAD or size < RECORD_OVERHEAD_V0:
            return None
        after = position + LOG_OVERHEAD + size
        return after if after <= self.end else None

    def _has_valid_checksum(self, batch: PositionedHeader) -> bool:
        self._budget -= batch.header.size_bytes
        return has_valid_checksum(self.source, batch)

    def _header(self, position: int) -> PositionedHeader | None:
        try:
            return read_header(self.source, position, self.end)
        except CorruptRecordError:
            return None
