"""How many offsets of a log are what."""

from __future__ import annotations

from typing import NamedTuple


class OffsetTotals(NamedTuple):
    """How many offsets of a log are what.

    Attributes
    ----------
    records, control_records
        In sound batches.
    compacted
        Removed by compaction.
    missing
        Missing without a sign of compaction.
    damaged
        Missing because their bytes are damaged; those after the last sound batch are not known.
    """

    records: int = 0
    control_records: int = 0
    compacted: int = 0
    missing: int = 0
    damaged: int = 0
