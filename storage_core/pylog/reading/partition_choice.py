"""Partitions chosen by topic names and partition numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import UnknownTopicOrPartitionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView


def choose_partitions(
    directory: LogDirectory,
    topics: Iterable[str] = (),
    partitions: Sequence[int] = (),
    *,
    pattern: str | None = None,
) -> dict[str, list[int]]:
    """Return the partitions to read, by topic, as `pylog.scan` takes them for ``assign``.

    Parameters
    ----------
    directory
        What lies under the paths given.
    topics
        Names; none means all that are not internal.
    partitions
        Numbers; none means all.
    pattern
        Regular expression found anywhere in the name of a topic that is not internal, instead of
        names.

    Raises
    ------
    LogDirectoryError
        Nothing is left to be read without a name for it (see `LogDirectory.select`).
    UnknownTopicOrPartitionError
        A topic or partition that was named is not there, or no topic matches the pattern.
    ValueError
        Both names and a pattern were given, or the pattern is not a regular expression.
    """
    names = list(topics)
    views = directory.select(topics=names or None, pattern=pattern)
    if not views:
        found = ", ".join(sorted(directory.topics))
        reason = f"no topic here matches the pattern {pattern!r}; topics found: {found or 'none'}"
        raise UnknownTopicOrPartitionError(reason)
    chosen: dict[str, list[int]] = {}
    for view in views:
        if not partitions or view.partition in partitions:
            chosen.setdefault(view.topic, []).append(view.partition)
    for partition in partitions:
        _ensure_there(partition, views, must_have=names)
    return chosen


def _ensure_there(partition: int, views: Sequence[LogView], *, must_have: Iterable[str]) -> None:
    """Refuse a partition that a named topic lacks or, if none was named, that all lack."""
    having = {view.topic for view in views if view.partition == partition}
    lacking = sorted(set(must_have) - having)
    if lacking:
        present = ", ".join(str(view.partition) for view in views if view.topic == lacking[0])
        reason = f"no partition {partition} of topic {lacking[0]!r} here; found {present}"
        raise UnknownTopicOrPartitionError(reason)
    if not having:
        present = ", ".join(str(view.topic_partition) for view in views)
        reason = f"no topic has a partition {partition} here; found {present}"
        raise UnknownTopicOrPartitionError(reason)
