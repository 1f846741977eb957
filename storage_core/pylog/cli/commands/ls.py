"""``pylog ls``: what is in a log directory."""

from __future__ import annotations

import sys

import click

import pylog
from pylog.cli import exit_status, options
from pylog.cli.command_help import command
from pylog.cli.rendering.listing_json import listing_document
from pylog.cli.rendering.listing_text import print_listing
from pylog.cli.rendering.summary import write_json


@command("ls")
@options.paths
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print one JSON document, {"partitions": [...], "notLive": [...], "summary": {...}}, '
    "with sizes in bytes.",
)
def ls(paths: tuple[str, ...], *, as_json: bool) -> int:
    """List topics and partitions: offsets, size, leader epoch.

    One row a partition directory, internal topics too, from file names, side files and a few batch
    headers; no record is read. START is the first offset that a broker serves, END the offset
    after the last record (exclusive), ? where damage hides it. SIZE counts the .log files. EPOCH
    is the latest leader epoch. "-" stands for what the broker's version did not store.

    Directories that are not live (-delete, -stray, -future) and leftover files (.deleted,
    .cleaned, .swap) are counted, not read.

    Exit status: 0 sound, 1 damage was met (see NOTE), 2 a path or file cannot be read.
    """
    listing = pylog.list_partitions(*paths)
    if as_json:
        write_json(listing_document(listing))
    else:
        print_listing(listing, sys.stdout)
    return exit_status.status_of_listing(listing)
