"""Which records a topic takes: asked by a leader's append, and of rows before they are staged.

Source: LogValidator.validateKey, LogValidator.validateTimestamp, UnifiedLog.append (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import RecordBatchTooLargeError, RecordTooLargeError
from pylog.record.batch_writer import MAX_INT64

if TYPE_CHECKING:
    from pylog.config import LogConfig


class TimestampRange(NamedTuple):
    """The timestamps that a topic with create times takes at a time of the clock, both ends."""

    lowest: int
    highest: int

    @classmethod
    def at(cls, now_ms: int, config: LogConfig) -> TimestampRange:
        """Return the range; within 64 bits, so that arrays of them can be held against it."""
        return cls(
            max(-MAX_INT64, now_ms - config.message_timestamp_before_max_ms),
            min(MAX_INT64, now_ms + config.message_timestamp_after_max_ms),
        )

    def has(self, timestamp: int) -> bool:
        """Return whether a timestamp is in the range."""
        return self.lowest <= timestamp <= self.highest


class SizeRule(NamedTuple):
    """A limit of the bytes of one batch: its property, its value, and what breaking it raises."""

    name: str
    most_bytes: int
    error: type[RecordTooLargeError | RecordBatchTooLargeError]


def size_rules(config: LogConfig) -> tuple[SizeRule, SizeRule]:
    """Return the limits of a batch in the order in which an append asks for them."""
    return (
        SizeRule("max.message.bytes", config.max_message_bytes, RecordTooLargeError),
        SizeRule("segment.bytes", config.segment_bytes, RecordBatchTooLargeError),
    )


def broken_size_rule(size_bytes: int, config: LogConfig) -> SizeRule | None:
    """Return the first limit that a batch breaks; None if it may be appended."""
    return next((each for each in size_rules(config) if size_bytes > each.most_bytes), None)
