"""`compact`: remove the records of a log directory's compacted topics that a later one replaces.

The log directory is owned during it; a dry run does not own it (`pylog.writing.compaction_plan`).
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from pylog.cleaner.cleaned_segments import CleanedSegments
from pylog.cleaner.cleaner import Cleaner
from pylog.cleaner.compaction import Compaction, CompactionProgress
from pylog.cleaner.counted_segments import CountedSegments
from pylog.cleaner.log_cleaner_manager import LogCleanerManager
from pylog.cleaner.throttler import Throttler
from pylog.config import CleanerConfig
from pylog.config.log_config import COMPACT
from pylog.errors import KafkaStorageError
from pylog.files.owned_directories import writable_log_directory
from pylog.writing.compaction_plan import (
    closed_partitions,
    context_at,
    ensure_compacted,
    logs_to_compact,
)
from pylog.writing.compaction_summary import CompactionSummary, PartitionCompaction
from pylog.writing.held_back import HeldBack
from pylog.writing.known_topic_configs import known_topic_configs

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping

    from pylog.config.server_properties import ServerProperties
    from pylog.log.log_context import LogContext


def compact(  # noqa: PLR0913 - what it is done to, by which configuration, and how
    directory: str | os.PathLike[str],
    *,
    topics: Iterable[str] | None = None,
    server_properties: ServerProperties | None = None,
    config: Mapping[str, str] | None = None,
    now_ms: int | None = None,
    once: bool = False,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
    context: LogContext | None = None,
    high_watermark: str = "checkpoint",
    recover_as_broker: bool = False,
) -> CompactionSummary:
    """Clean the compacted topics of a log directory as a broker's cleaner does; return what went.

    Of all records with the same key the last one stays. What else stays, and for how long, is as in
    Kafka: records without a value for ``delete.retention.ms`` after they were first cleaned,
    transactions' markers as long, the last batch of each producer, all that is younger than
    ``min.compaction.lag.ms``, what follows the last stable offset, and the active segment.
    Offsets do not change. Nothing is removed for its age or for a log's size; that is
    `apply_retention`.

    By default every log is cleaned that has something to clean, whatever its dirty ratio, until it
    has nothing more: in several rounds if the keys do not fit into
    ``log.cleaner.dedupe.buffer.size`` bytes, which bounds the memory.

    What topics are configured to is found as in `pylog.apply_retention`.

    Parameters
    ----------
    directory
        A log directory that no broker has open. For a dry run, one may have.
    topics
        Which; all compacted ones of the directory if None.
    server_properties
        A broker's file: what topics are configured to that have no properties of their own, and
        ``log.cleaner.*``.
    config
        Properties that win over all others, for this run. Of the topics that are named; if none
        is, of all but Kafka's internal ones.
    now_ms
        The time that lags and delete horizons are counted to; now if None.
    once
        Clean only the logs that a broker would clean now, for one round each: those with a dirty
        ratio above ``min.cleanable.dirty.ratio``, or that have waited for longer than
        ``max.compaction.lag.ms``.
    dry_run
        Only say what would be removed, by reading all that would be read. Nothing is changed or
        locked. Where a log would need several rounds it is what the first one removes.
    progress
        Called after each piece of work with the bytes that are read and those that are to be. What
        it raises ends the run between two steps: the log that is being cleaned is as it was, or as
        after some of its segments were, the directory is closed in order, and `compact` raises it.
    context
        The clock, the disk and the background work; the real ones if None. With ``now_ms``, the
        clock stands still at that time.
    high_watermark
        Where the high watermark of each log starts: as on a broker (``checkpoint``), or, for a
        directory whose cluster is gone, at the log's end (``log-end``). Nothing is cleaned from the
        last stable offset on, which is never above it.
    recover_as_broker
        Whether recovery may drop intact batches, as a broker's does. Otherwise a log that would
        lose some stays as it is, and is a `failure`.

    Returns
    -------
    CompactionSummary
        All partitions of compacted topics. One that cannot be cleaned, because of damage, has a
        `failure`, and the others are done.

    Raises
    ------
    UnknownTopicConfigError
        Of some topics nobody has said what they are configured to, or the cluster's metadata are
        there and cannot be relied upon; nothing has been changed.
    UnknownTopicOrPartitionError
        The directory has no such topic; nothing has been changed.
    ValueError
        A property is unknown or has no such value, or a topic that is named is not compacted.
    LogLockedError
        A broker, or another program, has the directory open.
    KafkaStorageError
        The disk failed; what was cleaned before is.
    LogStorageError
        The directory is not one that can be written to, or a log in it cannot be opened.

    Examples
    --------
    >>> pylog.compact("/tmp/logs", topics=["accounts"], dry_run=True).totals.records
    """
    path = writable_log_directory(directory, must_exist=True)
    topics = topics if topics is None else list(topics)
    known = known_topic_configs(
        path, topics, cleanup=COMPACT, server_properties=server_properties, properties=config
    )
    ensure_compacted(topics or (), known.configs)
    context = context_at(context, now_ms)
    now_ms = context.clock.milliseconds() if now_ms is None else now_ms
    reported = CompactionProgress(progress)
    settings = CleanerConfig() if server_properties is None else server_properties.cleaner_config
    cleaner = Cleaner(
        dataclasses.replace(settings, threads=1),
        context.clock,
        throttle=Throttler(settings.io_max_bytes_per_second).throttle,
        progress=reported.report,
        # Nobody else reads them, so that the files of old segments need not wait.
        begin_segments=CountedSegments
        if dry_run
        else partial(CleanedSegments, keeps_old_files=False),
    )
    with logs_to_compact(
        path,
        known.configs,
        server_properties,
        context,
        high_watermark=high_watermark,
        recover_as_broker=recover_as_broker,
        is_dry_run=dry_run,
    ) as opened:
        compaction = Compaction(
            cleaner,
            LogCleanerManager(lambda: opened.logs, opened.checkpoints, opened.failures),
            reported,
            now_ms,
            is_only_due=once,
            is_dry_run=dry_run,
        )
        done = closed_partitions(path, opened)
        for each in compaction.compact(list(opened.logs.values())):
            if isinstance(each.failure, KafkaStorageError) and not dry_run:
                raise each.failure
            done.append(
                PartitionCompaction.of(
                    each.log.topic_partition,
                    each.rounds,
                    first_dirty_offset=each.first_dirty_offset,
                    size_bytes=each.log.size_bytes,
                    is_dry_run=dry_run,
                    is_complete=each.is_complete,
                    failure=each.failure_text,
                    held_back=HeldBack.of(
                        each.log.directory,
                        each.log.topic_partition,
                        each.held_back_offsets,
                        high_watermark=each.log.high_watermark,
                        log_end_offset=each.log.log_end_offset,
                    ),
                )
            )
        done.sort(key=lambda each: each.topic_partition)
    if reported.stopped_by is not None:
        raise reported.stopped_by
    return CompactionSummary(tuple(done), now_ms, dry_run, known.entries)
