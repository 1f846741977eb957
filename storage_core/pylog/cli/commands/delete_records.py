"""``pylog delete-records``: move the start of a partition's log."""

from __future__ import annotations

import click

import pylog
from pylog.cli import exit_status, options
from pylog.cli.command_help import command
from pylog.cli.rendering.removal_text import removal_json, removal_lines
from pylog.cli.rendering.summary import write_summary
from pylog.errors import OffsetOutOfRangeError


@command("delete-records")
@options.writable_directory
@options.topic
@options.partition
@click.option(
    "--offset", metavar="O", type=click.IntRange(min=0), help="First offset that is kept."
)
@click.option("--all", "everything", is_flag=True, help="Keep no record.")
@options.dry_run
@options.as_json
def delete_records(
    directory: str,
    *,
    topic: str,
    partition: int,
    offset: int | None,
    everything: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Stop serving a partition's records below an offset.

    The log start offset moves, and the files stay: whole segments below it are removed when
    retention runs. An offset below the start of the log changes nothing, and one after its end is
    an error.

    With --dry-run nothing is changed, locked or recovered. The bytes and segments that it reports
    are those that retention may remove afterwards.

    Exit status: 0 done, 1 something in the directory is damaged, 2 wrong usage, no such partition
    or offset, or the directory is locked or cannot be written.
    """
    if (offset is None) is not everything:
        msg = "give either --offset or --all"
        raise click.UsageError(msg)
    place = pylog.TopicPartition(topic, partition)
    act = pylog.plan_record_deletion if dry_run else pylog.delete_records
    try:
        start = act(directory, place, offset)
    except OffsetOutOfRangeError as error:
        error.add_note(
            f"--offset {error.log_end_offset}, or --all, keeps no record; nothing has been changed"
        )
        raise
    if start.after == start.before:
        would = "was" if start.removal is None else "would be"
        reason = "" if offset is None else f", and offset {offset} is not after that"
        lines = [f"nothing {would} deleted: {place} starts at offset {start.before}{reason}"]
    elif start.removal is None:
        lines = [f"{place} now starts at offset {start.after}; it started at {start.before}"]
    else:
        lines = removal_lines(
            f"{place} would start at offset {start.after}; it starts at {start.before}",
            start.removal,
        )
    write_summary(
        {
            "topic": topic,
            "partition": partition,
            "startOffsetBefore": start.before,
            "logStartOffset": start.after,
        }
        | removal_json(start.removal),
        lines,
        as_json=as_json,
    )
    return exit_status.SOUND
