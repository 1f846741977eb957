"""Where records of one log are in another one, as lines of a CSV file.

::

    topic,partition,old_offset,new_offset
    orders,0,120,0
    orders,0,121,1

The first line may be missing. The offsets of a partition ascend, both of them.
"""

from __future__ import annotations

import csv
from bisect import bisect_left
from typing import TYPE_CHECKING

from pylog.errors import InvalidLineError
from pylog.model import TopicPartition

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

_COLUMNS = ["topic", "partition", "old_offset", "new_offset"]


class OffsetTranslation:
    """Offsets of logs, and those of the same records in others; one thread writes."""

    def __init__(self) -> None:
        self._places: dict[TopicPartition, tuple[list[int], list[int]]] = {}

    def __contains__(self, topic_partition: object) -> bool:
        return topic_partition in self._places

    def add(self, topic_partition: TopicPartition, old: int, new: int) -> None:
        """Add the next record of a partition; ``ValueError`` unless both offsets are higher."""
        before, after = self._places.setdefault(topic_partition, ([], []))
        if min(old, new) < 0 or (before and (old <= before[-1] or new <= after[-1])):
            msg = f"offsets {old} and {new} of {topic_partition} do not follow those before them"
            raise ValueError(msg)
        before.append(old)
        after.append(new)

    def position(self, topic_partition: TopicPartition, old: int) -> int:
        """Return where whoever would read ``old`` next goes on: at the next record that is there.

        Behind the last one, that is after it.
        """
        before, after = self._places[topic_partition]
        place = bisect_left(before, old)
        return after[place] if place < len(after) else after[-1] + 1


def read_offset_translation(path: str | os.PathLike[str]) -> OffsetTranslation:
    """Return a map in a file; `InvalidLineError` names the line that is none."""
    with open(path, encoding="utf-8", newline="") as file:  # noqa: PTH123 - also a descriptor
        return _translation(csv.reader(file), path)


def _translation(rows: Iterable[Sequence[str]], path: str | os.PathLike[str]) -> OffsetTranslation:
    found = OffsetTranslation()
    for number, row in enumerate(rows, start=1):
        if not row or (number == 1 and list(row) == _COLUMNS):
            continue
        try:
            topic, partition, old, new = row[0], *_numbers(row)
            found.add(TopicPartition(topic, partition), old, new)
        except ValueError as error:
            reason = f"line {number} is not topic, partition, old and new offset: {error}"
            raise InvalidLineError(reason, path) from error
    return found


def _numbers(row: Sequence[str]) -> tuple[int, int, int]:
    if len(row) != len(_COLUMNS):
        msg = f"it has {len(row)} fields, expected {len(_COLUMNS)}"
        raise ValueError(msg)
    partition, old, new = map(int, row[1:])
    return partition, old, new
