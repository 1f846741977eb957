"""Opening a partition directory as its owner: what a broker's start-up does.

1. Leftovers are tidied (`pylog.log_file.file_records`).
2. Every ``.log`` becomes a segment. Without an offset index, or with a transaction index that
   cannot be, the segment is recovered, also after a clean stop. A missing time index stays empty.
   A segment with offsets beyond 32 bits is split, and loading begins again.
3. After a stop that was not clean the segments from the recovery point on are recovered
   (`pylog.log.segment_recovery`). Where bytes are cut off, all later segments go; unless there is
   an intact batch in what would go: then the log stays as it is.
4. The end is after the last batch; after a clean stop it is where checkpoint and producer
   snapshot agree that it is. Where it lies below the checkpointed log start, the log begins anew
   there; a broker deletes all segments before.
5. Leader epochs beyond the end and below the start go, snapshots that belong to no segment go, and
   producers are read from the newest snapshot and the batches after it.

Source: LogLoader (Kafka 4.3; 3.9 fails the log directory at an I/O error in step 3).
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from pylog.config import RecoveryMode
from pylog.errors import (
    CorruptIndexError,
    CorruptRecordError,
    IndexOffsetOverflowError,
    InvalidOffsetError,
    LogSegmentOffsetOverflowError,
    SegmentVanishedError,
    UnexpectedFileError,
)
from pylog.files import disk
from pylog.files.file_names import (
    CLEANED_FILE_SUFFIX,
    INDEX_FILE_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_FILE_SUFFIX,
    PARTITION_METADATA,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    SEGMENT_FILE_SUFFIXES,
    SWAP_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    SegmentTarget,
    file_name_prefix,
    parse_partition_directory_name,
)
from pylog.files.java_numbers import find_offset_of
from pylog.files.leader_epochs import LeaderEpochFileCache
from pylog.files.overlay import Overlay
from pylog.files.owned_directories import base_offsets_of_logs, file_names
from pylog.files.partition_metadata import read_partition_metadata
from pylog.locations import join, printable_location
from pylog.log.local_log import LocalLog, delete_segment_files, mark_snapshots_for_deletion
from pylog.log.log_segments import LogSegments
from pylog.log.log_state import LogState
from pylog.log.log_truncation import TruncationGuard
from pylog.log.segment_recovery import (
    Damage,
    SegmentRecovery,
    ensure_nothing_intact,
    rebuild_producer_state,
)
from pylog.log.segment_splitting import split_overflowed_segment
from pylog.log.unified_log import UnifiedLog
from pylog.log_file.batch_walk import HIGHEST_OFFSET, is_zero
from pylog.log_file.leftover_files import tidy_directory
from pylog.producers.producer_state_manager import ProducerSnapshots, ProducerStateManager

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylog.config import LogConfig, LogManagerConfig
    from pylog.log.log_context import LogContext
    from pylog.log.log_segment import LogSegment
    from pylog.model import TopicPartition

_LOGGER = logging.getLogger(__name__)
_NAMED_BY_OFFSET = (
    *SEGMENT_FILE_SUFFIXES,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    CLEANED_FILE_SUFFIX,
    SWAP_FILE_SUFFIX,
)
"""Ends of names of which a broker reads the number before the first dot."""
_NO_OFFSET = 2**63
"""Above every offset."""


@dataclass(slots=True, kw_only=True)
class LogLoading:
    """One start of one log."""

    directory: str
    config: LogConfig
    manager_config: LogManagerConfig
    context: LogContext
    had_clean_shutdown: bool
    recovery_point_checkpoint: int = 0
    log_start_offset_checkpoint: int = 0
    truncation_guard: TruncationGuard = field(default_factory=TruncationGuard)
    recovery_mode: RecoveryMode = RecoveryMode.KEEP_INTACT
    high_watermark_start: Callable[[int, int], int] = lambda start, _end: start
    recovered_segments: list[str] = field(default_factory=list)
    truncated_bytes: int = 0
    # Whether a transaction was open, or had ended in batches that no snapshot had.
    had_unstable_offset: bool = False

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the log."""
        name = os.path.basename(self.directory.rstrip("/"))  # noqa: PTH119
        return parse_partition_directory_name(name).topic_partition


def load_log(loading: LogLoading) -> UnifiedLog:
    """Open, and where necessary repair, the log in a directory; its end is where it is safe."""
    return _LogLoader(loading).load()


def load_deleted(loading: LogLoading) -> None:
    """Do what a broker does with a directory that is being deleted: load it, and recover nothing.

    Source: LogLoader.load (Kafka 4.3).
    """
    _LogLoader(loading).load_segments()


def try_loading(loading: LogLoading) -> None:
    """Raise what recovery would end with before it drops anything; nothing is changed."""
    with Overlay(is_quiet=True) as overlay:
        context = replace(loading.context, io=overlay)
        directory = overlay.path(loading.directory)
        trial = replace(loading, context=context, directory=directory)
        _LogLoader(trial, is_trial=True).try_recovery()


class _TrialEndedError(Exception):
    """What comes next cannot be tried on a disk that forgets."""


class _LogLoader:
    def __init__(self, loading: LogLoading, *, is_trial: bool = False) -> None:
        self._loading = loading
        self._is_trial = is_trial
        self._topic_partition = loading.topic_partition
        self._warn = partial(_LOGGER.log, loading.context.io.warning_level)
        self._directory = loading.directory
        self._is_broker_start = loading.recovery_mode is RecoveryMode.BROKER_START
        self._checks_order = not self._is_broker_start
        self._config = loading.config
        self._context = loading.context
        self._segments = LogSegments()
        self._snapshots = ProducerSnapshots(loading.directory, loading.context.io)
        self._producer_state = self._new_producer_state()
        self._leader_epochs = LeaderEpochFileCache(
            self._topic_partition,
            os.path.join(self._directory, LEADER_EPOCH_CHECKPOINT),  # noqa: PTH118
            io=self._context.io,
        )

    def _new_producer_state(self) -> ProducerStateManager:
        loading = self._loading
        return ProducerStateManager(
            self._topic_partition,
            loading.directory,
            io=loading.context.io,
            producer_id_expiration_ms=loading.manager_config.producer_id_expiration_ms,
            snapshots=self._snapshots,
        )

    def load(self) -> UnifiedLog:
        loading = self._loading
        below = self._base_offset_below_zero(self._tidy())
        self._load_segments()
        recovery_point, end = self._recover_log()
        first_base = min(below, self._segments.first_segment.base_offset)
        start = max(loading.log_start_offset_checkpoint, first_base)
        self._segments.active_segment.create_indexes()
        self._leader_epochs.truncate_from_end(end)
        self._leader_epochs.truncate_from_start(start)
        if not self._producer_state.is_empty:
            reason = f"producer state of {self._directory} is not empty before it is loaded"
            raise RuntimeError(reason)
        self._producer_state = self._new_producer_state()
        self._producer_state.remove_stray_snapshots(self._segments.base_offsets)
        rebuild_producer_state(
            self._producer_state,
            self._segments,
            start,
            end,
            now_ms=self._context.clock.milliseconds(),
            is_clean=loading.had_clean_shutdown,
            checks_order=self._checks_order,
        )
        local_log = LocalLog(
            self._directory,
            self._topic_partition,
            self._config,
            self._context,
            self._segments,
            recovery_point=max(recovery_point, start),
            log_end_offset=end,
        )
        state = LogState(
            local_log,
            self._producer_state,
            self._leader_epochs,
            log_start_offset=start,
            context=self._context,
        )
        unstable = state.first_unstable_offset
        loading.had_unstable_offset = unstable is not None
        if unstable is not None and self._is_broker_start:
            # Damage there ends a broker (UnifiedLog.maybeIncrementFirstUnstableOffset, Kafka 4.4).
            local_log.locate(unstable, checks_order=False)
        state.start_high_watermark(loading.high_watermark_start(start, end))
        return UnifiedLog(state, loading.truncation_guard)

    def load_segments(self) -> None:
        """Load the segments alone, and close them."""
        self._tidy()
        try:
            self._load_segments()
        finally:
            for segment in self._segments:
                segment.close_handlers()

    def _tidy(self) -> Sequence[str]:
        """Remove what a crash has left; return the names that a broker's start has found."""
        names: Sequence[str] = ()
        if self._is_broker_start:
            names = file_names(self._directory)
            self._ensure_loadable(names)
            self._open_swap_files(names)
        tidy_directory(self._directory, self._context.io)
        self._snapshots.reload()
        return names

    def _ensure_loadable(self, names: Sequence[str]) -> None:
        """Raise for what ends a broker before it looks at segments.

        Source: UnifiedLog.initializeTopicId, LogFileUtils.offsetFromFileName (Kafka 4.3).
        """
        with suppress(SegmentVanishedError):
            path = os.path.join(self._directory, PARTITION_METADATA)  # noqa: PTH118
            read_partition_metadata(path)
        if isinstance(self._context.io, Overlay):
            self._context.io.ensure_readable(self._directory, names)
        for name in names:
            if name.endswith(_NAMED_BY_OFFSET) and find_offset_of(name) is None:
                reason = "what is before the first dot of the file's name is not an offset"
                raise UnexpectedFileError(reason, join(self._directory, name))

    def _open_swap_files(self, names: Sequence[str]) -> None:
        """Make empty indexes of ``.log.swap`` files that lack them.

        A broker does when it asks for the last offset in such a file, and does not recover the
        segment afterwards: its indexes are there. Where a file has another name than its offset
        gives it, an empty one is made under that, and takes the place of the segment.

        Source: LogLoader.load, LogSegment.open, LogSegment.readNextOffset (Kafka 4.4).
        """
        for name in sorted(names):
            offset = find_offset_of(name)
            if not name.endswith(LOG_FILE_SUFFIX + SWAP_FILE_SUFFIX):
                continue
            if offset is None or offset < 0:
                continue
            prefix = file_name_prefix(offset)
            for suffix in (LOG_FILE_SUFFIX, INDEX_FILE_SUFFIX):
                made = prefix + suffix + SWAP_FILE_SUFFIX
                if made not in names:
                    path = os.path.join(self._directory, made)  # noqa: PTH118
                    with self._context.io.open(path, create=True):
                        pass

    def try_recovery(self) -> None:
        with suppress(_TrialEndedError):
            try:
                self._load_segments()
                self._recover_log()
            finally:
                for segment in self._segments:
                    segment.close_handlers()

    # ---- segments

    def _load_segments(self) -> None:
        while True:
            overflowed = self._try_to_load_segments()
            if overflowed is None:
                return
            self._split(overflowed)

    def _split(self, overflowed: LogSegment) -> None:
        """Split a segment; the map is empty then."""
        if self._is_trial:
            raise _TrialEndedError
        split_overflowed_segment(overflowed, self._config, self._context)
        for segment in self._segments:
            segment.close_handlers()
        self._segments = LogSegments()

    def _try_to_load_segments(self) -> LogSegment | None:
        """Fill the map; return a segment that has to be split first, if there is one."""
        loaded = []
        names = file_names(self._directory)
        base_offsets = self._base_offsets(names)
        unflushed_from = self._first_unflushed_base(base_offsets)
        for base_offset in base_offsets:
            target = SegmentTarget(self._directory, base_offset)
            is_new = file_name_prefix(base_offset) + LOG_FILE_SUFFIX not in names
            segment = self._context.open_segment(target, self._config, is_new=is_new)
            loaded.append(segment)
            time_index = file_name_prefix(base_offset) + TIME_INDEX_FILE_SUFFIX
            # A folder is there, too: it is not opened before somebody reads it.
            path = os.path.join(self._directory, time_index)  # noqa: PTH118 - kept as text
            has_time_index = disk.exists(path)
            try:
                segment.sanity_check(is_time_index_new=not has_time_index)
            except (SegmentVanishedError, CorruptIndexError) as error:
                if base_offset >= unflushed_from and not self._is_broker_start:
                    # Recovered in its turn: segments before it may be damaged, too. Differs from
                    # Kafka, which recovers it now: if the leader epochs are gone as well, those of
                    # the segments before it would count as outdated and be lost.
                    continue
                self._warn("recovering segment %s: %s", printable_location(segment.log.path), error)
                self._segments = LogSegments(loaded)
                try:
                    self._recover_flushed_segment(segment)
                except LogSegmentOffsetOverflowError:
                    return segment
        self._segments = LogSegments(loaded)
        return None

    def _base_offsets(self, names: Sequence[str]) -> list[int]:
        """Return where segments begin. A broker makes a segment where a name is no usual one.

        Not below 0, where nobody looks for a record.
        """
        if not self._is_broker_start:
            return base_offsets_of_logs(names)
        found = (find_offset_of(name) for name in names if name.endswith(LOG_FILE_SUFFIX))
        return sorted({offset for offset in found if offset is not None and offset >= 0})

    def _base_offset_below_zero(self, names: Sequence[str]) -> int:
        """Return where the log begins below 0, by names such as ``-1.log``, else no offset.

        A broker makes a segment there, and recovers it, since it has no index: no producer
        snapshot is as old.
        """
        found = [find_offset_of(each) or 0 for each in names if each.endswith(LOG_FILE_SUFFIX)]
        first = min((each for each in found if each < 0), default=_NO_OFFSET)
        if first < 0 and f"-{-first:020d}{INDEX_FILE_SUFFIX}" not in names:
            self._snapshots.remove(self._snapshots.offsets)
        return first

    def _first_unflushed_base(self, base_offsets: Sequence[int]) -> int:
        """Return the base offset from which on all segments are recovered after an unclean stop."""
        if self._loading.had_clean_shutdown:
            return _NO_OFFSET
        checkpoint = self._loading.recovery_point_checkpoint
        flushed = [base for base in base_offsets if base <= checkpoint]
        return max(flushed, default=min(base_offsets, default=_NO_OFFSET))

    def _recover_flushed_segment(self, segment: LogSegment) -> None:
        """Recover a segment that no later start recovers because of the recovery point.

        Until all its indexes are on the disk, its offset index has a name that start-up removes. So
        a start after a crash recovers it again. Differs from Kafka: there the offset index is back
        at once, and aborted transactions stay missing from the transaction index.
        """
        index = segment.offset_index
        path = index.path
        index.rename_to(path + CLEANED_FILE_SUFFIX, missing_ok=True)
        self._context.io.sync_directory(self._directory)
        try:
            self._recover_segment(segment, self._before_cut)
        except LogSegmentOffsetOverflowError:
            index.delete_if_exists()  # it has the name of one that the split makes
            raise
        segment.flush()
        index.rename_to(path)
        self._context.io.sync_directory(self._directory)

    def _recover_segment(self, segment: LogSegment, before_cut: Callable[[Damage], None]) -> int:
        """Recover one segment with producers of its own; return how many bytes were cut off."""
        producer_state = self._new_producer_state()
        if self._is_trial:
            recovery = SegmentRecovery(segment, producer_state, None, before_cut, only_markers=True)
            return recovery.recover()
        rebuild_producer_state(
            producer_state,
            self._segments,
            max(self._loading.log_start_offset_checkpoint, 0),
            segment.base_offset,
            now_ms=self._context.clock.milliseconds(),
            is_clean=False,
            checks_order=self._checks_order,
        )
        cut = SegmentRecovery(
            segment,
            producer_state,
            self._leader_epochs,
            before_cut,
            is_broker_start=self._is_broker_start,
        ).recover()
        # Once the scan is complete, so that the next segment's does not begin at an old snapshot.
        producer_state.take_snapshot()
        self._loading.recovered_segments.append(segment.log.path)
        self._loading.truncated_bytes += cut
        return cut

    # ---- recovery

    def _recover_log(self) -> tuple[int, int]:
        """Recover what may not be on disk; return the recovery point and the end."""
        loading = self._loading
        if loading.had_clean_shutdown and not self._is_broker_start:
            self._distrust_marker()
        if not loading.had_clean_shutdown:
            self._recover_unflushed()
        end = self._end_or_drop_all()
        if not len(self._segments):
            base = loading.log_start_offset_checkpoint
            target = SegmentTarget(self._directory, base)
            self._segments.add(self._context.open_segment(target, self._config, is_new=True))
            end = base
        if loading.had_clean_shutdown:
            return end, end
        return min(loading.recovery_point_checkpoint, end), end

    def _distrust_marker(self) -> None:
        """Recover the log all the same if its last segment does not end with a whole batch.

        Other damage there is no crash's, and nothing to be cut off unasked.

        Kafka believes it. It reads the last segment from its last index entry on: zeros there, 18
        bytes or more, end the broker. After fewer, or after a torn batch, it starts, and what it
        appends behind them cannot be read.
        """
        if not len(self._segments):
            return
        active = self._segments.active_segment
        try:
            end = active.read_end(checks_order=self._checks_order)
            has_own_offsets = end.offset > active.base_offset or not active.size_bytes
            is_possible = has_own_offsets and end.offset <= HIGHEST_OFFSET
            if end.position == active.size_bytes and is_possible:
                return
            path = printable_location(active.log.path)
            reason = (
                f"the last batch of {path} ends at byte {end.position} of "
                f"{active.size_bytes}, before offset {end.offset}"
            )
        except CorruptRecordError as error:
            is_rest_zero = is_zero(active.log, error.position or 0, active.size_bytes)
            if self._loading.recovery_mode.keeps_intact and not is_rest_zero:
                raise
            reason = f"{error}; a broker would not start"
        self._warn(
            "recovering %s, although the log directory was shut down cleanly: %s",
            printable_location(self._directory),
            reason,
        )
        self._loading.had_clean_shutdown = False

    def _recover_unflushed(self) -> None:
        while True:
            overflowed = self._try_to_recover_unflushed()
            if overflowed is None:
                return
            self._split(overflowed)
            self._load_segments()

    def _try_to_recover_unflushed(self) -> LogSegment | None:
        """Recover; return a segment that has to be split first, if there is one."""
        unflushed_from = self._first_unflushed_base(self._segments.base_offsets)
        unflushed = self._segments.values_from(unflushed_from)
        for index, segment in enumerate(unflushed):
            _LOGGER.info(
                "recovering unflushed segment %s (%d of %d)",
                printable_location(segment.log.path),
                index + 1,
                len(unflushed),
            )
            before_cut = partial(self._before_cut, later=unflushed[index + 1 :])
            try:
                cut = self._recover_segment(segment, before_cut)
            except LogSegmentOffsetOverflowError:
                return segment
            except (InvalidOffsetError, IndexOffsetOverflowError) as error:
                before_cut(Damage(segment, 0, error.reason))
                cut = max(1, segment.truncate_to(segment.base_offset))
            if cut:
                # Also the one just taken, if at the base offset of a removed segment: a snapshot
                # holds one batch of each producer, the log up to five.
                self._remove_snapshots(unflushed[index + 1 :])
                return None
        return None

    def _before_cut(self, damage: Damage, later: tuple[LogSegment, ...] = ()) -> None:
        """Remove the segments after one that is about to be truncated, the last one first."""
        self._ensure_droppable(damage, later)
        path, size_bytes = printable_location(damage.segment.log.path), damage.segment.size_bytes
        self._warn(
            "recovering %s: truncating %d bytes from position %d on: %s",
            *(path, size_bytes - damage.position, damage.position, damage.reason),
        )
        if later:
            self._warn("deleting the %d segments after %s", len(later), path)
            self._remove(later[::-1])
            self._context.io.sync_directory(self._directory)

    def _end_or_drop_all(self) -> int:
        """Return the log's end. One below its start becomes the start; a broker drops all then."""
        if not len(self._segments):
            return 0
        end = self._find_recorded_end()
        if end is None:
            active = self._segments.active_segment
            end = active.read_end(checks_order=self._checks_order).offset
        start = self._loading.log_start_offset_checkpoint
        if start <= end <= HIGHEST_OFFSET:  # Kafka's is negative behind that
            return end
        reason = f"the log ends at offset {end}, below its start {start}"
        if self._loading.recovery_mode.keeps_intact:
            # Consumers get the same. The segments are retention's, as all below a log's start.
            self._warn("beginning %s at its start: %s", printable_location(self._directory), reason)
            target = SegmentTarget(self._directory, start)
            segment = self._context.open_segment(target, self._config, is_new=True)
            self._segments.add(segment)
            end = start
        else:
            self._warn(
                "deleting all segments of %s: %s", printable_location(self._directory), reason
            )
            self._remove(tuple(self._segments))
            end = 0
        self._leader_epochs.clear_and_flush()
        self._producer_state.truncate_fully_and_start_at(start)
        return end

    def _ensure_droppable(self, damage: Damage, later: Sequence[LogSegment]) -> None:
        if self._loading.recovery_mode.keeps_intact:
            ensure_nothing_intact(damage, later)

    def _find_recorded_end(self) -> int | None:
        """Return the end that a clean shutdown recorded, None where the log has to be read."""
        # Differs from Kafka, which reads the last segment from its last index entry on. So an end
        # that lies after a gap, as after a truncation inside a batch, outlives a clean restart.
        loading, active = self._loading, self._segments.active_segment
        if self._is_broker_start:
            return None
        end = loading.recovery_point_checkpoint
        is_agreed = (
            loading.had_clean_shutdown and self._producer_state.latest_snapshot_offset == end
        )
        has_records = end > active.base_offset
        if not is_agreed or end < active.base_offset or has_records != bool(active.size_bytes):
            return None
        return end

    def _remove(self, segments: tuple[LogSegment, ...]) -> None:
        self._segments.replace(segments, ())
        snapshots = mark_snapshots_for_deletion(self._producer_state, segments)
        delete_segment_files(segments, self._config, self._context, snapshots=snapshots)

    def _remove_snapshots(self, segments: Sequence[LogSegment]) -> None:
        snapshots = mark_snapshots_for_deletion(self._new_producer_state(), segments)
        delete_segment_files((), self._config, self._context, snapshots=snapshots)
