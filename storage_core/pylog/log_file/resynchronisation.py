"""Where sound batches go on after a batch that is wrong.

Three things lead to it. Sizes: where the wrong batch ends exactly at a sound one, or at the end of
what is read, its own bytes are all that is lost. Its checksum: where only its size is wrong, it is
that of the bytes up to a sound batch. And, where neither does, a search for what could be a header
with an offset that fits, has a right checksum, and is followed as a batch of the log is: a record's
value may well hold the image of a batch, but what follows there is the rest of the record.

A size that leads to a sound batch is not the last word: one that has grown by just the size of the
batch after it would hide that one, and one that has shrunk may lead into its own batch. There the
checksum decides.

What a hostile value can do: the images of batches in it are taken for batches of the log where

* damage, or a crash, has cost its batch the checksum, its size leads to no sound batch (of the two
  one is damaged, too), and the images go up to the end, are more than 64 in a row, or are followed
  by bytes that could be the header of the next batch;
* or damage has cost its batch the size alone, and the batch goes on for more than 1 MiB after the
  first image, or its wrong size leads to more than 64 images in a row.

Their offsets have to fit in between those around them, and the batch that holds them is reported
as damaged all the same. An image in a batch that ends where its size says, before a sound one, is
never taken for a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.log_file.possible_headers import possible_headers
from pylog.log_file.running_checksum import RunningChecksum
from pylog.log_file.sound_batches import SOUND_STEPS, SoundBatches

if TYPE_CHECKING:
    from pylog.files.byte_source import ByteSource

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
    """Return where the next sound batch begins, ``end`` if there is none.

    Parameters
    ----------
    source
        A ``.log`` file.
    position
        Where the wrong batch begins.
    end
        The byte after the last one to look at.
    lowest_offset
        The offset after the last sound batch before the wrong one.
    limit_offset
        Records of this file are below; None if that is not known.
    searched_bytes
        How far after ``position`` a batch may begin that no size leads to; None for no bound.
    """
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
    """Return the batch before ``limit`` that the wrong one at ``position`` hides, None if none.

    Sizes lead to the boundary. They are wrong where the checksum is that of the bytes up to a batch
    before it, from which sound batches lead to the boundary: all those bytes are proved then.
    """
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
    """Return where the wrong batch at ``position`` ends, which sizes say is at ``boundary``.

    A size that has shrunk may lead to the image of a batch inside its own batch. Then the checksum
    is that of the bytes up to a later batch, which is reached from the image or found by search.
    """
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
    """Return the batch after the wrong one at ``position``, whose size leads nowhere.

    None if there is none before ``limit``. Where the checksum is that of the bytes up to more than
    one place, the last of them counts: the writer of a batch can make it that of its beginning,
    too.
    """
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
