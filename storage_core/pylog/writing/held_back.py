"""Records that a cleanup leaves alone because they may not be replicated: above the high watermark.

Another broker that takes over may lack them, and so the word of such a record removes no other
one: neither an older record of its key, nor a segment that it makes superfluous.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, NamedTuple, Self

from pylog.errors import LogStorageError
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.file_names import (
    HIGH_WATERMARK_CHECKPOINT,
)
from pylog.lazy_modules import LazyModule

if TYPE_CHECKING:
    from pylog.log.unified_log import UnifiedLog
    from pylog.reading import log_directory, removal_preview, slicing  # import NumPy
    from pylog.writing import node as node_rules
else:
    node_rules = LazyModule("pylog.writing.node")
    log_directory = LazyModule("pylog.reading.log_directory")
    removal_preview = LazyModule("pylog.reading.removal_preview")
    slicing = LazyModule("pylog.reading.slicing")


_LOGGER = logging.getLogger(__name__)


class HeldBack(NamedTuple):
    """What the high watermark of one log holds back.

    Attributes
    ----------
    start_offset, end_offset
        The offsets ``[start, end)`` that would be removed from, or cleaned, without it.
    records
        How many records these are; None where damage hides it.
    high_watermark, log_end_offset
        Of the log.
    checkpoint
        What ``replication-offset-checkpoint`` says of it; None if nothing.
    """

    start_offset: int
    end_offset: int
    records: int | None
    high_watermark: int
    log_end_offset: int
    checkpoint: int | None

    @classmethod
    def of(cls, log: UnifiedLog, offsets: tuple[int, int] | None) -> Self | None:
        """Count the records of a log in ``[start, end)``; None where there are no offsets."""
        if offsets is None:
            return None
        start, end = offsets
        records = checkpoint = None
        path = os.path.join(log.log_directory, HIGH_WATERMARK_CHECKPOINT)  # noqa: PTH118 - kept as text
        try:
            checkpoint = read_offset_checkpoint(path).get(log.topic_partition)
            view = log_directory.open_directory(log.directory)[log.topic_partition]
            slices = slicing.segment_slices(view, start, end)
            records = removal_preview.count_records(view, slices, start, end)
        except LogStorageError as error:
            _LOGGER.info("records of %s that are held back: %s", log.topic_partition, error)
        return cls(start, end, records, log.high_watermark, log.log_end_offset, checkpoint)

    def __str__(self) -> str:
        records = "records" if self.records is None else f"{self.records} records"
        if self.records == 1:
            records = "1 record"
        says = "has no entry for this partition"
        if self.checkpoint is not None:
            says = f"says that only offsets below {self.checkpoint} are"
        return (
            f"{records} at offsets {self.start_offset} to {self.end_offset - 1} are left alone, "
            f"since they may not be replicated: {HIGH_WATERMARK_CHECKPOINT} {says}, and the log "
            f"ends at {self.log_end_offset}. If no other replica is left, use --high-watermark "
            "log-end (high_watermark='log-end')"
        )
