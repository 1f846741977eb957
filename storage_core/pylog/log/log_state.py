"""What one log consists of: segments, producers, leader epochs, offsets, and the lock around them.

Offsets, from low to high::

    log start offset        first offset served; records below may still be in the files
    recovery point          everything below is on disk
    last stable offset      below it every transaction is decided
    high watermark          below it records are replicated; what consumers may see. Where it
                            starts: `pylog.files.checkpoint_file`
    log end offset          of the next record

Always ``log start <= high watermark <= log end``. The first unstable offset is that of the oldest
transaction that is open, or whose marker is not replicated yet; never below the log's start.

Source: UnifiedLog (Kafka 4.3; KIP-98). Differs from Kafka since 4.0, where a read lowers a high
watermark or a first unstable offset that lies inside a batch, or in a gap, to the base offset of
the batch found there: here a read moves nothing, and readers get the same bytes.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pylog.errors import KafkaStorageError, OffsetAboveHighWatermarkError, OffsetOutOfRangeError
from pylog.log.metrics import LogCounters
from pylog.record.byte_buffer import SEND_LESS
from pylog.record.compression import Decompressor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.config import LogConfig
    from pylog.files.leader_epochs import LeaderEpochFileCache
    from pylog.log.local_log import LocalLog
    from pylog.log.log_context import LogContext
    from pylog.producers.producer_state_manager import ProducerStateManager


class LogState:
    """The state that appending, rolling, truncating and looking up work on.

    `lock` guards every change; readers need none.
    """

    __slots__ = (
        "context",
        "counters",
        "decompressor",
        "first_unstable_offset",
        "follows_end",
        "has_raised_high_watermark",
        "high_watermark",
        "is_closed",
        "leader_epochs",
        "local_log",
        "lock",
        "log_directory",
        "log_start_offset",
        "name",
        "producer_state",
        "truncation_count",
    )

    def __init__(
        self,
        local_log: LocalLog,
        producer_state: ProducerStateManager,
        leader_epochs: LeaderEpochFileCache,
        *,
        log_start_offset: int,
        context: LogContext,
    ) -> None:
        self.local_log = local_log
        self.producer_state = producer_state
        self.leader_epochs = leader_epochs
        self.log_directory = os.path.dirname(local_log.directory.rstrip("/"))  # noqa: PTH120
        self.context = context
        self.lock = threading.RLock()
        self.is_closed = False  # true before the first file is
        self.name = str(local_log.topic_partition)
        self.decompressor = Decompressor(advice=SEND_LESS)
        self.follows_end = True
        self.has_raised_high_watermark = False
        self.truncation_count = 0
        self.counters = LogCounters()
        self.log_start_offset = log_start_offset
        self.high_watermark = log_start_offset
        self.first_unstable_offset: int | None = None
        self.update_first_unstable_offset()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock; a failing disk takes the log directory offline."""
        # A fork may have copied a lock that another thread held.
        self.context.io.ensure_own_process(self.local_log.directory)
        with self.lock:
            self.ensure_open()  # not a disk failure
            with self.context.failures.watching(self.log_directory):
                yield

    def ensure_open(self) -> None:
        """Raise if the log is closed: somebody still holds one that has been deleted, say."""
        if self.is_closed:
            reason = f"log of {self.name} is closed"
            raise KafkaStorageError(reason, self.local_log.directory)

    @property
    def config(self) -> LogConfig:
        """The topic's configuration."""
        return self.local_log.config

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self.local_log.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction is decided, and everything replicated."""
        unstable, high_watermark = self.first_unstable_offset, self.high_watermark
        return high_watermark if unstable is None else min(unstable, high_watermark)

    def update_first_unstable_offset(self) -> None:
        """Take the first unstable offset from the transactions as they are now."""
        unstable = self.producer_state.first_unstable_offset
        if unstable is not None:
            unstable = max(unstable, self.log_start_offset)
        self.first_unstable_offset = unstable

    def update_high_watermark(self, offset: int) -> None:
        """Move the high watermark to ``offset``, or as near as start and end allow."""
        end = self.local_log.log_end_offset
        offset = max(self.log_start_offset, min(offset, end))
        self.has_raised_high_watermark |= offset > self.high_watermark
        self.high_watermark = offset
        self.producer_state.on_high_watermark_updated(self.high_watermark)
        self.update_first_unstable_offset()

    def start_high_watermark(self, offset: int) -> None:
        """Set the high watermark of a log that has just been loaded."""
        self.update_high_watermark(offset)
        self.has_raised_high_watermark = False

    def publish_end(self, offset: int) -> None:
        """Let readers see what was appended below ``offset``, the log's new end."""
        is_all_replicated = self.high_watermark == self.log_end_offset
        self.local_log.update_log_end_offset(offset)
        if self.follows_end and is_all_replicated:
            self.update_high_watermark(offset)
        else:
            self.update_first_unstable_offset()

    def maybe_increment_high_watermark(self, offset: int) -> int | None:
        """Raise the high watermark; return the old one, None if it is not lower."""
        if offset > self.log_end_offset:
            msg = f"high watermark {offset} would pass the log's end {self.log_end_offset}"
            raise ValueError(msg)
        old = self.high_watermark
        if old >= offset:
            return None
        self.update_high_watermark(offset)
        return old

    def delete_records(self, offset: int | None) -> int:
        """Serve no record below ``offset`` any more; return the new log start offset."""
        self.ensure_possible_start(offset)
        self.maybe_increment_log_start_offset(self.high_watermark if offset is None else offset)
        return self.log_start_offset

    def ensure_possible_start(self, offset: int | None) -> None:
        """Raise `OffsetOutOfRangeError` for an offset that is negative or too high for a start."""
        if offset is not None and not 0 <= offset <= self.high_watermark:
            raise self._out_of_range(offset)

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Raise the log start offset; False if it is not lower."""
        if offset > self.high_watermark:
            raise self._out_of_range(offset)
        if offset <= self.log_start_offset:
            return False
        self.local_log.mark_flushed(offset)
        self.leader_epochs.truncate_from_start(offset)
        self.log_start_offset = offset
        self.producer_state.on_log_start_offset_incremented(offset)
        self.update_first_unstable_offset()
        return True

    def _out_of_range(self, offset: int) -> OffsetOutOfRangeError:
        start, high_watermark, end = self.log_start_offset, self.high_watermark, self.log_end_offset
        if high_watermark < offset <= end:
            return OffsetAboveHighWatermarkError(self.name, offset, start, high_watermark, end)
        return OffsetOutOfRangeError(self.name, offset, start, end)
