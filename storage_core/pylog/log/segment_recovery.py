"""One segment after an unclean stop: every batch checked, the file cut, every index rebuilt.

Batch by batch: checksum and size, offsets that fit the segment, an index entry wherever one is due
(`pylog.indexes.index_entry_writer`), leader epochs, producers and aborted transactions. The first
batch that is not sound ends it, and the file is cut there: what lies after it was never
acknowledged as flushed, or the disk lost it.

Not checked, as in Kafka: that offsets increase between index entries, record counts, checksums
inside compressed v0/v1 wrappers.

Source: LogSegment.recover (Kafka 4.3). Differs from Kafka, which takes a batch whose magic is above
2 for one of v2: the checksum does not cover it, and here it ends the scan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.log.producer_state_rebuild import replay_batch
from pylog.log.recovery_loss import Damage
from pylog.log_file.batch_walk import PositionedHeader, is_zero
from pylog.log_file.segment_windows import SegmentWindows
from pylog.record.batch_header import parse_batch_header
from pylog.record.batch_scan import find_bad_checksum

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.files.leader_epochs import LeaderEpochFileCache
    from pylog.log.log_segment import LogSegment
    from pylog.producers.producer_state_manager import ProducerStateManager
    from pylog.record.batch_scan import BatchHeaders
    from pylog.record.window import Window


class SegmentRecovery:
    """Recovers one segment; used once.

    Parameters
    ----------
    segment
        Its indexes are emptied and filled, its file is cut.
    producer_state
        State before the segment; afterwards after it.
    leader_epochs
        Epochs that it lacks are added; None to leave them.
    before_cut
        Called before bytes are cut off, if any are, with what is wrong: removes the segments after
        this one. In the other order, a crash in between would leave a hole that nothing reveals.
    only_markers
        Of producers, look only at transaction markers, which end the scan where they are damaged.
    """

    def __init__(
        self,
        segment: LogSegment,
        producer_state: ProducerStateManager,
        leader_epochs: LeaderEpochFileCache | None,
        before_cut: Callable[[Damage], None],
        *,
        only_markers: bool = False,
    ) -> None:
        self._segment = segment
        self._producer_state = producer_state
        self._leader_epochs = leader_epochs
        self._before_cut = before_cut
        self._only_markers = only_markers
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
        segment.entry_writer.reset()
        segment.transaction_index.reset()
        reason = self._scan()
        cut = segment.size_bytes - self._valid_bytes
        if cut:
            self._before_cut(Damage(segment, self._valid_bytes, reason))
        segment.log.truncate_to(self._valid_bytes)
        segment.offset_index.trim_to_valid_size()
        segment.entry_writer.force_last_time_entry()
        segment.time_index.trim_to_valid_size()
        segment.entry_writer.restart_byte_count()
        return cut

    def _scan(self) -> str:
        """Take all sound batches into account; return what is wrong after them."""
        source = self._segment.log
        windows = SegmentWindows(source, 0, source.size_bytes)
        try:
            for window in windows:
                bad = find_bad_checksum(window)
                count = len(window.headers) if bad is None else bad.index
                self._add(window, count)
                if bad is not None:
                    return bad.reason
        except (CorruptRecordError, InvalidRecordError) as error:
            return error.reason
        if windows.tail.defect is not None:
            return windows.tail.defect
        is_rest_zero = is_zero(source, windows.tail.position, source.size_bytes)
        return "zeros follow" if is_rest_zero else "a batch is cut short by the end of the file"

    def _add(self, window: Window, count: int) -> None:
        """Take the first ``count`` batches of a window into account.

        Raises
        ------
        InvalidRecordError
            A transaction marker is damaged, or offsets are below the segment's; the batches before
            have been taken into account.
        """
        headers = window.headers.select(slice(0, count))
        if not count:
            return
        below = np.flatnonzero(headers.last_offsets < self._segment.base_offset)
        if below.size:
            # Differs from Kafka, which takes it for an overflow and would split the segment. No
            # broker ever wrote that: base offsets are what the checksum does not cover.
            self._add(window, int(below[0]))
            offset = int(headers.last_offsets[below[0]])
            reason = (
                f"batch ends at offset {offset}, below the segment's {self._segment.base_offset}"
            )
            position = window.position_of(below[0])
            raise InvalidRecordError(reason, self._segment.log.path, position)
        self._segment.ensure_offset_in_range(int(headers.last_offsets.max()))
        producing = headers.is_v2 & (headers.producer_ids >= 0)
        if self._only_markers:
            producing &= headers.is_control
        for place in np.flatnonzero(producing).tolist():
            try:
                self._replay(window, int(headers.positions[place]))
            except (CorruptRecordError, InvalidRecordError):
                self._add_headers(window, headers.select(slice(0, place)))
                raise
        self._add_headers(window, headers)

    def _replay(self, window: Window, start: int) -> None:
        header = parse_batch_header(window.buffer.data, start)
        batch = PositionedHeader(window.file_position + start, header)
        for transaction in replay_batch(self._producer_state, self._segment, batch):
            # Before it counts as completed: the other open transactions decide.
            last_stable_offset = self._producer_state.last_stable_offset(transaction)
            self._segment.update_transaction_index(transaction, last_stable_offset)
            self._producer_state.complete_transaction(transaction)

    def _add_headers(self, window: Window, headers: BatchHeaders) -> None:
        if not len(headers):
            return
        self._segment.entry_writer.add_all(headers, window.file_position)
        self._valid_bytes = window.file_position + int(
            headers.positions[-1] + headers.sizes_bytes[-1]
        )
        # Differs from Kafka, which leaves batches of v0 and v1 out: its snapshot of a segment that
        # ends with some lies before them.
        self._producer_state.update_map_end_offset(int(headers.last_offsets[-1]) + 1)
        self._add_leader_epochs(headers)

    def _add_leader_epochs(self, headers: BatchHeaders) -> None:
        cache = self._leader_epochs
        if cache is None:
            return
        epochs = np.where(headers.is_v2, headers.partition_leader_epochs, -1)
        latest = cache.latest_epoch
        before = np.concatenate(([-1 if latest is None else latest], epochs[:-1]))
        rises = np.flatnonzero(epochs > np.maximum.accumulate(before))
        for place in rises.tolist():
            cache.assign(int(epochs[place]), int(headers.offsets[place]))
