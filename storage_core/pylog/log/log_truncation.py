"""Removing records: the end of a log from an offset on, or everything.

A batch goes as a whole or not at all. The segments go first, the newest before the older ones;
then, at once and before anything can fail, the log start offset is brought below the new end;
then leader epochs and producers are brought back to the new end, and the watermarks.

Source: UnifiedLog.truncateTo, truncateFullyAndStartAt, LogManager.truncateTo (Kafka 4.3).
"""

from __future__ import annotations

import logging
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pylog.errors import OffsetInsideBatchError, OffsetOutOfRangeError
from pylog.locations import printable_location
from pylog.log.local_log import delete_segment_files, mark_snapshots_for_deletion
from pylog.log.segment_recovery import rebuild_producer_state
from pylog.record.legacy_batch import batch_offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pylog.log.log_state import LogState
    from pylog.log.metrics import CleanerMetrics
    from pylog.model import TopicPartition


_LOGGER = logging.getLogger(__name__)


# The cleaner of a manager's logs, as far as the logs have to know of it.
#
# A cleaner (`pylog.cleaner.log_cleaner`) stands above the logs and registers itself. Whoever takes
# away what it may be working on has it stop first, and keeps it away until that is done::
#
#     with cleaner.paused(topic_partition):   # a cleaning under way has ended, none begins
#         ...                                 # the log's lock is taken here, and never before
#
# Source: LogManager.cleaner, .abortAndPauseCleaning, .truncateTo (Kafka 4.3).


class LogCleaning(Protocol):
    """What a manager and its logs ask of a cleaner; any thread may, but one of the cleaner's."""

    def abort_and_pause_cleaning(self, topic_partition: TopicPartition) -> None:
        """Return when no cleaning of a log is under way; none begins until it is resumed.

        The caller holds no lock that cleaning takes: no log's, no directory's.
        """
        ...

    def resume_cleaning(self, topic_partition: TopicPartition) -> None:
        """Undo one `abort_and_pause_cleaning`."""
        ...

    def shutdown(self) -> None:
        """Return when no thread cleans any more; what one was at has been left as it was."""
        ...

    def metrics(self) -> CleanerMetrics:
        """Return the cleaner's numbers."""
        ...


class RegisteredCleaner:
    """The cleaner of one manager, or that there is none. Any number of threads may ask."""

    def __init__(self) -> None:
        self._cleaner: LogCleaning | None = None

    def register(self, cleaner: LogCleaning) -> None:
        """Make a cleaner the manager's."""
        if self._cleaner is not None:
            msg = "the log manager has a cleaner already; shut that down first"
            raise RuntimeError(msg)
        self._cleaner = cleaner

    def unregister(self, cleaner: LogCleaning) -> None:
        """Forget a cleaner that has been shut down; nothing if it is not the manager's."""
        if self._cleaner is cleaner:
            self._cleaner = None

    @contextmanager
    def paused(self, topic_partition: TopicPartition) -> Iterator[None]:
        """Enter when no cleaning of a log is under way, and let none begin within the block."""
        cleaner = self._cleaner
        if cleaner is None:
            yield
            return
        cleaner.abort_and_pause_cleaning(topic_partition)
        try:
            yield
        finally:
            cleaner.resume_cleaning(topic_partition)

    def shutdown(self) -> None:
        """Shut the cleaner down, if there is one."""
        if self._cleaner is not None:
            self._cleaner.shutdown()

    def metrics(self) -> CleanerMetrics | None:
        """Return the cleaner's numbers, None if there is none."""
        return None if self._cleaner is None else self._cleaner.metrics()


@dataclass(slots=True, kw_only=True)
class TruncationGuard:
    """What a truncation of one log needs around it, besides the log's lock.

    A truncation that reaches below the active segment takes segments that a cleaner may be
    copying: the cleaner is stopped *before* the lock is taken, since it takes the lock itself.
    """

    cleaner: RegisteredCleaner = field(default_factory=RegisteredCleaner)
    lower_cleaner_checkpoint: Callable[[TopicPartition, int], object] = lambda *_: None
    checkpoint_after_truncation: Callable[[], object] = lambda: None

    @contextmanager
    def truncating(
        self,
        state: LogState,
        target_offset: int,
    ) -> Iterator[None]:
        """Hold the log's lock while its end goes back to an offset."""
        # A forked child must not wait for a thread that it does not have.
        state.context.io.ensure_own_process(state.local_log.directory)
        topic_partition, segments = state.local_log.topic_partition, state.local_log.segments
        is_done = False
        while not is_done:
            takes_segments = target_offset < segments.active_segment.base_offset
            with (
                self.cleaner.paused(topic_partition) if takes_segments else nullcontext(),
                state.changing(),
            ):
                if not takes_segments and target_offset < segments.active_segment.base_offset:
                    continue  # the log was rolled before the lock was taken
                if takes_segments:
                    active = segments.floor_segment(target_offset)
                    base_offset = target_offset if active is None else active.base_offset
                    self.lower_cleaner_checkpoint(topic_partition, base_offset)
                with self._checkpointing(state):
                    yield
                is_done = True

    @contextmanager
    def removing_all(
        self,
        state: LogState,
        new_offset: int,
    ) -> Iterator[None]:
        """Do the same while all records are removed, and the log begins again at an offset."""
        state.context.io.ensure_own_process(state.local_log.directory)
        topic_partition = state.local_log.topic_partition
        with self.cleaner.paused(topic_partition), state.changing():
            self.lower_cleaner_checkpoint(topic_partition, new_offset)
            with self._checkpointing(state):
                yield

    @contextmanager
    def _checkpointing(self, state: LogState) -> Iterator[None]:
        """Write the checkpoints if the block brings the log's end back."""
        count = state.truncation_count
        yield
        if state.truncation_count != count:
            self.checkpoint_after_truncation()


def ensure_not_negative(state: LogState, target_offset: int) -> None:
    """Raise `ValueError` if a log is to be truncated to an offset that cannot be."""
    if target_offset < 0:
        msg = f"cannot truncate {state.name} to the negative offset {target_offset}"
        raise ValueError(msg)


def truncate_to(state: LogState, target_offset: int) -> bool:
    """Remove everything from ``target_offset`` on; False if nothing is there.

    The batch that holds the offset goes as a whole, and the log ends at ``target_offset`` all the
    same. The caller holds the log's lock.
    """
    local_log = state.local_log
    if target_offset >= state.log_end_offset:
        # A leader that appended nothing has noted its epoch at the end all the same.
        state.leader_epochs.truncate_from_end(state.log_end_offset)
        return False
    _LOGGER.info(
        "truncating %s to offset %d", printable_location(local_log.directory), target_offset
    )
    if target_offset < local_log.segments.first_segment.base_offset:
        truncate_fully_and_start_at(state, target_offset)
        return True
    removed = local_log.truncate_to(target_offset)
    # At once: the start is never above the end, whatever fails from here on.
    state.log_start_offset = min(target_offset, state.log_start_offset)
    snapshots = mark_snapshots_for_deletion(state.producer_state, removed)
    if snapshots:
        delete_segment_files((), state.config, state.context, snapshots=snapshots)
    state.leader_epochs.truncate_from_end(target_offset)
    _bring_back_to(state, target_offset)
    return True


def truncate_fully_and_start_at(
    state: LogState, new_offset: int, log_start_offset: int | None = None
) -> None:
    """Remove all records and start again at ``new_offset``; the caller holds the log's lock."""
    local_log = state.local_log
    _LOGGER.info(
        "deleting all of %s, to begin at offset %d",
        printable_location(local_log.directory),
        new_offset,
    )
    local_log.truncate_fully_and_start_at(new_offset)
    state.log_start_offset = new_offset if log_start_offset is None else log_start_offset
    state.leader_epochs.clear_and_flush()
    state.producer_state.truncate_fully_and_start_at(new_offset)
    _bring_back_to(state, new_offset)


def _bring_back_to(state: LogState, end_offset: int) -> None:
    """Bring producers and watermarks back to the log's new end."""
    rebuild_producer_state(
        state.producer_state,
        state.local_log.segments,
        state.log_start_offset,
        end_offset,
        now_ms=state.context.clock.milliseconds(),
        is_clean=False,
    )
    state.truncation_count += 1
    # Differs from Kafka, which leaves the first unstable offset as it was where the high
    # watermark lies below the new end: a transaction that was removed would hold readers back.
    state.update_high_watermark(state.high_watermark)


def boundary_at(state: LogState, offset: int, *, takes_whole_batch: bool) -> int:
    """Return where to truncate so that everything from ``offset`` on goes, and no half batch."""
    if offset < state.log_start_offset:
        raise OffsetOutOfRangeError(
            state.name, offset, state.log_start_offset, state.log_end_offset
        )
    if offset >= state.log_end_offset:
        return offset
    local_log = state.local_log
    fetched = local_log.read(
        offset,
        1,
        local_log.log_end_offset_metadata,
        min_one_message=True,
        include_aborted=False,
    )
    if fetched.records:
        around = batch_offsets(memoryview(fetched.records))
        if around.are_cut_at(offset):
            if not takes_whole_batch:
                raise OffsetInsideBatchError(state.name, offset, *around)
            return around.first
    return offset
