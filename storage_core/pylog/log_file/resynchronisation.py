"""Where intact batches continue after a batch that is wrong.

Three things lead to it. Sizes: where the wrong batch ends exactly at an intact one, or at the end
of what is read, its own bytes are all that is lost. Its checksum: where only its size is wrong, it
is that of the bytes up to an intact batch. And, where neither does, a search for what could be a
header with an offset that fits, has a right checksum, and is followed as a batch of the log is: a
record's value may well hold the image of a batch, but what follows there is the rest of the record.

A size that leads to an intact batch is not the last word: one that has grown by just the size of
the batch after it would hide that one, and one that has shrunk may lead into its own batch. There
the checksum decides.

What a hostile value can do: the images of batches in it are taken for batches of the log where

* damage, or a crash, has cost its batch the checksum, its size leads to no intact batch (of the two
  one is damaged, too), and the images go up to the end, are more than 64 in a row, or are followed
  by bytes that could be the header of the next batch;
* or damage has cost its batch the size alone, and the batch continues for more than 1 MiB after the
  first image, or its wrong size leads to more than 64 images in a row.

Their offsets have to fit in between those around them, and the batch that holds them is reported
as damaged all the same. An image in a batch that ends where its size says, before an intact one, is
never taken for a batch.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import CorruptRecordError
from pylog.log_file.batch_walk import HIGHEST_OFFSET, has_valid_checksum, read_header
from pylog.native.checksum import crc32c
from pylog.record.batch_header import (
    ATTRIBUTES_OFFSET,
    CRC_LENGTH,
    CRC_OFFSET,
    HEADER_SIZE_UP_TO_MAGIC,
    LEGACY_CRC_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
    OFFSET_LENGTH,
    RECORD_OVERHEAD_V0,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.byte_source import ByteSource
    from pylog.log_file.batch_walk import PositionedHeader


_CHUNK = 1 << 20


class RunningChecksum:
    """Tells where a batch may end, by the checksum in its header. One thread."""

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


LARGEST_OFFSET_STEP = 1 << 31
"""How far above the expected offset a header's may be (exclusive)."""

_SIGN_BIT = 0x80


def possible_headers(
    source: ByteSource, position: int, end: int, next_offset: int
) -> Iterator[int]:
    """Yield where bytes could be a header with an offset a little above ``next_offset``."""
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


SOUND_STEPS = 64
"""How many intact batches are followed: no value is expected to hold images of more in a row."""

_STEPS = 16
"""How many wrong batches in a row are followed by their sizes."""

_CHECKSUM_BUDGET = 1 << 30
"""Bytes that one search checks at the most: a file made of headers alone must not take for ever."""


class SoundBatches:
    """Batches of one file that a search takes for sound, and where sizes lead from one to the next.

    Counts the bytes whose checksum it computes, so that a search comes to an end. One thread.
    """

    def __init__(
        self, source: ByteSource, end: int, lowest_offset: int, limit_offset: int | None
    ) -> None:
        self.source = source
        self.end = end
        self.lowest = lowest_offset
        self._limit = HIGHEST_OFFSET if limit_offset is None else limit_offset
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
        """Return the offset that a wrong batch claims, -1 if it cannot be right."""
        if not self._may_begin_at(position, self.lowest):
            return -1
        return int.from_bytes(self.source.read_at(position, OFFSET_LENGTH), "big")

    def boundary_of(self, position: int) -> int | None:
        """Return where sizes lead from a wrong batch to an intact one or the end, else None."""
        for _ in range(_STEPS):
            after = self._end_by_size(position)
            if after is None or after == self.end or self.sound(after) is not None:
                return after
            if not self._may_begin_at(after, self.lowest):
                return None
            position = after
        return None

    def leads_to(self, batch: PositionedHeader, position: int) -> bool:
        """Whether intact batches lead from one of them exactly to ``position``."""
        following: PositionedHeader | None = batch
        while following is not None and following.end_position < position:
            following = self.sound(following.end_position, following.header.next_offset)
        return following is not None and following.end_position == position

    def leads_on(self, batch: PositionedHeader) -> bool:
        """Whether what follows an intact batch is what follows a batch of a log."""
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
        """Whether zeros stand at ``position``, or a header's first bytes and then the end."""
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


_PROOF_BYTES = 1 << 20
"""How far after a possible next batch to look for a checksum that proves another one."""


def find_next_batch(
    source: ByteSource,
    position: int,
    end: int,
    *,
    lowest_offset: int,
    limit_offset: int | None = None,
    searched_bytes: int | None = None,
) -> int:
    """Return where the next intact batch begins, ``end`` if there is none."""
    batches = SoundBatches(source, end, lowest_offset, limit_offset)
    # Where the checksum is right, the offset is what is wrong, and the batch ends where it says.
    while (own_end := batches.certain_end(position)) is not None:
        position = own_end
        if position == end or batches.sound(position) is not None:
            return position
    boundary = batches.boundary_of(position)
    limit = end if searched_bytes is None else min(end, position + searched_bytes)
    if boundary is None:
        following = _find_unbounded(batches, position, limit)
        return end if following is None else following
    hidden = _find_hidden(batches, position, min(limit, boundary), boundary)
    if hidden is not None:
        return hidden
    return boundary if boundary == end else _confirmed(batches, position, boundary)


def _find_hidden(batches: SoundBatches, position: int, limit: int, boundary: int) -> int | None:
    """Return the batch before ``limit`` that the wrong one at ``position`` hides, None if none."""
    checksum = RunningChecksum(batches.source, position, batches.end)
    for candidate in possible_headers(batches.source, position + 1, limit, batches.lowest):
        if batches.is_exhausted:
            return None
        batch = batches.sound(candidate)
        if (
            batch is not None
            and checksum.is_of_bytes_up_to(candidate)
            and batches.leads_to(batch, boundary)
        ):
            return candidate
    return None


def _confirmed(batches: SoundBatches, position: int, boundary: int) -> int:
    """Return the end of the damaged batch at ``position``; its size field claims ``boundary``."""
    checksum = RunningChecksum(batches.source, position, batches.end)
    proved, at, lowest = boundary, boundary, batches.lowest
    for _ in range(SOUND_STEPS):
        if at == batches.end:
            return proved
        batch = batches.sound(at, lowest)
        if batch is None:
            break
        at, lowest = batch.end_position, batch.header.next_offset
        if checksum.is_of_bytes_up_to(at):
            proved = at
    else:
        return proved
    until = min(batches.end, boundary + _PROOF_BYTES)
    for candidate in possible_headers(batches.source, at, until, batches.lowest):
        if checksum.is_of_bytes_up_to(candidate) and batches.sound(candidate) is not None:
            proved = candidate
    return proved


def _find_unbounded(batches: SoundBatches, position: int, limit: int) -> int | None:
    """Return the batch after the wrong one at ``position``, whose size leads nowhere."""
    checksum = RunningChecksum(batches.source, position, batches.end)
    # An offset that is just the expected one is right: a batch that claims it again is an image.
    own_offset = batches.own_offset(position)
    proved: int | None = None
    likely: int | None = None
    unlikely: int | None = None
    for candidate in possible_headers(batches.source, position + 1, limit, batches.lowest):
        nearest = likely if proved is None else proved
        if batches.is_exhausted or (nearest is not None and candidate - nearest > _PROOF_BYTES):
            break
        batch = batches.sound(candidate)
        if batch is None:
            continue
        if checksum.is_of_bytes_up_to(candidate):
            proved = candidate
        if proved is not None or likely is not None or not batches.leads_on(batch):
            continue
        if batch.header.offset > own_offset:
            likely = candidate
        elif unlikely is None and own_offset > batches.lowest:
            unlikely = candidate
    ends_far_away = proved is not None and batches.end - proved > _PROOF_BYTES
    if not ends_far_away and checksum.is_of_bytes_up_to(batches.end):
        return None
    return next((each for each in (proved, likely, unlikely) if each is not None), None)
