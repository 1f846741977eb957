"""Table ``cleaning``: what of each segment is still needed, and when retention deletes it.

================== ============ =========================================================
column             type         meaning
================== ============ =========================================================
segment            string       name of the ``.log`` file
base_offset        int64        what that name says
next_offset        int64        offset after the last batch; base_offset without a batch
size_in_bytes      int64        length of the ``.log`` file
records            int64        control records too; null where a compressed v0/v1 wrapper hides
                                how many it holds
live_records       int64        those that are needed, see below; null where headers do not tell
dead_records       int64        those that are not needed; null likewise
live_bytes         int64        what live records take of the file's whole batches; null likewise
dead_bytes         int64        what dead records take of them; null likewise
cleanup_policy     list<string> the topic's; null where its configuration is not known
first_dirty_offset int64        where the log's next cleaning begins, by the cleaner's checkpoint;
                                null unless the topic is compacted
dirty_ratio        double       of the log, what a broker compares with
                                ``min.cleanable.dirty.ratio``; null likewise
deletion_reason    string       by what retention deletes the segment, "log start offset",
                                "retention.bytes" or "retention.ms"; null if nothing does, or the
                                topic's configuration is not known
deletion_time      timestamp    the first moment at which a run of retention deletes it for its age;
                                null for the other reasons, by which the next run deletes it
freed_bytes        int64        how many bytes are gone from the log when it is; null where
                                deletion_reason is
path               string       of the ``.log`` file
defects            list<string> what is wrong with the side files that this is made of, each with
                                its path; empty if nothing. What is unknown because of it is null
================== ============ =========================================================

So the first row of a log that has a deletion_reason tells its next deletion.

A record is dead that no consumer gets, because it lies below the log start offset, and one that a
cleaning of the whole log up to its last stable offset would remove: one of an aborted transaction,
one that a later record with its key replaces, one without a key. Tombstones and transaction markers
count as live: when those go, the clock decides. Headers show which batches lie below the log start;
that is all there is to say of a topic that is not compacted. Of one that is, and of one whose
configuration is not known, the four columns are null unless keys are asked for
(``check_keys=True``), which reads all records.

A batch's bytes are shared by its records, by their length before compression. What a topic is
configured to is known where it is stored beside the logs (`pylog.files.topic_configs`): a directory
that was copied from a broker has nothing of it. Of a directory in a store the columns from
first_dirty_offset to freed_bytes are null: nothing cleans it there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from pylog.cleaner.cleanable_offsets import CleanableBytes, CleanableOffsets, CleanableParams
from pylog.clock import SystemClock
from pylog.errors import CorruptCheckpointError
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.file_names import CLEANER_OFFSET_CHECKPOINT
from pylog.files.topic_configs import TOPIC_CONFIGS, TopicConfigs, read_topic_configs
from pylog.inspect.header_windows import SegmentHeaders
from pylog.inspect.live_records import LiveRecords, find_live_records
from pylog.inspect.tables.row_batches import TIMESTAMP, record_batches, table_schema
from pylog.locations import is_remote, join, name_of
from pylog.log.retention import (
    RetentionParams,
    RetentionReason,
    deletable_segments,
)
from pylog.reading.damage import Attempts
from pylog.reading.dated_segments import dated_segments
from pylog.reading.transactions import find_last_stable_offset
from pylog.record.append_rules import MAX_INT64

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylog.clock import Clock
    from pylog.config import LogConfig
    from pylog.reading.log_view import LogView

CLEANING_SCHEMA = table_schema(
    ("segment", pa.string()),
    ("base_offset", pa.int64()),
    ("next_offset", pa.int64()),
    ("size_in_bytes", pa.int64()),
    ("records", pa.int64()),
    ("live_records", pa.int64()),
    ("dead_records", pa.int64()),
    ("live_bytes", pa.int64()),
    ("dead_bytes", pa.int64()),
    ("cleanup_policy", pa.list_(pa.string())),
    ("first_dirty_offset", pa.int64()),
    ("dirty_ratio", pa.float64()),
    ("deletion_reason", pa.string()),
    ("deletion_time", TIMESTAMP),
    ("freed_bytes", pa.int64()),
    ("path", pa.string()),
    ("defects", pa.list_(pa.string())),
)


class _Deletion(NamedTuple):
    """When and why retention deletes a segment, and what is gone then."""

    reason: str | None = None
    time_ms: int | None = None
    freed_bytes: int | None = None


class _Dirtiness(NamedTuple):
    """Of a whole log, as a cleaner sees it."""

    first_dirty_offset: int | None = None
    ratio: float | None = None


def cleaning_of(
    view: LogView, *, check_keys: bool = False, clock: Clock | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the segments of one partition, after a look at all headers.

    Parameters
    ----------
    view
        The log.
    check_keys
        Whether to read all records, twice, to know which keys have a later one; for topics that are
        compacted, or whose configuration is not known.
    clock
        For ``min.compaction.lag.ms``; the system's if None.

    Raises
    ------
    CorruptRecordError, InvalidRecordError
        A header is impossible, or offsets go back; with ``check_keys`` also records.
    """
    rows = _rows(view, SystemClock() if clock is None else clock, check_keys=check_keys)
    return record_batches(view.topic_partition, rows, CLEANING_SCHEMA)


def _rows(view: LogView, clock: Clock, *, check_keys: bool) -> Iterator[tuple[object, ...]]:
    attempts = Attempts()
    config = attempts.read(lambda: find_config(view))
    start_offset = attempts.read(lambda: view.log_start_offset)
    segments = [_Segment.of(view, index, start_offset) for index in range(len(view.segments))]
    lives: Sequence[LiveRecords | None] = [None] * len(segments)
    deletions: list[_Deletion] | None = None
    dirtiness: _Dirtiness | None = None
    if start_offset is not None and segments:
        if config is not None and not config.is_compact:
            lives = [segment.live for segment in segments]
        elif check_keys:
            lives = find_live_records(view)
        if config is not None and not is_remote(view.directory.path):
            deletions = attempts.read(lambda: _deletions(view, config))
            if config.is_compact:
                dirtiness = attempts.read(lambda: _dirtiness(view, config, clock))
    deletions = deletions or []
    deletions += [_Deletion()] * (len(segments) - len(deletions))
    policy = None if config is None else sorted(config.cleanup_policy)
    defects = [str(error) for error in attempts.errors]
    for segment, live, deletion in zip(segments, lives, deletions, strict=True):
        yield (
            name_of(segment.path),
            segment.base_offset,
            segment.next_offset,
            segment.size_bytes,
            segment.live.records if live is None else live.records,
            *_live_and_dead(segment, live),
            policy,
            *(dirtiness or _Dirtiness()),
            *deletion,
            segment.path,
            defects,
        )


def _live_and_dead(
    segment: _Segment, live: LiveRecords | None
) -> tuple[int | None, int | None, int | None, int | None]:
    """Return live and dead records, then live and dead bytes."""
    if live is None:
        return None, None, None, None
    live_bytes = round(live.live_bytes)
    dead_records = None
    if live.records is not None and live.live_records is not None:
        dead_records = live.records - live.live_records
    return live.live_records, dead_records, live_bytes, segment.valid_bytes - live_bytes


@dataclass(frozen=True, slots=True)
class _Segment:
    """What the headers of a segment say.

    Attributes
    ----------
    valid_bytes
        What its whole batches take.
    live
        What is not below the log start offset.
    """

    base_offset: int
    next_offset: int
    size_bytes: int
    valid_bytes: int
    live: LiveRecords
    path: str

    @classmethod
    def of(cls, view: LogView, index: int, start_offset: int | None) -> _Segment:
        """Look at all headers of a segment; the log's start offset is None if it is not known."""
        listed = view.segments[index]
        headers = SegmentHeaders(view, index)
        live = LiveRecords()
        for window in headers:
            found = window.headers
            is_live = found.last_offsets >= (start_offset or 0)
            for mask, are_live in ((is_live, True), (~is_live, False)):
                live.add_batches(
                    found.sizes_bytes[mask], found.record_counts[mask], are_live=are_live
                )
        return cls(
            listed.base_offset,
            headers.next_offset,
            listed.size_bytes,
            headers.end_position,
            live,
            listed.file_path(),
        )


def _deletions(view: LogView, config: LogConfig) -> list[_Deletion]:
    """Return what retention does to the oldest segments if nothing is appended any more."""
    end = view.log_end_offset
    params = RetentionParams.of(
        config,
        MAX_INT64,
        log_start_offset=view.log_start_offset,
        high_watermark=end,
        log_end_offset=end,
    )
    found: list[_Deletion] = []
    time_ms = 0
    freed_bytes = 0
    for segment, reason in deletable_segments(dated_segments(view), params):
        freed_bytes += segment.size_bytes
        if reason is RetentionReason.TIME:
            newest = max(segment.largest_timestamp, segment.read_largest_timestamp())
            # Not before those that are older, whatever their timestamps.
            time_ms = max(time_ms, newest + params.retention_ms + 1)
            found.append(_Deletion(reason, time_ms, freed_bytes))
        else:
            found.append(_Deletion(reason, None, freed_bytes))
    return found


def _dirtiness(view: LogView, config: LogConfig, clock: Clock) -> _Dirtiness:
    """Return how dirty a compacted log is."""
    segments = dated_segments(view)
    path = join(view.directory.log_directory, CLEANER_OFFSET_CHECKPOINT)
    params = CleanableParams(
        read_offset_checkpoint(path).get(view.topic_partition),
        log_start_offset=view.log_start_offset,
        last_stable_offset=find_last_stable_offset(view),
        log_end_offset=view.log_end_offset,
        min_compaction_lag_ms=config.min_compaction_lag_ms,
        now_ms=clock.milliseconds(),
    )
    offsets = CleanableOffsets.of(segments, params)
    cleanable = CleanableBytes.of(
        segments, offsets.first_dirty_offset, offsets.first_uncleanable_offset
    )
    return _Dirtiness(offsets.first_dirty_offset, cleanable.ratio)


def find_config(view: LogView) -> LogConfig | None:
    """Return what is stored of the topic's configuration, None if nothing is."""
    configs = TopicConfigs(None)
    path = join(view.directory.log_directory, TOPIC_CONFIGS)
    properties = read_topic_configs(path).get(view.topic)
    if properties is None and configs.unconfigured([view.topic]):
        return None
    try:
        return configs.with_properties(view.topic, properties or {})
    except ValueError as error:
        reason = f"configuration of topic {view.topic!r}: {error}"
        raise CorruptCheckpointError(reason, path) from error
