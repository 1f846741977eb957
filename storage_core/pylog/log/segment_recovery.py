"""One segment after an unclean stop: every batch checked, the file cut, every index rebuilt.

Batch by batch: checksum and size, offsets that fit the segment, an index entry wherever one is due
(`pylog.indexes.index_entry_writer`), leader epochs, producers and aborted transactions. The first
batch that is not sound ends it, and the file is cut there: what lies after it was never
acknowledged as flushed, or the disk lost it.

Not checked, as in Kafka: that offsets increase between index entries, record counts, checksums
inside compressed v0/v1 wrappers.

Source: LogSegment.recover (Kafka 4.3). Differs from Kafka, which takes a batch whose magic is above
2 for one of v2: the checksum does not cover it, and here it ends the scan, but where the start of a
broker is simulated.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    LogLoadingError,
    RecoveryRefusedError,
)
from pylog.files.byte_source import ByteSource
from pylog.log_file.batch_walk import HIGHEST_OFFSET, PositionedHeader, is_zero
from pylog.log_file.resynchronisation import find_next_batch
from pylog.log_file.segment_windows import SegmentWindows
from pylog.model import AppendOrigin
from pylog.producers.producer_state_manager import validate_producers
from pylog.record.batch_header import MAGIC_OFFSET, MAGIC_VALUE_V2, parse_batch_header
from pylog.record.batch_scan import find_bad_checksum
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pylog.files.leader_epochs import LeaderEpochFileCache
    from pylog.log.log_segment import LogSegment
    from pylog.log.log_segments import LogSegments
    from pylog.producers.producer_state_entry import CompletedTransaction
    from pylog.producers.producer_state_manager import ProducerStateManager
    from pylog.record.batch_scan import BatchHeaders, Window


# The producers of a log, read from its files up to an offset.
#
# From the newest readable snapshot on, the batches after it are replayed as a follower would append
# them. Snapshots are taken on the way at the base offset of the last two segments, so that the next
# start finds one.
#
# Source: UnifiedLog.rebuildProducerState, loadProducersFromRecords (Kafka 4.3; KIP-98).


def rebuild_producer_state(  # noqa: PLR0913 - what a state is made of
    manager: ProducerStateManager,
    segments: LogSegments,
    log_start_offset: int,
    last_offset: int,
    *,
    now_ms: int,
    is_clean: bool,
    checks_order: bool = True,
) -> None:
    """Have the state of the log before ``last_offset``, and a snapshot of it."""
    bases = segments.base_offsets
    offsets_to_snapshot = [*bases[-2:], last_offset]
    if is_clean and manager.latest_snapshot_offset is None:
        for offset in offsets_to_snapshot:
            manager.update_map_end_offset(offset)
            manager.take_snapshot()
        return
    is_empty_before_truncation = manager.is_empty and manager.map_end_offset >= last_offset
    manager.truncate_and_reload(log_start_offset, last_offset, now_ms)
    if not is_empty_before_truncation and last_offset > manager.map_end_offset:
        for segment in segments.values(manager.map_end_offset, last_offset):
            start = max(segment.base_offset, manager.map_end_offset, log_start_offset)
            manager.update_map_end_offset(start)
            if start in offsets_to_snapshot:
                manager.take_snapshot()
            _open_wrappers(segment, start)
            if segment.base_offset == bases[-1]:
                _open_wrappers(segment, last_offset)
            replay_segment(manager, segment, start, last_offset, checks_order=checks_order)
    manager.update_map_end_offset(last_offset)
    manager.take_snapshot()


def replay_segment(
    manager: ProducerStateManager,
    segment: LogSegment,
    start_offset: int,
    end_offset: int,
    *,
    checks_order: bool = True,
) -> None:
    """Take the batches of one segment from ``start_offset`` on into account.

    Up to, exclusively, the first batch whose last offset is at or above ``end_offset``. Differs
    from Kafka, which takes all batches of a segment as one append: of a producer whose epoch goes
    back, which no sound leader writes, it remembers batches that a log never closed has forgotten.
    """
    first = segment.translate_offset(start_offset)
    if first is None:
        return
    completed: list[CompletedTransaction] = []
    for batch in segment.log.batches_from(first.position, checks_order=checks_order):
        if batch.header.last_offset >= end_offset:
            break
        completed += replay_batch(manager, segment, batch)
    # As in Kafka, which ends where two of them began at one offset.
    for each in completed:
        manager.complete_transaction(each)


def _open_wrappers(segment: LogSegment, offset: int) -> None:
    """Raise `InvalidRecordError` for a wrapper, on the way to an offset, that no broker can open.

    It holds another wrapper, or nothing. Kafka's look-up asks each batch that it passes for its
    first offset (FileRecords.searchForOffsetFromPosition), which of a wrapper is only known by
    opening it; checksums of what is inside are not looked at. A broker whose recovery meets one
    ends. (Before 4.0 it asks the batch alone that it finds.)
    """
    start = segment.offset_index.lookup(offset).position
    for batch in segment.log.batches_from(start, checks_order=False):
        header = batch.header
        first_offset = header.base_offset
        if header.magic < MAGIC_VALUE_V2 and header.codec_id:
            content = segment.log.read_at(batch.position, header.size_bytes)
            try:
                first_offset = next(iter(RecordBatch(memoryview(content)).records())).offset
            except CorruptRecordError:
                pass
            except InvalidRecordError as error:
                path, position = segment.log.path, batch.position
                raise InvalidRecordError(error.reason, path, position) from error
        if first_offset is None or first_offset >= offset:
            return


def replay_batch(
    manager: ProducerStateManager, segment: LogSegment, batch: PositionedHeader
) -> list[CompletedTransaction]:
    """Take one batch into account; return the transactions that it completed."""
    header = batch.header
    if header.magic < MAGIC_VALUE_V2 or header.producer_id < 0:
        return []
    content = b""
    if header.is_control_batch:
        content = segment.log.read_at(batch.position, header.size_bytes)
    alone: Sequence[PositionedHeader] = [PositionedHeader(0, header)]
    changes = validate_producers(manager, memoryview(content), alone, AppendOrigin.REPLICATION)
    for info in changes.updates.values():
        manager.update(info)
    return changes.completed


# Intact batches that the recovery of a log would drop, and who lets it.
#
# A broker's recovery cuts a log at the first byte that is wrong: the rest of that segment goes,
# and so do all later segments. That is right for a broker, which gets the records back from its
# replicas. In a directory that may be the only copy it is a loss. So recovery looks at what it
# is about to drop, and refuses if there is an intact batch in it; see
# `pylog.config.RecoveryMode`.
#
# A batch is intact if its checksum is right, whatever its offsets are. What a crash leaves has
# none: a torn batch or zeros at the end of the last segment.


class IntactRecords(NamedTuple):
    """Intact batches, and how many records they have; wrappers of v0 and v1 count as one."""

    batches: int = 0
    records: int = 0

    def __add__(self, other: IntactRecords) -> IntactRecords:  # type: ignore[override]
        return IntactRecords(self.batches + other.batches, self.records + other.records)


class Damage(NamedTuple):
    """What is wrong with a segment, and from which byte on a broker's recovery drops it."""

    segment: LogSegment
    position: int
    reason: str


def ensure_nothing_intact(damage: Damage, later: Iterable[LogSegment]) -> None:
    """Raise `RecoveryRefusedError` if there are intact batches after the damage or in ``later``."""
    segment = damage.segment
    dropped = _intact_in(segment.log, damage.position, segment.base_offset)
    for each in later:
        dropped += _intact_in(each.log, 0, each.base_offset)
    if dropped.batches:
        raise RecoveryRefusedError(damage.reason, segment.log.path, damage.position, *dropped)


def _intact_in(source: ByteSource, position: int, lowest_offset: int) -> IntactRecords:
    found = IntactRecords()
    for each in _runs_of_intact(source, position, lowest_offset):
        found += each
    return found


def _runs_of_intact(
    source: ByteSource, position: int, lowest_offset: int
) -> Iterator[IntactRecords]:
    """Yield the intact batches between one damage and the next."""
    end = source.size()
    while position < end:
        windows = SegmentWindows(source, position, end)
        try:
            for window in windows:
                bad = find_bad_checksum(window)
                count = len(window.headers) if bad is None else bad.index
                headers = window.headers.select(slice(0, count))
                if count:
                    lowest_offset = max(lowest_offset, int(headers.last_offsets[-1]) + 1)
                    yield IntactRecords(count, int(headers.record_counts.clip(min=1).sum()))
                if bad is not None:
                    position = window.file_position + int(window.headers.positions[bad.index])
                    break
            else:
                position = windows.tail.position
        except CorruptRecordError as error:
            position = error.position if error.position is not None else end
        if position < end:
            position = find_next_batch(source, position, end, lowest_offset=lowest_offset)


_HIGHEST_MAGIC = 127
"""Of a byte with a sign: a broker takes a negative one for v0."""


class _LaterFormats(ByteSource):
    """A file in which batches of later formats look like those of v2, as a broker takes them.

    No checksum covers the format's number. Source: FileLogInputStream.nextBatch (Kafka 4.4).
    """

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._magics: list[int] = []  # positions of the numbers, in order
        self.path = source.path

    def take(self, position: int) -> bool:
        """Take a batch for one of v2; return whether it is of a later format."""
        at = position + MAGIC_OFFSET
        [magic] = self.read_at(at, 1) or b"\0"
        if not MAGIC_VALUE_V2 < magic <= _HIGHEST_MAGIC:
            return False
        self._magics.append(at)
        return True

    def size(self) -> int:
        return self._source.size()

    def next_data(self, position: int) -> int | None:
        return self._source.next_data(position)

    def close(self) -> None:
        pass  # it is another one's

    def read_into(self, position: int, buffer: memoryview) -> int:
        read = self._source.read_into(position, buffer)
        first = bisect_left(self._magics, position)
        for at in self._magics[first : bisect_left(self._magics, position + read)]:
            buffer[at - position] = MAGIC_VALUE_V2
        return read

    def read_at(self, position: int, length: int) -> bytes:
        buffer = memoryview(bytearray(length))
        return bytes(buffer[: self.read_into(position, buffer)])


class SegmentRecovery:
    """Recovers one segment; used once."""

    def __init__(
        self,
        segment: LogSegment,
        producer_state: ProducerStateManager,
        leader_epochs: LeaderEpochFileCache | None,
        before_cut: Callable[[Damage], None],
        *,
        only_markers: bool = False,
        is_broker_start: bool = False,
    ) -> None:
        self._is_broker_start = is_broker_start
        self._segment = segment
        self._producer_state = producer_state
        self._leader_epochs = leader_epochs
        self._before_cut = before_cut
        self._only_markers = only_markers
        self._valid_bytes = 0

    def recover(self) -> int:
        """Return how many bytes were cut off."""
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
        source: ByteSource = self._segment.log
        end, position = source.size(), 0
        if self._is_broker_start:
            source = _LaterFormats(source)
        while True:
            windows = SegmentWindows(source, position, end)
            try:
                for window in windows:
                    bad = find_bad_checksum(window)
                    count = len(window.headers) if bad is None else bad.index
                    self._add(window, count)
                    if bad is not None:
                        return bad.reason
            except (CorruptRecordError, InvalidRecordError) as error:
                return error.reason
            position, defect = windows.tail
            if isinstance(source, _LaterFormats) and defect is not None and source.take(position):
                continue
            if defect is not None:
                return defect
            is_rest_zero = is_zero(source, position, end)
            return "zeros follow" if is_rest_zero else "a batch is cut short by the end of the file"

    def _add(self, window: Window, count: int) -> None:
        """Take the first ``count`` batches of a window into account."""
        headers = window.headers.select(slice(0, count))
        if not count:
            return
        base = self._segment.base_offset
        impossible = (headers.last_offsets < base) | (headers.last_offsets == HIGHEST_OFFSET)
        if impossible.any():
            # Differs from Kafka, which takes it for an overflow, finds none to split the segment
            # at, and ends. No broker wrote that: the checksum does not cover base offsets.
            first = int(np.argmax(impossible))
            self._add(window, first)
            offset = int(headers.last_offsets[first])
            bound = f"below the segment's {base}" if offset < base else "and none can follow"
            reason = f"batch ends at offset {offset}, {bound}"
            kind = LogLoadingError if self._is_broker_start else InvalidRecordError
            raise kind(reason, self._segment.log.path, window.position_of(first))
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
            except LogLoadingError:
                # The offset index comes first: it refuses a batch before an aborted transaction.
                self._add_headers(window, headers.select(slice(0, place + 1)))
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
        # As in Kafka, the state does not know of batches of v0 and v1, which have no producers.
        of_producers = headers.last_offsets[headers.is_v2]
        if of_producers.size:
            self._producer_state.update_map_end_offset(int(of_producers[-1]) + 1)
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
