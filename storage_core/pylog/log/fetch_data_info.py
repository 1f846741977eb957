"""What a read of an owned log gives. Source: FetchDataInfo, LogOffsetMetadata (Kafka 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pylog.model import AbortedTransaction


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
