"""How far a read of an owned log may go, and what it gives.

Source: FetchIsolation, FetchDataInfo, LogOffsetMetadata (Kafka 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pylog.model import AbortedTransaction


class FetchIsolation(Enum):
    """The first offset that a read must not give."""

    LOG_END = auto()
    """The log's end: replicas, and whoever owns the log."""
    HIGH_WATERMARK = auto()
    """The high watermark: consumers that read uncommitted."""
    TXN_COMMITTED = auto()
    """The last stable offset: consumers that read committed."""


class LogOffsetMetadata(NamedTuple):
    """An offset and, where it is known, the place in the files that goes with it."""

    message_offset: int
    segment_base_offset: int = -1
    relative_position_in_segment: int = -1


@dataclass(frozen=True, slots=True)
class FetchDataInfo:
    """Bytes of a log from a batch boundary on.

    Attributes
    ----------
    fetch_offset_metadata
        The offset asked for, and where the bytes begin.
    records
        Whole batches, of which the last one may be cut short. The first may begin below the offset
        asked for: a batch is given as it is stored.
    first_entry_incomplete
        Even the first batch did not fit.
    aborted_transactions
        Aborted transactions that touch the bytes, None unless reading committed. May begin beyond
        them.
    """

    fetch_offset_metadata: LogOffsetMetadata
    records: bytes
    first_entry_incomplete: bool = False
    aborted_transactions: list[AbortedTransaction] | None = None
