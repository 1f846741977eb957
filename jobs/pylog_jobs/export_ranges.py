"""Which offsets a run of ``export`` covers, and what it leaves out.

One partition or topic never stops the others. What is left out, and how to continue:

=====================================  ======================================================
damaged                                by itself, once it is repaired
a topic that was created again         ``--restart-topic`` starts it over; it has another id
a log that ends before what was        ``--restart-topic``, which exports the topic again
exported: it was truncated
records deleted before their export    ``--allow-data-loss`` continues without them
=====================================  ======================================================
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pylog
from pyspark_pylog.jobs import by_topic

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import pyarrow as pa

READ_COMMITTED = pylog.IsolationLevel.READ_COMMITTED.label


@dataclass(frozen=True, slots=True)
class ExportedPartition:
    """The offsets up to which a partition has been exported."""

    next_offset: int
    topic_id: str | None


@dataclass(frozen=True, slots=True)
class LeftOutPartition:
    """A partition that is not exported, and why."""

    topic: str
    partition: int
    error: str


@dataclass(frozen=True, slots=True)
class RecreatedTopic:
    """A topic that was deleted and created again since it was exported."""

    topic: str
    exported_id: str
    topic_id: str


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """Offsets ``[start, end)`` of a partition, to be exported."""

    topic: str
    partition: int
    start: int
    end: int
    missing: int
    topic_id: str | None

    @property
    def offsets(self) -> int:
        """How many offsets; there are at most as many records."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """The ranges that a run exports, and the partitions that it leaves out."""

    ranges: Sequence[PartitionRange] = ()  # of every other partition, empty ones included
    damaged: Sequence[LeftOutPartition] = ()
    stopped: Sequence[LeftOutPartition] = ()
    recreated: Sequence[RecreatedTopic] = ()
    restarted: Collection[str] = ()  # topics that start over

    @property
    def new(self) -> list[PartitionRange]:
        """The ranges that have offsets."""
        return [each for each in self.ranges if each.offsets]

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the ranges is left out."""
        return not (self.damaged or self.stopped or self.recreated)


def find_ranges(
    partitions: pa.Table,
    exported: Mapping[tuple[str, int], ExportedPartition],
    *,
    isolation: str,
    fails_on_data_loss: bool,
    fails_on_damage: bool = True,
    restart: Collection[str] = (),
) -> ExportPlan:
    """Return a range for every partition, empty ones included, and what cannot have one."""
    column = "last_stable_offset" if isolation == READ_COMMITTED else "log_end_offset"
    names = ("topic", "partition", "log_start_offset", column, "topic_id", "defects")
    # Without the times: Python has none after the year 9999.
    rows = partitions.select(names).rename_columns({column: "end"}).to_pylist()
    recreated = _find_recreated(rows, exported)
    restarted = {topic for topic in restart if _starts_over(topic, rows, exported)}
    ranges, damaged, stopped = [], [], []
    for row in rows:
        place = row["topic"], row["partition"]
        start, end = row["log_start_offset"], row["end"]
        if start is None or end is None or (row["defects"] and fails_on_damage):
            why = "; ".join(row["defects"]) or f"its {column} is not known"
            damaged.append(LeftOutPartition(*place, why))
            continue
        if row["topic"] in recreated and row["topic"] not in restarted:
            continue
        before = None if row["topic"] in restarted else exported.get(place)
        from_offset = start if before is None else max(start, before.next_offset)
        missing = 0 if before is None else from_offset - before.next_offset
        why = _why_stopped(row, before, missing if fails_on_data_loss else 0)
        if why:
            stopped.append(LeftOutPartition(*place, why))
            continue
        ranges.append(
            PartitionRange(*place, from_offset, max(from_offset, end), missing, row["topic_id"])
        )
    held_back = [each for topic, each in recreated.items() if topic not in restarted]
    return ExportPlan(ranges, damaged, stopped, held_back, restarted)


def _find_recreated(
    rows: Iterable[Mapping[str, Any]], exported: Mapping[tuple[str, int], ExportedPartition]
) -> dict[str, RecreatedTopic]:
    found = {}
    for row in rows:
        before = exported.get((row["topic"], row["partition"]))
        exported_id, topic_id = (before and before.topic_id), row["topic_id"]
        if exported_id and topic_id and exported_id != topic_id:
            found[row["topic"]] = RecreatedTopic(row["topic"], exported_id, topic_id)
    return found


def _starts_over(
    topic: str,
    rows: Iterable[Mapping[str, Any]],
    exported: Mapping[tuple[str, int], ExportedPartition],
) -> bool:
    """Whether a topic is not what was exported, or nothing says whether it is.

    A command that a scheduler repeats with ``--restart-topic`` exports nothing twice.
    """
    for row in rows:
        before = exported.get((row["topic"], row["partition"]))
        if row["topic"] != topic or before is None:
            continue
        is_known = None not in (before.topic_id, row["topic_id"])
        is_truncated = row["end"] is not None and row["end"] < before.next_offset
        if not is_known or before.topic_id != row["topic_id"] or is_truncated:
            return True
    return False


def _why_stopped(row: Mapping[str, Any], before: ExportedPartition | None, missing: int) -> str:
    """Return why a partition cannot go on where the last run ended; empty if it can."""
    if before is not None and row["end"] < before.next_offset:
        return (
            f"it ends at offset {row['end']}, and was exported up to offset {before.next_offset}: "
            f"it was truncated, or is another log; --restart-topic {row['topic']} exports the "
            "topic from its beginning, and the rows that the output has stay"
        )
    if missing:
        last = row["log_start_offset"] - 1
        return (
            f"offsets {last - missing + 1} to {last} were deleted before they were exported; go on "
            "without them by --allow-data-loss, and export more often or keep records longer "
            "(retention.ms)"
        )
    return ""


def read_options(ranges: Sequence[PartitionRange]) -> dict[str, str]:
    """Return the options that read exactly these ranges."""
    assigned: dict[str, list[int]] = {}
    for each in ranges:
        assigned.setdefault(each.topic, []).append(each.partition)
    places = {pylog.TopicPartition(each.topic, each.partition): each for each in ranges}
    return {
        "assign": json.dumps(assigned),
        "startingOffsets": json.dumps(by_topic({at: each.start for at, each in places.items()})),
        "endingOffsets": json.dumps(by_topic({at: each.end for at, each in places.items()})),
    }
