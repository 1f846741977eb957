"""The partitions under the directories of several brokers, each once: its longest replica."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import LogStorageError
from pylog.reading.log_directory import LogDirectory, open_directory

if TYPE_CHECKING:
    import os

    from pylog.model import TopicPartition
    from pylog.reading.log_view import LogView

_UNKNOWN_END = -1


def open_replicas(*paths: str | os.PathLike[str]) -> LogDirectory:
    """Return what lies under the paths; where a partition lies there twice, the longest of it.

    Which replica leads is not to be seen in a log directory. A follower has a beginning of what its
    leader has, unless leaders have changed meanwhile, so that the end of the log decides. A replica
    whose end cannot be told is taken only where there is no other.

    Parameters
    ----------
    *paths
        Log directories or topic-partition directories, of any number of brokers.

    Raises
    ------
    LogDirectoryError
        A path cannot be read or holds no Kafka log.
    """
    if len(paths) == 1:
        return open_directory(*paths)
    chosen: dict[TopicPartition, LogView] = {}
    others = []
    for directory in map(open_directory, paths):
        others += directory.others
        for view in directory:
            before = chosen.setdefault(view.topic_partition, view)
            if before is not view and _end_of(view) > _end_of(before):
                chosen[view.topic_partition] = view
    views = dict(sorted(chosen.items()))
    return LogDirectory([*(view.directory for view in views.values()), *others], views=views)


def _end_of(view: LogView) -> int:
    try:
        return view.log_end_offset
    except LogStorageError:
        return _UNKNOWN_END
