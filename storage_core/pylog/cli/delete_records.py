"""``pylog delete-records``: move the start of a partition's log."""

from __future__ import annotations

from typing import Annotated

import typer

from pylog.cli import exit_status
from pylog.cli.owned_directory import owned_directory, write_summary
from pylog.cli.removal_text import removal_json, removal_lines, view_of
from pylog.cli.write_options import (  # noqa: TC001 - typer reads them
    AsJson,
    Directory,
    DryRun,
    Partition,
    Topic,
)
from pylog.model import TopicPartition


def delete_records(
    directory: Directory,
    topic: Topic,
    partition: Partition,
    offset: Annotated[
        int | None,
        typer.Option("--offset", metavar="O", min=0, help="First offset that is kept."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Keep no record.")] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> int:
    """Serve no record of a partition below an offset any more.

    The log start offset moves, the files stay: whole segments below it are removed when retention
    runs. An offset below the log's start changes nothing; one after its end is an error.

    With --dry-run nothing is changed, locked or recovered; the bytes and segments are those that
    retention may remove afterwards.

    Exit status: 0 done, 1 something in the directory is damaged, 2 wrong usage, no such partition
    or offset, or the directory is locked or cannot be written.
    """
    if (offset is None) is not everything:
        msg = "give either --offset or --all"
        raise typer.BadParameter(msg)
    topic_partition = TopicPartition(topic, partition)
    if dry_run:
        from pylog.reading.removal_preview import preview_record_deletion  # noqa: PLC0415 - imports Arrow

        removal = preview_record_deletion(view_of(directory, topic_partition), offset)
        before, after = removal.start_offset, removal.end_offset
        lines = removal_lines(f"{topic_partition} would start at offset {after}", removal)
    else:
        removal = None
        with owned_directory(directory) as manager:
            log = manager.get_log(topic_partition)
            before = log.log_start_offset
            after = log.delete_records(offset)
        lines = [f"{topic_partition} starts at offset {after}, before at {before}"]
    write_summary(
        {
            "topic": topic,
            "partition": partition,
            "startOffsetBefore": before,
            "logStartOffset": after,
        }
        | removal_json(removal),
        lines,
        as_json=as_json,
    )
    return exit_status.SOUND
