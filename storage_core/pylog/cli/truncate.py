"""``pylog truncate``: cut the end off a partition's log."""

from __future__ import annotations

from typing import Annotated

import typer

from pylog.cli import exit_status
from pylog.cli.owned_directory import owned_directory, write_summary
from pylog.cli.write_options import AsJson, Directory, Partition, Topic  # noqa: TC001 - typer reads them
from pylog.log.batch_boundary import first_offset_of_batch
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
    as_json: AsJson = False,
) -> int:
    """Remove a partition's records from an offset on.

    A batch of records goes as a whole: if the offset lies inside of one, records below it go, too,
    and the log ends where that batch began. An offset at or behind the log's end removes nothing.

    Exit status: 0 done, 1 something in the directory is damaged, 2 wrong usage, no such partition,
    or the directory is locked or cannot be written.
    """
    topic_partition = TopicPartition(topic, partition)
    with owned_directory(directory) as manager:
        log = manager.get_log(topic_partition)
        before = log.log_end_offset
        log.truncate_to(first_offset_of_batch(log, offset))
        after = log.log_end_offset
    lines = [f"{topic_partition} ends at offset {after} (exclusive), before at {before}"]
    if after < min(offset, before):
        lines.append(f"offset {offset} was inside of a batch: all from {after} on went with it")
    write_summary(
        {"topic": topic, "partition": partition, "endOffsetBefore": before, "logEndOffset": after},
        lines,
        as_json=as_json,
    )
    return exit_status.SOUND
