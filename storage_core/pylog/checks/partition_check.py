"""What has been found of one partition: its findings, and what else a walk over it tells."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from pylog.checks.partition_report import OffsetTotals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylog.checks.broker_start import BrokerStart
    from pylog.findings.finding import Finding
    from pylog.reading.damage import DamagedRange
    from pylog.reading.log_view import LogView


class PartitionCheck(NamedTuple):
    """What is wrong with one partition, and what its log holds."""

    view: LogView  # as it was looked at
    findings: list[Finding]  # about the log, the directory, indexes and side files, in this order
    # what is no sound batch, and batches whose records cannot be decoded, in file order
    damaged: list[DamagedRange]
    # Of the ``.log`` files; of them, what was read and is intact.
    size_bytes: int = 0
    scanned_bytes: int = 0
    # Of the batches on the disk; the end is exclusive
    start_offset: int = 0
    end_offset: int = 0
    offsets: OffsetTotals = OffsetTotals()  # what has become of the offsets between them
    # what a broker would do to the log; None where a file or the directory cannot be opened
    start: BrokerStart | None = None
    segment_ends: Sequence[int] = ()  # byte after the last sound batch of each segment
    # what checkpoints of the log directory say of it, by the file's name
    recorded_offsets: Mapping[str, int] = MappingProxyType({})
