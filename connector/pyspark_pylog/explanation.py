"""What a read is made of, in lines for people: ``PylogTable.explain()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pylog
from pyspark_pylog.batch_reader import PylogBatchReader, TaskPartition
from pyspark_pylog.option_values import format_record_filter
from pyspark_pylog.options import RECORDS
from pyspark_pylog.schemas import read_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_pylog.options import ReadOptions

_MOST_RANGES = 20


def lines_of_read(options: ReadOptions, columns: Sequence[str]) -> Iterator[str]:
    """Yield what a batch read of records, or of a table, looks at: nothing of it is read."""
    yield "== pylog =="
    for path in options.paths:
        yield f"path:       {path}"
    yield f"columns:    {', '.join(columns)}"
    if options.table != RECORDS:
        yield f"table:      {options.table}, of whole logs; no predicate is pushed"
        yield from _lines_of_logs(options)
        return
    pushed = "nothing" if options.where is None else format_record_filter(options.where)
    yield f"pushed:     {pushed}"
    partitions = PylogBatchReader(options, read_schema(options)).partitions()
    tasks = [
        each for group in partitions if isinstance(group, TaskPartition) for each in group.tasks
    ]
    ranges: dict[tuple[str, int], tuple[int, int, int]] = {}
    for task in tasks:
        place = task.topic_partition.topic, task.topic_partition.partition
        start, end, size = ranges.get(place, (task.start_offset, task.end_offset, 0))
        ranges[place] = (
            min(start, task.start_offset),
            max(end, task.end_offset),
            size + task.size_bytes,
        )
    yield f"topics:     {_topics(list(ranges))}"
    for place, (start, end, size) in sorted(ranges.items())[:_MOST_RANGES]:
        name = f"{place[0]}-{place[1]}"
        yield f"range:      {name} offsets [{start}, {end}), {pylog.jobs.format_bytes(size, ' ')}"
    if len(ranges) > _MOST_RANGES:
        yield f"            and {len(ranges) - _MOST_RANGES} more"
    whole = sum(size for _, _, size in ranges.values())
    shown = pylog.jobs.format_bytes(whole, " ")
    yield f"to read:    {shown} ({whole} bytes) in {len(partitions)} Spark tasks"


def _lines_of_logs(options: ReadOptions) -> Iterator[str]:
    views = options.directory().select(
        topics=options.subscribe, assign=options.assign, pattern=options.subscribe_pattern
    )
    yield f"topics:     {_topics([(view.topic, view.partition) for view in views])}"


def _topics(places: Sequence[tuple[str, int]]) -> str:
    counts: dict[str, int] = {}
    for topic, _ in sorted(places):
        counts[topic] = counts.get(topic, 0) + 1
    return ", ".join(f"{topic} ({count})" for topic, count in counts.items()) or "none"
