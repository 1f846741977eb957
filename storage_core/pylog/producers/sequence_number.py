"""Arithmetic of producer sequence numbers, which wrap from 2147483647 to 0.

Source: DefaultRecordBatch.incrementSequence, decrementSequence, lastSequence (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.model import NO_SEQUENCE

if TYPE_CHECKING:
    from pylog.record.batch_header import BatchHeader


MAX_SEQUENCE = 2**31 - 1


def increment_sequence(sequence: int, increment: int) -> int:
    """Return the sequence number ``increment`` records after ``sequence``."""
    return (sequence + increment) % (MAX_SEQUENCE + 1)


def decrement_sequence(sequence: int, decrement: int) -> int:
    """Return the sequence number ``decrement`` records before ``sequence``."""
    return (sequence - decrement) % (MAX_SEQUENCE + 1)


def is_next_sequence(last_sequence: int, next_sequence: int) -> bool:
    """Return whether ``next_sequence`` follows; after `NO_SEQUENCE` comes 0."""
    if last_sequence == MAX_SEQUENCE:
        return next_sequence == 0
    return next_sequence == last_sequence + 1


def last_sequence_of(header: BatchHeader) -> int:
    """Return the sequence number of a batch's last record; `NO_SEQUENCE` if it has none."""
    if header.base_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return increment_sequence(header.base_sequence, header.last_offset_delta)
