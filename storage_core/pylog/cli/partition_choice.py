"""Which partitions ``--topic`` and ``--partition`` mean."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pylog.errors import LogDirectoryError, UnknownTopicOrPartitionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylog.scan.log_directory import LogDirectory
    from pylog.scan.log_view import LogView


def choose_partitions(
    directory: LogDirectory,
    paths: Sequence[str],
    topics: Iterable[str] = (),
    partitions: Sequence[int] = (),
) -> dict[str, list[int]]:
    """Return the partitions to read, by topic.

    Parameters
    ----------
    directory
        What lies under ``paths``.
    paths
        As the user gave them: a path that is itself a partition directory names that partition,
        also of an internal topic.
    topics
        Names, also several in one text with commas between; none means all that are not internal.
    partitions
        Numbers; none means all.

    Raises
    ------
    LogDirectoryError
        Nothing is left to be read without a name for it.
    UnknownTopicOrPartitionError
        A topic or partition that was named is not there.
    """
    names = [name for text in topics for name in text.split(",") if name]
    views = directory.select(topics=names) if names else _without_a_name(directory, paths)
    chosen: dict[str, list[int]] = {}
    for view in views:
        if not partitions or view.partition in partitions:
            chosen.setdefault(view.topic, []).append(view.partition)
    for partition in partitions:
        _ensure_there(partition, views, must_have=names)
    return chosen


def _without_a_name(directory: LogDirectory, paths: Sequence[str]) -> list[LogView]:
    given = {os.path.realpath(path) for path in paths}
    ordinary = {view.topic_partition for view in directory.select()}
    views = [
        view
        for view in directory
        if view.topic_partition in ordinary or os.path.realpath(view.directory.path) in given
    ]
    if not views and len(directory):
        reason = f"only internal topics here, name one with --topic: {', '.join(directory.topics)}"
        raise LogDirectoryError(reason)
    if not views:
        states = ", ".join(f"{each.path} ({each.state})" for each in directory.others)
        reason = f"no live partition here, directories in other states are not read: {states}"
        raise LogDirectoryError(reason)
    return views


def _ensure_there(partition: int, views: Sequence[LogView], *, must_have: Iterable[str]) -> None:
    """Refuse a partition that a named topic lacks or, if none was named, that all lack."""
    having = {view.topic for view in views if view.partition == partition}
    lacking = sorted(set(must_have) - having)
    if lacking:
        found = ", ".join(str(view.partition) for view in views if view.topic == lacking[0])
        reason = f"no partition {partition} of topic {lacking[0]!r} here; found {found}"
        raise UnknownTopicOrPartitionError(reason)
    if not having:
        found = ", ".join(str(view.topic_partition) for view in views)
        reason = f"no topic has a partition {partition} here; found {found}"
        raise UnknownTopicOrPartitionError(reason)
