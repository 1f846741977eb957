"""``pylog cat --follow``: what is there, and then what is appended, until Ctrl-C."""

from __future__ import annotations

import sys
from time import sleep
from typing import TYPE_CHECKING

import pylog
from pylog.cli import exit_status
from pylog.cli.rendering.record_output import RecordOutput

if TYPE_CHECKING:
    from pylog.cli.record_options import ChosenRecords, WayOfReading

LOOK_EVERY_SECONDS = 0.25
"""A look at partitions in which nothing has changed costs a few system calls for each."""


def follow_records(
    chosen: ChosenRecords,
    way: WayOfReading,
    lines: pylog.LineFormat,
    *,
    mode: str,
    where: pylog.RecordFilter | None,
    limit: int | None,
) -> int:
    """Print records as they come, without an end or up to ``limit``; return the exit status."""
    names = chosen.names
    followed = pylog.follow(
        *chosen.paths,
        topics=names or None,
        pattern=chosen.pattern,
        isolation=chosen.isolation,
        mode=mode,
        use_indexes=not way.ignore_indexes,
    )
    records = pylog.FollowedRecords(
        followed,
        start=chosen.start,
        partitions=chosen.partitions,
        columns=lines.columns,
        mode=mode,
        timestamp_unit="ms",
        where=where,
        limit=limit,
        isolation=chosen.isolation,
        **way.arguments(),
    )
    output = RecordOutput(lines)
    is_first_look = True
    while True:
        for batch in records.poll():
            output.write(batch)
        if output.records == limit:
            break
        # Whoever reads the output sees what is there, however long nothing follows.
        output.flush()
        if is_first_look and not records.partitions:
            sys.stderr.write("pylog: note: nothing to print is there yet; waiting for it\n")
        is_first_look = False
        sleep(LOOK_EVERY_SECONDS)
    # Each has been named on stderr when it was found.
    return exit_status.FINDINGS if records.damage else exit_status.SOUND
