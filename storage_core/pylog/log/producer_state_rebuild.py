"""The producers of a log, read from its files up to an offset.

From the newest readable snapshot on, the batches after it are replayed as a follower would append
them. Snapshots are taken on the way at the base offset of the last two segments, so that the next
start finds one.

Source: UnifiedLog.rebuildProducerState, loadProducersFromRecords (Kafka 4.3; KIP-98).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.log_file.batch_walk import PositionedHeader
from pylog.model import AppendOrigin
from pylog.producers.append_validation import validate_producers
from pylog.record.batch_layout import MAGIC_VALUE_V2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.log.log_segment import LogSegment
    from pylog.log.log_segments import LogSegments
    from pylog.producers.completed_transaction import CompletedTransaction
    from pylog.producers.producer_state_manager import ProducerStateManager


def rebuild_producer_state(
    manager: ProducerStateManager,
    segments: LogSegments,
    log_start_offset: int,
    last_offset: int,
    *,
    now_ms: int,
    is_clean: bool,
) -> None:
    """Have the state of the log before ``last_offset``, and a snapshot of it.

    Parameters
    ----------
    manager
        Changed in place.
    segments
        Of the log.
    log_start_offset
        Records below do not count.
    last_offset
        Where the log ends, exclusive.
    now_ms
        The time, for producers that have expired.
    is_clean
        Whether the log was closed in order. Without any snapshot it then has no producers (it was
        written by a broker before 0.11), and nothing is read.

    Raises
    ------
    CorruptRecordError
        A header in the way is impossible.
    """
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
            replay_segment(manager, segment, start, last_offset)
    manager.update_map_end_offset(last_offset)
    manager.take_snapshot()


def replay_segment(
    manager: ProducerStateManager, segment: LogSegment, start_offset: int, end_offset: int
) -> None:
    """Take the batches of one segment from ``start_offset`` on into account.

    Up to, exclusively, the first batch whose last offset is at or above ``end_offset``. Differs
    from Kafka, which takes all batches of a segment as one append: of a producer whose epoch goes
    back, which no sound leader writes, it remembers batches that a log never closed has forgotten.
    """
    first = segment.translate_offset(start_offset)
    if first is None:
        return
    for batch in segment.log.batches_from(first.position):
        if batch.header.last_offset >= end_offset:
            return
        for completed in replay_batch(manager, segment, batch):
            manager.complete_transaction(completed)


def replay_batch(
    manager: ProducerStateManager, segment: LogSegment, batch: PositionedHeader
) -> list[CompletedTransaction]:
    """Take one batch into account; return the transactions that it completed.

    The caller has to complete them in the manager, after it took the last stable offset from it.
    """
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
