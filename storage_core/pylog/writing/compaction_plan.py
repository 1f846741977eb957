"""The logs of a directory, opened for a dry run: nothing is changed or locked.

They are loaded as their owner would load them, recovery included, on a disk that forgets whatever
is done to it (`pylog.files.forgetting_io`).
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
from pylog.files.file_names import (
    CLEAN_SHUTDOWN,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from pylog.files.forgetting_io import ForgettingIO
from pylog.files.log_dir_failure_channel import LogDirFailureChannel
from pylog.files.partition_directories import partition_directories
from pylog.log.log_context import LogContext
from pylog.log.log_loader import LogLoading, load_log

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pylog.clock import Clock
    from pylog.config import LogConfig
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition


class LogsToCompact(NamedTuple):
    """Compacted logs, sorted, and what their cleaner asks beside them."""

    logs: dict[TopicPartition, UnifiedLog]
    checkpoints: Mapping[str, CleanerCheckpoint]
    failures: LogDirFailureChannel


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
        Something in a partition's directory can be neither used nor repaired.
    LogDirectoryError, SegmentVanishedError
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
