"""Appending batches as another log has them: offsets, leader epochs and producers stay.

As a follower appends, but for many batches with few writes. Of a producer only those batches are
looked at one by one that decide about its state: markers, the first batch of each transaction, and
the last ones, by which repetitions are recognised.

Source: LogSegment.recover, UnifiedLog.appendAsFollower (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import UnexpectedAppendOffsetError
from pylog.files.index_entries import MAX_RELATIVE_OFFSET
from pylog.kernels import decode_headers as fields
from pylog.log.segment_recovery import replay_batch
from pylog.log_file.batch_walk import PositionedHeader
from pylog.model import NO_PARTITION_LEADER_EPOCH
from pylog.producers.producer_state_entry import NUM_BATCHES_TO_RETAIN
from pylog.record.batch_header import parse_batch_header
from pylog.record.batch_scan import BatchHeaders

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.files.leader_epochs import LeaderEpochFileCache
    from pylog.log.log_roller import LogRoller
    from pylog.log.log_segment import LogSegment
    from pylog.log.log_state import LogState

    Int64Array = npt.NDArray[np.int64]


def append_copied(
    state: LogState, roller: LogRoller, records: memoryview, headers: BatchHeaders
) -> None:
    """Append batches that another log has; see `UnifiedLog.append_copied`."""
    first, end = int(headers.offsets[0]), state.log_end_offset
    if first < end:
        reason = f"batches to copy begin at offset {first}, expected {end} or above"
        last = int(headers.last_offsets[-1])
        raise UnexpectedAppendOffsetError(reason, state.name, first, last)
    while len(headers):
        start = int(headers.positions[0])
        columns = headers.columns.copy()
        columns[fields.POSITION] -= start
        headers, records = BatchHeaders(columns), records[start:]
        segment, count = roller.maybe_roll_before(_with_first_offset(headers, state))
        group = headers.select(slice(count))
        size_bytes = int(group.positions[-1] + group.sizes_bytes[-1])
        position = segment.append_all(records[:size_bytes], group)
        _assign_leader_epochs(state.leader_epochs, group)
        for place in decisive_batches(group).tolist():
            _replay(state, segment, records, int(group.positions[place]), position)
        next_offset = int(group.last_offsets[-1]) + 1
        state.producer_state.update_map_end_offset(next_offset)
        state.counters.count_append(size_bytes, int(np.maximum(group.record_counts, 0).sum()))
        state.publish_end(next_offset)
        headers = headers.select(slice(count, None))


def _with_first_offset(headers: BatchHeaders, state: LogState) -> BatchHeaders:
    """Return headers of which the first has an offset that no record of the batch is below."""
    if headers.is_v2[0]:
        return headers
    columns = headers.columns.copy()  # v0 and v1 name the last offset alone
    lowest = int(headers.last_offsets[0]) - MAX_RELATIVE_OFFSET
    begun = state.local_log.segments.active_segment.base_offset  # perhaps after a gap
    columns[fields.OFFSET, 0] = max(lowest, state.log_end_offset, begun)
    return BatchHeaders(columns)


def _assign_leader_epochs(cache: LeaderEpochFileCache, headers: BatchHeaders) -> None:
    """Note where epochs begin; v0 and v1 have none, and what is before says nothing of them."""
    epochs = np.where(headers.is_v2, headers.partition_leader_epochs, NO_PARTITION_LEADER_EPOCH)
    changes = np.concatenate(([True], epochs[1:] != epochs[:-1]))
    for place in np.flatnonzero(changes).tolist():
        if epochs[place] >= 0:
            cache.assign(int(epochs[place]), int(headers.offsets[place]))
        elif not (headers.is_v2[place] or cache.is_empty):
            cache.clear_and_flush()


def decisive_batches(headers: BatchHeaders) -> Int64Array:
    """Return the places of the batches after which producers have the state that all would give."""
    of_producers = np.flatnonzero(headers.is_v2 & (headers.producer_ids >= 0))
    if of_producers.size <= NUM_BATCHES_TO_RETAIN:
        return of_producers
    is_control, is_transactional = headers.is_control, headers.is_transactional
    # By producer, then in the order of the log.
    order = of_producers[np.argsort(headers.producer_ids[of_producers], kind="stable")]
    ids, control = headers.producer_ids[order], is_control[order]
    is_first = np.concatenate(([True], ids[1:] != ids[:-1]))
    after_marker = np.concatenate(([False], control[:-1]))
    after_plain = np.concatenate(([False], ~is_transactional[order][:-1]))
    decides = control | is_first | after_marker | after_plain & is_transactional[order]
    # The last data batches of each producer: counted from the end.
    data = np.flatnonzero(~control)
    ends = np.searchsorted(ids[data], ids[data], side="right")
    decides[data[ends - np.arange(data.size) <= NUM_BATCHES_TO_RETAIN]] = True
    found: Int64Array = np.sort(order[decides])
    return found


def _replay(
    state: LogState, segment: LogSegment, records: memoryview, start: int, position: int
) -> None:
    """Let the state of producers know of a batch, and the transaction index of what it aborts."""
    batch = PositionedHeader(position + start, parse_batch_header(records, start))
    producers = state.producer_state
    for transaction in replay_batch(producers, segment, batch):
        # Before it counts as completed: the other open transactions decide.
        last_stable_offset = producers.last_stable_offset(transaction)
        segment.update_transaction_index(transaction, last_stable_offset)
        producers.complete_transaction(transaction)
