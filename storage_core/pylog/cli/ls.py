"""``pylog ls``: what is in a log directory."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from pylog.cli.listing_text import closing_lines, finding_lines, plain_table, rich_table
from pylog.cli.partition_listing import list_paths


def ls(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Log directories (entries of a broker's log.dirs) or <topic>-<partition> "
            "directories.",
        ),
    ],
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help='Print one JSON document, {"partitions": [...], "notLive": [...], '
            '"summary": {...}}, with sizes in bytes.',
        ),
    ] = False,
) -> int:
    """List topics and partitions: offsets, size, leader epoch.

    One row a partition directory, internal topics too, from file names, side files and a few batch
    headers; no record is read. START is the first offset that a broker serves, END the offset
    after the last record (exclusive), ? where damage hides it. SIZE counts the .log files. EPOCH
    is the latest leader epoch. "-" stands for what the broker's version did not store.

    Directories that are not live (-delete, -stray, -future) and leftover files (.deleted,
    .cleaned, .swap) are counted, not read.

    Exit status: 0 sound, 1 damage was met (see NOTE), 2 a path or file cannot be read.
    """
    listing = list_paths(paths)
    if as_json:
        sys.stdout.write(json.dumps(listing.to_json(), indent=2) + "\n")
        return listing.status
    if sys.stdout.isatty():
        from rich.console import Console  # noqa: PLC0415 - see rich_table

        Console(highlight=False).print(rich_table(listing))
        sys.stdout.writelines(f"{line}\n" for line in finding_lines(listing))
    else:
        sys.stdout.writelines(f"{line}\n" for line in plain_table(listing))
    sys.stdout.writelines(f"{line}\n" for line in closing_lines(listing))
    return listing.status
