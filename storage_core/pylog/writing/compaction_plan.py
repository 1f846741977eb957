"""The compacted logs of a directory: owned, or opened for a dry run, which locks nothing.

For a dry run they are loaded as their owner would load them, recovery included, on a disk that
forgets whatever is done to it (`pylog.files.durable_io`).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from pylog.config import LogManagerConfig
from pylog.errors import CorruptCheckpointError
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.clean_shutdown import read_clean_shutdown
from pylog.files.cleaner_checkpoint import CleanerCheckpoint
from pylog.files.durable_io import ForgettingIO
from pylog.files.file_names import (
    CLEAN_SHUTDOWN,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from pylog.files.log_dir_failure_channel import LogDirFailureChannel
from pylog.files.owned_directories import ensure_regular_files, partition_directories
from pylog.log.log_context import LogContext
from pylog.log.log_loader import LogLoading, load_log
from pylog.writing.owned_directory import own_log_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pylog.config import LogConfig
    from pylog.config.server_properties import ServerProperties
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition
    from pylog.scheduling.clock import Clock


class LogsToCompact(NamedTuple):
    """Compacted logs, sorted, and what their cleaner asks beside them."""

    logs: dict[TopicPartition, UnifiedLog]
    checkpoints: Mapping[str, CleanerCheckpoint]
    failures: LogDirFailureChannel


def ensure_compacted(topics: Iterable[str], configs: Mapping[str, LogConfig]) -> None:
    """Raise `ValueError` if a topic that is named is not compacted."""
    for topic in topics:
        if not configs[topic].is_compact:
            policy = ",".join(sorted(configs[topic].cleanup_policy)) or "empty"
            msg = f"topic {topic} is not compacted: its cleanup.policy is {policy}"
            raise ValueError(msg)


@contextmanager
def logs_to_compact(
    path: str,
    configs: Mapping[str, LogConfig],
    server_properties: ServerProperties | None,
    context: LogContext,
    *,
    is_dry_run: bool,
) -> Iterator[LogsToCompact]:
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
    is_dry_run
        Whether nothing is changed or locked.

    Raises
    ------
    LogStorageError
        See `own_log_directory` and `logs_for_a_dry_run`.
    """
    if is_dry_run:
        if server_properties is not None:
            server_properties.warn_unless_log_dir(path)
        compacted = {topic: each for topic, each in configs.items() if each.is_compact}
        with logs_for_a_dry_run(path, compacted, context.clock) as opened:
            yield opened
        return
    with own_log_directory(
        path,
        must_exist=True,
        server_properties=server_properties,
        topic_configs=configs,
        context=context,
    ) as manager:
        logs = {
            each: log
            for each, log in manager.logs.items()
            if each.topic in configs and log.config.is_compact
        }
        yield LogsToCompact(logs, manager.cleaner_checkpoints, context.failures)


@contextmanager
def logs_for_a_dry_run(
    log_directory: str, configs: Mapping[str, LogConfig], clock: Clock
) -> Iterator[LogsToCompact]:
    """Open the logs of some topics for as long as the block lasts.

    Parameters
    ----------
    log_directory
        Local; somebody may have it open.
    configs
        The topics, with their configuration.
    clock
        The time.

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
            )
            log = load_log(loading)
            log.update_high_watermark(log.log_end_offset)
            logs[topic_partition] = log
        checkpoints = {log.log_directory: checkpoint for log in logs.values()}
        yield LogsToCompact(dict(sorted(logs.items())), checkpoints, failures)
    finally:
        for log in logs.values():
            log.close_handlers()


def _offsets(log_directory: str, name: str) -> dict[TopicPartition, int]:
    """Read a checkpoint; one that does not follow the format counts as empty."""
    try:
        return read_offset_checkpoint(os.path.join(log_directory, name))  # noqa: PTH118
    except CorruptCheckpointError:
        return {}
