"""How far a read of an owned log may go. Source: FetchIsolation (Kafka 4.3)."""

from __future__ import annotations

from enum import Enum, auto


class FetchIsolation(Enum):
    """The first offset that a read must not give."""

    LOG_END = auto()
    """The log's end: replicas, and whoever owns the log."""
    HIGH_WATERMARK = auto()
    """The high watermark: consumers that read uncommitted."""
    TXN_COMMITTED = auto()
    """The last stable offset: consumers that read committed."""
