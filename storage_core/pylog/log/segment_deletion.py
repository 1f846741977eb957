"""Deleting segments in two steps.

1. Every file of the segment is renamed to ``….deleted``, the ``.log`` first. A crash leaves some
   renamed and some not; start-up deletes the renamed ones, and index files without their ``.log``.
   The directory is synced after each ``.log``, so that a power loss keeps no later rename without
   the earlier ones: segments go in the order in which they are given, and none comes back without
   its transaction index, as one whose aborted records are taken for committed.
2. After ``file.delete.delay.ms`` the files are removed, so that readers that have them open come to
   an end in the meantime.

Source: LocalLog.deleteSegmentFiles (Kafka 4.3). Differs from Kafka, which syncs nothing.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from pylog.errors import KafkaStorageError
from pylog.files.owned_directories import file_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylog.config import LogConfig
    from pylog.files.durable_io import DurableIO
    from pylog.log.log_context import LogContext
    from pylog.log.log_segment import LogSegment
    from pylog.producers.producer_state_manager import ProducerStateManager

_LOGGER = logging.getLogger(__name__)


def delete_segment_files(
    segments: Sequence[LogSegment],
    config: LogConfig,
    context: LogContext,
    *,
    is_async: bool = True,
    snapshots: Sequence[str] = (),
) -> None:
    """Rename the files of segments that no map holds any more, and remove them later.

    Parameters
    ----------
    segments
        Removed from the log's map already; the first one goes first.
    config, context
        Of the log.
    is_async
        False to remove the files at once.
    snapshots
        Paths of producer snapshots, already renamed, that go with them.

    Raises
    ------
    KafkaStorageError
        A file could not be renamed or removed.
    """
    for segment in segments:
        segment.mark_deleted()

    def remove() -> None:
        for segment in segments:
            segment.delete_if_exists()
        for path in snapshots:
            context.io.remove(path, missing_ok=True)

    if is_async:
        remove_later(remove, config, context)
    else:
        remove()


def remove_later(remove: Callable[[], object], config: LogConfig, context: LogContext) -> None:
    """Have ``remove`` called after ``file.delete.delay.ms``.

    If it fails, renamed files are left; start-up removes them.
    """

    def try_to_remove() -> None:
        try:
            remove()
        except KafkaStorageError as error:
            _LOGGER.warning("deleted files stay behind: %s", error)

    context.scheduler.schedule_once("delete-file", try_to_remove, config.file_delete_delay_ms)


def mark_snapshots_for_deletion(
    producer_state: ProducerStateManager, segments: Sequence[LogSegment]
) -> list[str]:
    """Rename the producer snapshots at the base offsets of segments that go; return their paths."""
    bases = [segment.base_offset for segment in segments]
    marked = map(producer_state.remove_and_mark_snapshot_for_deletion, bases)
    return [path for path in marked if path]


def delete_directory(path: str, io: DurableIO) -> None:
    """Remove a partition directory with all its files; a link, and not what it points to.

    A directory inside stays, and so does the partition directory then: neither Kafka nor we have
    made it.

    Raises
    ------
    KafkaStorageError
        A file or the directory could not be removed.
    """
    if os.path.islink(path):  # noqa: PTH114 - kept as text
        io.remove(path, missing_ok=True)
        return
    for name in file_names(path):
        io.remove(os.path.join(path, name), missing_ok=True)  # noqa: PTH118
    io.remove_directory(path)
