"""Table ``cleaning``: what a cleaner and retention would take away, by their own rules.

Live records, which a cleaning of the whole log keeps, are found by their keys. The log is read
twice, see `pylog.tables.latest.KeySearch`: then each record is held against the last offset of its
key.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.cleaner.cleanable_offsets import CleanableBytes, CleanableOffsets, CleanableParams
from pylog.columnar.rows import TableText
from pylog.config.config_property import ConfigSource
from pylog.config.log_config import DELETE
from pylog.config.stored_topic_configs import TOPIC_CONFIGS, TopicConfigs, read_topic_configs
from pylog.errors import CorruptCheckpointError, SegmentVanishedError, UnreadableFileError
from pylog.files import disk
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.file_names import CLEANER_OFFSET_CHECKPOINT, META_PROPERTIES
from pylog.files.high_watermarks import HighWatermarks
from pylog.files.meta_properties import KRAFT_VERSIONS, read_meta_properties
from pylog.files.storage import change_mark, list_directory
from pylog.locations import is_remote, join, name_of
from pylog.log.retention import RetentionParams, RetentionReason, deletable_segments
from pylog.reading.damage import Attempts
from pylog.reading.dated_segments import dated_segments
from pylog.reading.headers import SegmentHeaders
from pylog.reading.internal_logs import CLUSTER_METADATA
from pylog.reading.transactions import find_last_stable_offset
from pylog.record.batch_header import UNKNOWN_RECORD_COUNT
from pylog.record.batch_writer import MAX_INT64
from pylog.scheduling.clock import SystemClock
from pylog.tables.latest import MAP_BYTES, KeySearch
from pylog.tables.metadata_table import table_of_rows
from pylog.writing.topic_configs import (
    TopicConfigSources,
    find_cluster_configs,
    only_replica_rule,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from pylog.cleaner.keyed_records import KeyedRecords
    from pylog.config import LogConfig
    from pylog.config.server_properties import ServerProperties
    from pylog.reading.log_view import LogView
    from pylog.record.batch_scan import BatchHeaders
    from pylog.writing.topic_configs import ClusterConfigs


_TEXT = TableText.of_partitions("""\
What of each segment is still needed, and when retention deletes it.

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

So the first row of a log that has a deletion_reason tells its next deletion.

A record is dead that no consumer gets, because it lies below the log start offset, and one that a
cleaning of the whole log up to its last stable offset would remove: one of an aborted transaction,
one that a later record with its key replaces, one without a key. Tombstones and transaction markers
count as live: when those go, the clock decides. Headers show which batches lie below the log start;
that is all there is to say of a topic that is not compacted. Of one that is, and of one whose
configuration is not known, the four columns are null unless keys are asked for
(``check_keys=True``), which reads all records.

A batch's bytes are shared by its records, by their length before compression. What a topic is
configured to is known where it is stored beside the logs (`stored_topic_configs`), where the
cluster's metadata is in the log directory, and where the broker's ``server_properties`` are given,
which also say where else the metadata is. Metadata alone leaves the three columns about deletion
null if the topic has no ``retention.ms`` of its own: the broker's file may say another one than
Kafka's default. Of a directory in a store the columns from first_dirty_offset to freed_bytes are
null: nothing cleans it there.
""")


class _Deletion(NamedTuple):
    """When and why retention deletes a segment, and what is gone then."""

    reason: str | None = None
    time_ms: int | None = None
    freed_bytes: int | None = None


class _Dirtiness(NamedTuple):
    """The first dirty offset and dirty ratio of a log, as a cleaner sees it."""

    first_dirty_offset: int | None = None
    ratio: float | None = None


def _rows(
    view: LogView, *, check_keys: bool = False, server_properties: ServerProperties | None = None
) -> Iterator[tuple[object, ...]]:
    """Yield the segments by their headers; with ``check_keys`` read all records, twice."""
    attempts = Attempts()
    known = attempts.read(lambda: _known_config(view, server_properties))
    config = None if known is None else known.config
    start_offset = attempts.read(lambda: view.log_start_offset)
    segments = [_Segment.of(view, index, start_offset) for index in range(len(view.segments))]
    lives: Sequence[LiveRecords | None] = [None] * len(segments)
    deletions: list[_Deletion] | None = None
    dirtiness: _Dirtiness | None = None
    if start_offset is not None and segments:
        if config is not None and not config.is_compact:
            lives = [segment.live for segment in segments]
        elif check_keys:
            lives = find_live_records(view, stable_offset=_last_stable_offset(view))
        if known is not None and config is not None and not is_remote(view.directory.path):
            if known.tells_retention:
                deletions = attempts.read(lambda: _deletions(view, config))
            if config.is_compact:
                dirtiness = attempts.read(lambda: _dirtiness(view, config))
    deletions = deletions or []
    deletions += [_Deletion()] * (len(segments) - len(deletions))
    policy = None if config is None else sorted(config.cleanup_policy)
    attempts.ensure_all_there()
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
    """A segment's offsets, size and times, from the headers of its batches."""

    base_offset: int
    next_offset: int
    size_bytes: int
    valid_bytes: int  # what its whole batches take
    live: LiveRecords  # what is not below the log start offset
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
    params = RetentionParams.of(
        config,
        MAX_INT64,
        log_start_offset=view.log_start_offset,
        high_watermark=_high_watermark(view),
        log_end_offset=view.log_end_offset,
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


def _dirtiness(view: LogView, config: LogConfig) -> _Dirtiness:
    segments = dated_segments(view)
    path = join(view.directory.log_directory, CLEANER_OFFSET_CHECKPOINT)
    params = CleanableParams(
        read_offset_checkpoint(path).get(view.topic_partition),
        log_start_offset=view.log_start_offset,
        last_stable_offset=_last_stable_offset(view),
        log_end_offset=view.log_end_offset,
        min_compaction_lag_ms=config.min_compaction_lag_ms,
        now_ms=SystemClock().milliseconds(),
    )
    offsets = CleanableOffsets.of(segments, params)
    cleanable = CleanableBytes.of(
        segments, offsets.first_dirty_offset, offsets.first_uncleanable_offset
    )
    return _Dirtiness(offsets.first_dirty_offset, cleanable.ratio)


def _last_stable_offset(view: LogView) -> int:
    """Return up to where an owner's cleaner would go."""
    return min(find_last_stable_offset(view), _high_watermark(view))


def _high_watermark(view: LogView) -> int:
    """Return where an owner's high watermark would start; a store has no owner."""
    path = view.directory.log_directory
    if is_remote(path):
        return view.log_end_offset
    watermarks = HighWatermarks.read(path, only_replica_rule(path))
    return watermarks.start_of(view.topic_partition, view.log_start_offset, view.log_end_offset)


class _KnownConfig(NamedTuple):
    """A topic's configuration, and whether all of it is known that retention goes by."""

    config: LogConfig
    tells_retention: bool = True


def _known_config(view: LogView, server_properties: ServerProperties | None) -> _KnownConfig | None:
    """Return what a topic is configured to; None where not even its policy is known."""
    above = view.directory.log_directory
    cluster = None
    if not is_remote(above):
        cluster = _cluster_configs(above, server_properties, _marks(above))
    if cluster is None and server_properties is None:
        stored = find_config(view)
        return None if stored is None else _KnownConfig(stored)
    configs = TopicConfigs(None if server_properties is None else server_properties.log_config)
    configs.load([above])
    if cluster is None and configs.stored_properties(view.topic) is None and _is_kraft(above):
        return None  # what its cluster says of the topic is elsewhere
    sources = TopicConfigSources(DELETE, server_properties, configs, cluster)
    found = sources.find(view.topic, [view.directory.path], {})
    if found.gap is None:
        return _KnownConfig(found.config)
    is_named = any(
        each.name == "cleanup.policy" and each.source is not ConfigSource.DEFAULT_CONFIG
        for each in found.entries
    )
    return _KnownConfig(found.config, tells_retention=False) if is_named else None


def _is_kraft(log_directory: str) -> bool:
    with suppress(CorruptCheckpointError, SegmentVanishedError, UnreadableFileError):
        return read_meta_properties(join(log_directory, META_PROPERTIES)).version in KRAFT_VERSIONS
    return False


@lru_cache(maxsize=16)
def _cluster_configs(
    log_directory: str,
    server_properties: ServerProperties | None,
    _marks: tuple[object, ...],
) -> ClusterConfigs | None:
    """Return what the cluster's metadata says; read once for all partitions while it stays."""
    return find_cluster_configs(log_directory, server_properties)


def _marks(log_directory: str) -> tuple[object, ...]:
    """Return what changes with the metadata in a log directory."""
    path = join(log_directory, str(CLUSTER_METADATA))
    if not disk.is_dir(path):
        return ()
    # Nothing is equal to a new object: what may still change is read anew.
    return tuple((each.name, change_mark(each.path) or object()) for each in list_directory(path))


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


@dataclass(slots=True)
class LiveRecords:
    """What of one segment is live; None where headers and records do not tell."""

    records: int | None = 0  # all records, control records too
    live_records: int | None = 0  # those of them that are live
    # what these take of the file; a batch's bytes are shared by its records
    live_bytes: float = 0.0

    def add_batches(
        self, sizes_bytes: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], *, are_live: bool
    ) -> None:
        """Add whole batches by their headers."""
        count = None if (counts == UNKNOWN_RECORD_COUNT).any() else int(counts.sum())
        self.records = _sum(self.records, count)
        if are_live:
            self.live_records = _sum(self.live_records, count)
            self.live_bytes += int(sizes_bytes.sum())


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def find_live_records(
    view: LogView, *, stable_offset: int | None = None, map_bytes: int = MAP_BYTES
) -> list[LiveRecords]:
    """Return for every segment what is live in it."""
    end = find_last_stable_offset(view) if stable_offset is None else stable_offset
    search = KeySearch(view, view.log_start_offset, end, map_bytes)
    shares = 1
    while (found := _live_records(search, view, end, shares)) is None:
        shares *= 2
    return found


def _live_records(
    search: KeySearch, view: LogView, end: int, shares: int
) -> list[LiveRecords] | None:
    """Return what is live; None if the map has no room for a share of the keys."""
    found = [LiveRecords() for _ in view.segments]
    for share in range(shares):
        if not search.fill(share, shares):
            return None
        for index, live in enumerate(found):
            for window in search.windows(index):
                is_gone, is_kept = _decided(search, window.headers, end)
                if share == 0:
                    for mask, are_live in ((is_gone, False), (is_kept, True)):
                        sizes, counts = window.headers.sizes_bytes, window.headers.record_counts
                        live.add_batches(sizes[mask], counts[mask], are_live=are_live)
                for records in search.read(window, np.flatnonzero(~is_gone & ~is_kept)):
                    _judge(live, search, records, share, shares)
    return found


def _decided(
    search: KeySearch, headers: BatchHeaders, end: int
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which batches no consumer gets, and which of the others a cleaning leaves alone."""
    is_gone = search.are_gone(headers)
    is_kept = headers.is_control | (headers.last_offsets >= end) | (headers.record_counts == 0)
    return is_gone, is_kept & ~is_gone


def _judge(
    live: LiveRecords, search: KeySearch, records: KeyedRecords, share: int, shares: int
) -> None:
    rows = search.rows(records, share, shares)
    last = search.map.find(records.hashes, rows)
    kept = rows[last == records.offsets[rows]]
    live.live_bytes += float(_shares_of_bytes(records)[kept].sum())
    live.live_records = _sum(live.live_records, kept.size)
    if share == 0:
        live.records = _sum(live.records, records.offsets.size)


def _shares_of_bytes(records: KeyedRecords) -> npt.NDArray[np.float64]:
    """Return what each record takes of its batch's bytes."""
    sizes = records.sizes_bytes
    starts, ends = records.batch_starts, records.batch_ends
    sums = np.concatenate([[0], np.cumsum(sizes)])
    shares = records.headers.sizes_bytes / np.maximum(1, sums[ends] - sums[starts])
    result: npt.NDArray[np.float64] = sizes * np.repeat(shares, ends - starts)
    return result


CLEANING = table_of_rows(
    "cleaning",
    _TEXT,
    _rows,
    check_keys="says nothing of keys",
    server_properties="does not depend on a broker's configuration",
)
