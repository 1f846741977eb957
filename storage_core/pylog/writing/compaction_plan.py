"""The compacted logs of a directory: owned, or opened for a dry run, which locks nothing.

For a dry run they are loaded as their owner would load them, recovery included, on a disk that
forgets whatever is done to it (`pylog.files.durable_io`).
"""

from __future__ import annotations

import dataclasses
import os
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from pylog.config import LogManagerConfig, RecoveryMode
from pylog.errors import CorruptCheckpointError, RecoveryRefusedError
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.clean_shutdown import read_clean_shutdown
from pylog.files.cleaner_checkpoint import CleanerCheckpoint
from pylog.files.durable_io import ForgettingIO
from pylog.files.file_names import (
    CLEAN_SHUTDOWN,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from pylog.files.high_watermarks import HighWatermarks
from pylog.files.log_dir_failure_channel import LogDirFailureChannel
from pylog.files.owned_directories import ensure_regular_files, partition_directories
from pylog.log.log_context import LogContext
from pylog.log.log_loader import LogLoading, load_log
from pylog.scheduling.clock import StoppedClock
from pylog.writing.cluster_configs import only_replica_rule
from pylog.writing.compaction_summary import PartitionCompaction
from pylog.writing.owned_directory import ChosenLogs, own_logs, size_of_closed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pylog.config import LogConfig
    from pylog.config.server_properties import ServerProperties
    from pylog.errors import LogStorageError
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition
    from pylog.scheduling.clock import Clock


def ensure_compacted(topics: Iterable[str], configs: Mapping[str, LogConfig]) -> None:
    """Raise `ValueError` if a topic that is named is not compacted."""
    for topic in topics:
        if not configs[topic].is_compact:
            policy = ",".join(sorted(configs[topic].cleanup_policy)) or "empty"
            msg = f"topic {topic} is not compacted: its cleanup.policy is {policy}"
            raise ValueError(msg)


def context_at(context: LogContext | None, now_ms: int | None) -> LogContext:
    """Return a run's surroundings; with a time given, all that is counted is counted to it.

    Producers expire by the clock while logs are loaded: Kafka has one time for all, too.
    """
    context = context or LogContext(failures=LogDirFailureChannel(is_logged=False))
    return context if now_ms is None else dataclasses.replace(context, clock=StoppedClock(now_ms))


def closed_partitions(path: str, opened: ChosenLogs) -> list[PartitionCompaction]:
    """Return what is to be said of the logs of a log directory that stay closed."""
    return [
        PartitionCompaction(
            topic_partition=each,
            size_bytes=size_of_closed(path, each),
            is_complete=False,
            failure=str(error),
        )
        for each, error in opened.closed.items()
    ]


@contextmanager
def logs_to_compact(  # noqa: PLR0913 - all that an owner is told
    path: str,
    configs: Mapping[str, LogConfig],
    server_properties: ServerProperties | None,
    context: LogContext,
    *,
    high_watermark: str,
    recover_as_broker: bool,
    is_dry_run: bool,
) -> Iterator[ChosenLogs]:
    """Own a log directory within the block; or, for a dry run, only read it.

    Parameters
    ----------
    path
        Local.
    configs
        Of all topics that count; those of them that are compacted are chosen.
    server_properties
        A broker's file, if there is one.
    context
        The clock, the disk and the background work.
    high_watermark, recover_as_broker
        As for `own_log_directory`.
    is_dry_run
        Whether nothing is changed or locked.

    Raises
    ------
    LogStorageError
        See `own_log_directory` and `logs_for_a_dry_run`.
    """
    compacted = {topic: each for topic, each in configs.items() if each.is_compact}
    if not is_dry_run:
        with own_logs(
            path,
            compacted,
            server_properties,
            context,
            high_watermark=high_watermark,
            recover_as_broker=recover_as_broker,
        ) as owned:
            yield owned
        return
    if server_properties is not None:
        server_properties.warn_unless_log_dir(path)
    rule = only_replica_rule(path, server_properties, high_watermark=high_watermark)
    mode = RecoveryMode.AS_BROKER if recover_as_broker else RecoveryMode.KEEP_INTACT
    watermarks = HighWatermarks.read(path, rule)
    with logs_for_a_dry_run(path, compacted, context.clock, watermarks, mode) as opened:
        yield opened


@contextmanager
def logs_for_a_dry_run(
    log_directory: str,
    configs: Mapping[str, LogConfig],
    clock: Clock,
    watermarks: HighWatermarks,
    recovery_mode: RecoveryMode,
) -> Iterator[ChosenLogs]:
    """Open the logs of some topics for as long as the block lasts.

    Parameters
    ----------
    log_directory
        Local; somebody may have it open.
    configs
        The topics, with their configuration.
    clock
        The time.
    watermarks
        Where the high watermarks start.
    recovery_mode
        What recovery may drop.

    Raises
    ------
    UnexpectedFileError, CorruptRecordError
        Something in a partition's directory can be neither used nor repaired; a file of the log is
        a link, which its owner would refuse.
    LogDirectoryError, KafkaStorageError, SegmentVanishedError
        A file cannot be read, or its owner has removed it meanwhile.
    """
    failures = LogDirFailureChannel(is_logged=False)
    context = LogContext(io=ForgettingIO(), clock=clock, failures=failures)
    logs: dict[TopicPartition, UnifiedLog] = {}
    closed: dict[TopicPartition, LogStorageError] = {}
    checkpoint = CleanerCheckpoint(log_directory, context.io, failures, lambda: logs)
    checkpoint.load()
    recovery_points = _offsets(log_directory, RECOVERY_POINT_CHECKPOINT)
    log_start_offsets = _offsets(log_directory, LOG_START_OFFSET_CHECKPOINT)
    marker = read_clean_shutdown(os.path.join(log_directory, CLEAN_SHUTDOWN))  # noqa: PTH118
    try:
        for path, name in partition_directories(log_directory):
            topic_partition = name.topic_partition
            if name.state or topic_partition.topic not in configs:
                continue
            ensure_regular_files(path)
            loading = LogLoading(
                directory=path,
                config=configs[topic_partition.topic],
                manager_config=LogManagerConfig(),
                context=context,
                had_clean_shutdown=marker is not None,
                recovery_point_checkpoint=recovery_points.get(topic_partition, 0),
                log_start_offset_checkpoint=log_start_offsets.get(topic_partition, 0),
                recovery_mode=recovery_mode,
                high_watermark_start=partial(watermarks.start_of, topic_partition),
            )
            try:
                logs[topic_partition] = load_log(loading)
            except RecoveryRefusedError as error:
                closed[topic_partition] = error
        checkpoints = {log.log_directory: checkpoint for log in logs.values()}
        yield ChosenLogs(
            dict(sorted(logs.items())), dict(sorted(closed.items())), checkpoints, failures
        )
    finally:
        for log in logs.values():
            log.close_handlers()


def _offsets(log_directory: str, name: str) -> dict[TopicPartition, int]:
    """Read a checkpoint; one that does not follow the format counts as empty."""
    try:
        return read_offset_checkpoint(os.path.join(log_directory, name))  # noqa: PTH118
    except CorruptCheckpointError:
        return {}
