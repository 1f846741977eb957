"""Which offsets a run of ``export`` covers: from where the last run ended to the log's end now."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pylog
from pylog_jobs.job import JobFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from pylog_jobs.export_output import ExportedPartition

READ_COMMITTED = pylog.IsolationLevel.READ_COMMITTED.label


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """Offsets ``[start, end)`` of a partition.

    Attributes
    ----------
    topic, partition
        Whose.
    start, end
        The offsets to be exported.
    missing
        How many offsets before ``start`` were deleted before any run exported them.
    topic_id
        As of `ExportedPartition`.
    """

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


def find_ranges(
    partitions: pa.Table,
    exported: Mapping[tuple[str, int], ExportedPartition],
    *,
    isolation: str,
    fails_on_data_loss: bool,
) -> list[PartitionRange]:
    """Return a range for every partition, empty ones included.

    Parameters
    ----------
    partitions
        Table ``partitions`` of the logs, see `pylog.read_table`.
    exported
        How far each partition has been exported.
    isolation
        Under "read_committed" a range ends before the first open transaction.
    fails_on_data_loss
        Whether records that were deleted before they were exported are an error.

    Raises
    ------
    JobFailedError
        A partition cannot be read, or records that should be exported are gone.
    """
    column = "last_stable_offset" if isolation == READ_COMMITTED else "log_end_offset"
    ranges = []
    for row in partitions.to_pylist():
        before = exported.get((row["topic"], row["partition"]))
        name = f"{row['topic']}-{row['partition']}"
        start, end = row["log_start_offset"], row[column]
        if start is None or end is None:
            why = "; ".join(row["defects"]) or f"its {column} is not known"
            msg = f"partition {name} cannot be exported: {why}"
            raise JobFailedError(msg)
        _ensure_same_topic(name, row, before)
        missing = 0
        if before is not None:
            missing = max(0, start - before.next_offset)
            if end < before.next_offset:
                msg = (
                    f"partition {name} ends at offset {end}, and was exported up to offset "
                    f"{before.next_offset}: it was truncated, or is another log; export to another "
                    "output"
                )
                raise JobFailedError(msg)
            start = max(start, before.next_offset)
        if missing and fails_on_data_loss:
            msg = (
                f"partition {name}: offsets {start - missing} to {start - 1} were deleted before "
                "they were exported; export more often or keep records longer (retention.ms), and "
                "go on without them by --allow-data-loss"
            )
            raise JobFailedError(msg)
        ranges.append(
            PartitionRange(
                row["topic"], row["partition"], start, max(start, end), missing, row["topic_id"]
            )
        )
    return ranges


def _ensure_same_topic(
    name: str, row: Mapping[str, object], before: ExportedPartition | None
) -> None:
    if before is None or None in (before.topic_id, row["topic_id"]):
        return
    if before.topic_id != row["topic_id"]:
        msg = (
            f"partition {name} is of a topic with id {row['topic_id']}, and was exported from one "
            f"with id {before.topic_id}: the topic was deleted and created again; export to "
            "another output"
        )
        raise JobFailedError(msg)


def read_options(ranges: Sequence[PartitionRange]) -> dict[str, str]:
    """Return the options that read exactly these ranges."""
    assigned: dict[str, list[int]] = {}
    starting: dict[str, dict[str, int]] = {}
    ending: dict[str, dict[str, int]] = {}
    for each in ranges:
        assigned.setdefault(each.topic, []).append(each.partition)
        starting.setdefault(each.topic, {})[str(each.partition)] = each.start
        ending.setdefault(each.topic, {})[str(each.partition)] = each.end
    return {
        "assign": json.dumps(assigned),
        "startingOffsets": json.dumps(starting),
        "endingOffsets": json.dumps(ending),
    }
