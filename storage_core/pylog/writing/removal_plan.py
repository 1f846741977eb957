"""What `pylog.writing.record_removal` would remove; nothing is changed, locked or recovered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.config.stored_topic_configs import TopicConfigs
from pylog.files.high_watermarks import HighWatermarks
from pylog.files.owned_directories import partition_directories, writable_log_directory
from pylog.lazy_modules import LazyModule
from pylog.model import TopicPartition
from pylog.reading.log_directory import open_directory
from pylog.reading.removal_preview import preview_record_deletion, preview_truncation
from pylog.writing.held_back import HeldBack
from pylog.writing.moved_offset import MovedOffset

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from pylog.config.server_properties import ServerProperties
    from pylog.writing import cluster_configs  # imports NumPy
    from pylog.writing.moved_offset import PartitionT
else:
    cluster_configs = LazyModule("pylog.writing.cluster_configs")


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
    view = open_directory(_owned_path(directory))[topic_partition]
    removal = preview_truncation(view, offset, takes_whole_batch=takes_whole_batch)
    return MovedOffset(removal.end_offset, removal.start_offset, removal)


def plan_record_deletion(
    directory: str | os.PathLike[str],
    offsets: Mapping[PartitionT, int | None],
    *,
    server_properties: ServerProperties | None = None,
    high_watermark: str = "checkpoint",
) -> dict[TopicPartition, MovedOffset]:
    """Return where logs would start after `delete_records`, and what it would remove.

    Bytes and segments are those that retention may remove afterwards. Parameters and errors are
    those of `delete_records`; a directory that is locked is not an error.
    """
    path = _owned_path(directory)
    views = open_directory(path)
    configs = TopicConfigs(None if server_properties is None else server_properties.log_config)
    configs.load([path])
    rule = cluster_configs.only_replica_rule(path, server_properties, high_watermark=high_watermark)
    watermarks = HighWatermarks.read(path, rule)
    plan = {}
    for each, offset in offsets.items():
        view, place = views[each], TopicPartition(*each)
        end = view.log_end_offset
        replicated = watermarks.start_of(place, view.log_start_offset, end)
        removal = preview_record_deletion(view, configs.config_of(place.topic), offset, replicated)
        plan[place] = MovedOffset(
            removal.start_offset,
            removal.end_offset,
            removal,
            HeldBack.of(
                view.directory.path,
                place,
                (replicated, end) if offset is None and replicated < end else None,
                high_watermark=replicated,
                log_end_offset=end,
            ),
        )
    return plan


def _owned_path(directory: str | os.PathLike[str]) -> str:
    """Return the path of a directory that might be written to."""
    path = writable_log_directory(directory, must_exist=True)
    partition_directories(path)  # whoever owns it refuses what is not Kafka's, so this does, too
    return path
