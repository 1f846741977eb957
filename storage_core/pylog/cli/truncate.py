"""``pylog truncate``: cut the end off a partition's log."""

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
from pylog.errors import OffsetInsideBatchError
from pylog.model import TopicPartition


def truncate(
    directory: Directory,
    topic: Topic,
    partition: Partition,
    offset: Annotated[
        int,
        typer.Option(
            "--offset", metavar="O", min=0, help="First offset to remove; all behind it go, too."
        ),
    ],
    whole_batch: Annotated[
        bool,
        typer.Option(
            "--whole-batch", help="Remove the batch around the offset as a whole, if one is."
        ),
    ] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> int:
    """Remove a partition's records from an offset on.

    A batch of records goes as a whole or not at all. An offset inside a batch is refused, and the
    nearest offsets that a log can be cut at are named; with --whole-batch the records of that
    batch below the offset go, too, and the log ends where the batch began. An offset at or after
    the log's end removes nothing.

    With --dry-run nothing is changed, locked or recovered.

    Exit status: 0 done, 1 something in the directory is damaged, 2 wrong usage, no such partition,
    an offset inside a batch, or the directory is locked or cannot be written.
    """
    topic_partition = TopicPartition(topic, partition)
    try:
        if dry_run:
            from pylog.reading.removal_preview import preview_truncation  # noqa: PLC0415 - imports Arrow

            view = view_of(directory, topic_partition)
            removal = preview_truncation(view, offset, takes_whole_batch=whole_batch)
            before, after = removal.end_offset, removal.start_offset
            lines = removal_lines(f"{topic_partition} would end at offset {after}", removal)
        else:
            removal = None
            with owned_directory(directory) as manager:
                log = manager.get_log(topic_partition)
                before = log.log_end_offset
                log.truncate_at_boundary(offset, takes_whole_batch=whole_batch)
                after = log.log_end_offset
            lines = [f"{topic_partition} ends at offset {after} (exclusive), before at {before}"]
    except OffsetInsideBatchError as error:
        error.add_note("--whole-batch removes that batch as a whole")
        raise
    if after < min(offset, before):
        lines.append(f"offset {offset} is inside a batch: all from {after} on goes with it")
    write_summary(
        {"topic": topic, "partition": partition, "endOffsetBefore": before, "logEndOffset": after}
        | removal_json(removal),
        lines,
        as_json=as_json,
    )
    return exit_status.SOUND
