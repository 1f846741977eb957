"""``pylog truncate``: cut the end off a partition's log."""

from __future__ import annotations

from typing import Any

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.cleanup import is_agreed, removal_json, removal_lines
from pylog.cli.options import command
from pylog.cli.output import write_summary
from pylog.errors import OffsetInsideBatchError, OffsetOutOfRangeError


@command(
    "truncate",
    "pylog truncate /mnt/kafka-logs --topic orders --partition 0 --offset 1000 --dry-run",
)
@options.writable_directory
@options.topic
@options.partition
@options.number(
    "--offset",
    metavar="O",
    required=True,
    help="First offset to remove; everything after it is removed, too.",
)
@options.flag(
    "--whole-batch", help="If the offset lies inside a batch, remove that batch as a whole."
)
@options.server_properties
@options.recover_as_broker
@options.dry_run
@options.yes
@options.as_json
def truncate(
    directory: str,
    *,
    topic: str,
    partition: int,
    offset: int,
    whole_batch: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **of_library: Any,  # noqa: ANN401 - options that `pylog.truncate_log` has, too
) -> int:
    """Remove a partition's records from an offset on.

    A batch of records is removed as a whole or not at all. An offset inside a batch is refused, and
    the error names the nearest offsets at which the log can be cut. With --whole-batch, the records
    of that batch below the offset are removed, too, and the log ends where the batch began. An
    offset at or after the end of the log removes nothing.

    With --dry-run nothing is changed or locked. In a terminal, the command asks before it removes
    all records; --yes skips the question.

    Exit status: 0 done, 1 something in the directory is damaged, 2 wrong usage, no such partition,
    an offset inside a batch, or the directory is locked or cannot be written.
    """
    place = pylog.TopicPartition(topic, partition)
    try:
        what = {"takes_whole_batch": whole_batch, **of_library}
        if not (dry_run or yes) and progress.is_asked():
            planned = pylog.jobs.plan_truncation(directory, place, offset, **what)
            lost = planned.removal if planned.after <= _log_start(directory, place) else None
            if lost is not None and lost.records and not is_agreed(str(place), lost.size_bytes):
                return exit_status.UNUSABLE
        end = (
            pylog.jobs.plan_truncation(directory, place, offset, **what)
            if dry_run
            else pylog.truncate_log(directory, place, offset, **what)
        )
    except OffsetInsideBatchError as error:
        error.add_note("--whole-batch removes that batch as a whole")
        raise
    except OffsetOutOfRangeError as error:
        error.add_note(
            f"--offset {error.log_start_offset} removes all of them; nothing has been removed"
        )
        raise
    if end.after == end.before:
        would = "was" if end.removal is None else "would be"
        ends = f"{place} ends at offset {end.before} (exclusive)"
        lines = [f"nothing {would} removed: {ends}, and offset {offset} is not below that"]
    elif end.removal is None:
        lines = [f"{place} now ends at offset {end.after} (exclusive); it ended at {end.before}"]
    else:
        lines = removal_lines(
            f"{place} would end at offset {end.after} (exclusive); it ends at {end.before}",
            end.removal,
        )
    if end.after < min(offset, end.before):
        lines.append(
            f"offset {offset} lies inside a batch, so everything from offset {end.after} on "
            f"{'was' if end.removal is None else 'would be'} removed"
        )
    write_summary(
        {
            "topic": topic,
            "partition": partition,
            "endOffsetBefore": end.before,
            "logEndOffset": end.after,
        }
        | removal_json(end.removal),
        lines,
        as_json=as_json,
    )
    return exit_status.SOUND


def _log_start(directory: str, place: pylog.TopicPartition) -> int:
    logs = pylog.open_directory(directory)
    return min(each.log_start_offset for each in logs if each.topic_partition == place)
