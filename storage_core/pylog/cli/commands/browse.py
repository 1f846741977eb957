"""``pylog browse``: log directories in a full-screen terminal application."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

import pylog
from pylog.cli import exit_status
from pylog.cli.options import command
from pylog.cli.record_options import chosen_records, way_of_reading
from pylog.lazy_modules import LazyModule

if TYPE_CHECKING:
    from pylog.cli.browse import app as browse_app
    from pylog.cli.record_options import ChosenRecords, WayOfReading
else:
    browse_app = LazyModule("pylog.cli.browse.app")  # which needs Textual, and takes its time


@command(
    "browse",
    "pylog browse /mnt/kafka-logs",
    "pylog browse /mnt/kafka-logs --topic orders --partition 0 -o -1000",
)
@chosen_records
@way_of_reading
def browse(chosen: ChosenRecords, way: WayOfReading) -> int:
    """Browse topics, partitions and records in the terminal.

    The first screen has topics, their partitions, sizes and consumer lag. Enter opens a partition:
    a table of its records, which scrolls through a log of any size, and the details of one of them:
    JSON that folds, text or hex, headers, and the batch that it is in. Damaged ranges and offsets
    without a record are rows of the table. The options choose what is shown, as for pylog cat;
    without --topic and --pattern, internal topics are shown, too.

    ? lists the keys of a screen. lnav, kaskade and VisiData have the same: Enter opens, q goes
    back, / searches, n and N go from match to match, : goes to an offset or a time, e goes to the
    next damage, p switches between JSON, text and hex, c copies the record as JSON.

    A search takes the options of pylog search (--key user-7 --not), or a text, or a JSON path
    ($.amount>=100). d reads all of a partition and lists what pylog doctor finds in it; on the
    first screen it reads all partitions, and NOTE says what is found.

    Nothing is written, locked or changed. Textual draws the screen: pip install
    '.[browse]' in a clone.

    TIME is an ISO date or time (2026-11-01, 2026-11-01T12:30:00Z; UTC unless it names a zone), how
    long before now (-30s, -15m, -2h, -7d, -4w), or milliseconds since 1970-01-01 UTC.

    Exit status: 0 the browser was left, 2 wrong usage, a path that cannot be read, no terminal, or
    Textual is missing.
    """
    streams = sys.stdin, sys.stdout, sys.stderr
    is_terminal = all(each is not None and each.isatty() for each in streams)
    if not is_terminal or os.environ.get("TERM") == "dumb":
        msg = "browse needs a terminal for input and output; pylog ls, cat and search do without"
        raise click.UsageError(msg)
    try:
        application = browse_app.BrowseApp
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "textual":
            raise
        msg = f"pylog browse needs Textual: {pylog.jobs.install_command('browse')}"
        raise click.UsageError(msg) from error
    app = application(chosen, way)
    app.run()
    if app.failure is not None:
        raise app.failure
    return exit_status.SOUND
