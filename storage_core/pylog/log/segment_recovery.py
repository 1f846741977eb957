"""One segment after an unclean stop: every batch checked, the file cut, every index made anew.

Batch by batch: checksum and size, offsets that fit the segment, an index entry wherever one is due
(more than ``index.interval.bytes`` since the last), leader epochs, producers and aborted
transactions. The first batch that is not sound ends it, and the file is cut there: what lies behind
was never acknowledged as flushed, or the disk lost it.

Not checked, as in Kafka: that offsets increase between index entries, record counts, checksums
inside compressed v0/v1 wrappers.

Source: LogSegment.recover (Kafka 4.3).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.log.producer_state_rebuild import replay_batch
from pylog.log_file.batch_walk import PositionedHeader
from pylog.log_file.segment_windows import SegmentWindows
from pylog.record.batch_header import parse_batch_header
from pylog.record.batch_layout import MAGIC_VALUE_V2
from pylog.record.batch_scan import find_bad_checksum

if TYPE_CHECKING:
    from pylog.log.leader_epoch_file_cache import LeaderEpochFileCache
    from pylog.log.log_segment import LogSegment
    from pylog.log.producer_state_manager import ProducerStateManager
    from pylog.log_file.segment_windows import SegmentWindow

_LOGGER = logging.getLogger(__name__)


class SegmentRecovery:
    """Recovers one segment; used once.

    Parameters
    ----------
    segment
        Its indexes are emptied and filled, its file is cut.
    index_interval_bytes
        Of the topic.
    producer_state
        State before the segment; afterwards after it.
    leader_epochs
        Epochs that it lacks are added; None to leave them.
    """

    def __init__(
        self,
        segment: LogSegment,
        index_interval_bytes: int,
        producer_state: ProducerStateManager,
        leader_epochs: LeaderEpochFileCache | None,
    ) -> None:
        self._segment = segment
        self._interval = index_interval_bytes
        self._producer_state = producer_state
        self._leader_epochs = leader_epochs
        self._last_index_position = 0
        self._valid_bytes = 0

    def recover(self) -> int:
        """Return how many bytes were cut off.

        Raises
        ------
        InvalidOffsetError, LogSegmentOffsetOverflowError
            Offsets do not fit the segment or do not increase.
        KafkaStorageError
            The disk failed.
        """
        segment = self._segment
        segment.offset_index.reset()
        segment.time_index.reset()
        segment.transaction_index.reset()
        segment.forget_timestamps()
        reason = self._scan()
        cut = segment.size_bytes - self._valid_bytes
        if cut:
            _LOGGER.warning(
                "recovering %s: truncating %d bytes from position %d on: %s",
                segment.log.path,
                cut,
                self._valid_bytes,
                reason,
            )
        segment.log.truncate_to(self._valid_bytes)
        segment.offset_index.trim_to_valid_size()
        segment.time_index.maybe_append(*segment.max_timestamp_so_far, skip_full_check=True)
        segment.time_index.trim_to_valid_size()
        return cut

    def _scan(self) -> str:
        """Take all sound batches into account; return what is wrong behind them."""
        source = self._segment.log
        windows = SegmentWindows(source, 0, source.size_bytes)
        try:
            for window in windows:
                bad = find_bad_checksum(window.scan)
                count = len(window.scan.headers) if bad is None else bad.index
                self._add(window, count)
                if bad is not None:
                    return f"batch CRC stored {bad.stored:#010x}, computed {bad.computed:#010x}"
        except (CorruptRecordError, InvalidRecordError) as error:
            return str(error)
        return windows.tail.defect or "a batch is cut short by the end of the file"

    def _add(self, window: SegmentWindow, count: int) -> None:
        buffer = window.scan.buffer.data
        for start in window.scan.headers.positions[:count].tolist():
            header = parse_batch_header(buffer, start)
            self._add_batch(PositionedHeader(window.file_position + start, header))

    def _add_batch(self, found: PositionedHeader) -> None:
        segment, header = self._segment, found.header
        segment.ensure_offset_in_range(header.last_offset)
        # The wrong marker of a control batch is damage like any other: before anything is noted.
        completed = replay_batch(self._producer_state, segment, found)
        segment.note_timestamp(header.max_timestamp, header.last_offset)
        if found.position - self._last_index_position > self._interval:
            segment.offset_index.append(header.last_offset, found.position)
            segment.time_index.maybe_append(*segment.max_timestamp_so_far)
            self._last_index_position = found.position
        self._valid_bytes = found.end_position
        for transaction in completed:
            last_stable_offset = self._producer_state.last_stable_offset(transaction)
            segment.update_transaction_index(transaction, last_stable_offset)
            self._producer_state.complete_transaction(transaction)
        self._producer_state.update_map_end_offset(header.next_offset)
        self._add_leader_epoch(found)

    def _add_leader_epoch(self, found: PositionedHeader) -> None:
        cache, header = self._leader_epochs, found.header
        if cache is None or header.magic < MAGIC_VALUE_V2 or header.partition_leader_epoch < 0:
            return
        latest = cache.latest_epoch
        if latest is None or header.partition_leader_epoch > latest:
            cache.assign(header.partition_leader_epoch, header.offset)
