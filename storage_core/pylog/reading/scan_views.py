"""The views of the partitions that a `Scan` reads: which ones, and how their files are read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pylog.reading.damage import DamageReport
from pylog.reading.log_directory import LogDirectory, open_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pylog.reading.damage import ReadMode
    from pylog.reading.log_view import LogView
    from pylog.reading.record_filter import RecordFilter


def select_views(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | LogDirectory,
    topics: str | Iterable[str] | None,
    assign: Mapping[str, Iterable[int]] | None,
    pattern: str | None,
) -> list[LogView]:
    """Return the partitions under ``path`` that one of the other arguments chooses.

    See `LogDirectory.select`, also for the errors; a path may be a ``.log`` file, too.
    """
    if isinstance(path, LogDirectory):
        directory = path
    else:
        paths = [path] if isinstance(path, str | os.PathLike) else list(path)
        directory = open_directory(*paths, takes_segment_files=True)
    names = [topics] if isinstance(topics, str) else topics
    return directory.select(topics=names, assign=assign, pattern=pattern)


def covered_views(views: list[LogView], where: RecordFilter | None) -> list[LogView]:
    """Return the views of partitions that have records which can pass."""
    return [view for view in views if where is None or where.covers(view.topic_partition)]


def views_to_read(
    views: list[LogView],
    where: RecordFilter | None,
    mode: ReadMode,
    *,
    use_indexes: bool,
    leave_page_cache: bool,
) -> list[LogView]:
    """Return views of the partitions that a filter leaves, which are read as the others say."""
    views = covered_views(views, where)
    if mode.skips_damage:
        # What planning meets, a reader reports: it goes the same way.
        views = [view.refreshed(DamageReport(is_logged=False)) for view in views]
    if not use_indexes:
        views = [view.refreshed(view.damage, uses_indexes=False) for view in views]
    if leave_page_cache:
        views = [view.refreshed(view.damage, leaves_page_cache=True) for view in views]
    return views
