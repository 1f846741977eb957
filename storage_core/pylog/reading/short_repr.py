"""What a `repr` shows of directories with any number of topics and partitions: one line."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING

from pylog.locations import printable_location

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.reading.damage import ReadMode
    from pylog.reading.discovery import PartitionDirectory
    from pylog.reading.planner import ScanRange

_SHORTENED = reprlib.Repr()
_SHORTENED.maxdict = _SHORTENED.maxlist = _SHORTENED.maxset = 8
_SHORTENED.maxfrozenset = 8
_SHORTENED.maxstring = _SHORTENED.maxother = 120


def short_repr(value: object) -> str:
    """Return the `repr` of ``value``, with "..." for what is more than eight members of it."""
    return _SHORTENED.repr(value)


def directories_repr(directories: Iterable[PartitionDirectory]) -> str:
    """Return the paths and, by topic, the partition numbers, without secrets of a URI.

    For example ``'/mnt/kafka-logs', topics={'orders': [0, 1], 'payments': [0]}``.
    """
    paths: dict[str, None] = {}
    topics: dict[str, list[int]] = {}
    for each in directories:
        paths[printable_location(each.path if each.is_named else each.log_directory)] = None
        topics.setdefault(each.topic_partition.topic, []).append(each.topic_partition.partition)
    given = [repr(path) for path in paths]
    if len(given) > 2:
        given[1:] = [f"and {len(given) - 1} more"]
    return f"{', '.join(given)}, topics={short_repr(topics)}"


def scan_choices(
    columns: list[str], wanted: ScanRange, mode: ReadMode, limit: int | None
) -> list[str]:
    """Return what was chosen for a scan, such as ``start='earliest'``."""
    choices = [
        f"columns={short_repr(columns)}",
        f"start={short_repr(wanted.start)}",
        f"end={short_repr(wanted.end)}",
        f"isolation={wanted.isolation.label!r}",
        f"mode={str(mode)!r}",
    ]
    if wanted.where is not None:
        choices.append(f"where={short_repr(wanted.where)}")
    if limit is not None:
        choices.append(f"limit={limit}")
    return choices
