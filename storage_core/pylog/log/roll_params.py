"""What decides whether a segment is rolled before an append. Source: RollParams (Kafka 4.3)."""

from __future__ import annotations

from typing import NamedTuple


class RollParams(NamedTuple):
    """One append against a segment.

    Attributes
    ----------
    max_segment_ms
        Longest time between a segment's first record and its last one.
    max_segment_bytes
        ``segment.bytes``.
    max_timestamp_in_messages
        Largest timestamp of the append, ms.
    max_offset_in_messages
        Its last offset.
    messages_size_bytes
        Its length.
    now_ms
        Wall clock; counts only for segments without timestamps.
    """

    max_segment_ms: int
    max_segment_bytes: int
    max_timestamp_in_messages: int
    max_offset_in_messages: int
    messages_size_bytes: int
    now_ms: int
