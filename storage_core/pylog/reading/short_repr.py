"""What a `repr` shows of directories with any number of topics and partitions: one line."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING

from pylog.locations import printable_location

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.reading.discovery import PartitionDirectory

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
