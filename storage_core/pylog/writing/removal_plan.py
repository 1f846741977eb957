"""What `pylog.writing.record_removal` would remove; nothing is changed, locked or recovered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.files.partition_directories import partition_directories
from pylog.files.writable_directory import writable_log_directory
from pylog.reading.log_directory import open_directory
from pylog.reading.removal_preview import preview_record_deletion, preview_truncation
from pylog.writing.moved_offset import MovedOffset

if TYPE_CHECKING:
    import os

    from pylog.reading.log_view import LogView


def plan_truncation(
    directory: str | os.PathLike[str],
    topic_partition: tuple[str, int],
    offset: int,
    *,
    takes_whole_batch: bool = False,
) -> MovedOffset:
    """Return where the log would end after `truncate_log`, and what it would remove.

    Parameters and errors are those of `truncate_log`; a directory that is locked is not an error.
    """
    view = _view(directory, topic_partition)
    removal = preview_truncation(view, offset, takes_whole_batch=takes_whole_batch)
    return MovedOffset(removal.end_offset, removal.start_offset, removal)


def plan_record_deletion(
    directory: str | os.PathLike[str], topic_partition: tuple[str, int], offset: int | None
) -> MovedOffset:
    """Return where the log would start after `delete_records`, and what it would remove.

    Bytes and segments are those that retention may remove afterwards. Parameters and errors are
    those of `delete_records`; a directory that is locked is not an error.
    """
    removal = preview_record_deletion(_view(directory, topic_partition), offset)
    return MovedOffset(removal.start_offset, removal.end_offset, removal)


def _view(directory: str | os.PathLike[str], topic_partition: tuple[str, int]) -> LogView:
    """Return the read-only view of a partition, in a directory that might be written to."""
    path = writable_log_directory(directory, must_exist=True)
    partition_directories(path)  # whoever owns it refuses what is not Kafka's, so this does, too
    return open_directory(path)[topic_partition]
