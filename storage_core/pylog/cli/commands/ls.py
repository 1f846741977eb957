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


@command(
    "ls",
    "pylog ls /mnt/kafka-logs",
    "pylog ls /mnt/kafka-logs --pattern '^orders'",
)
@options.paths
@options.topics("Only these topics; may be given several times. Default: all.")
@click.option(
    "--pattern",
    metavar="REGEX",
    help="Only topics in whose name this regular expression is found; ^ and $ stand for the "
    "name's start and end. Internal topics are matched, too.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print one JSON document, {"partitions": [...], "notLive": [...], "summary": {...}}, '
    "with sizes in bytes.",
)
def ls(
    paths: tuple[str, ...], *, topics: tuple[str, ...], pattern: str | None, as_json: bool
) -> int:
    """List topics and partitions: offsets, size, leader epoch.

    There is one row for each partition directory, internal topics included. It comes from file
    names, side files and a few batch headers; no record is read. START is the first offset that a
    broker serves and END the offset after the last record (exclusive), or ? where damage hides
    them. SIZE is the size of the .log files, EPOCH the latest leader epoch. "-" stands for what the
    broker's version did not store.

    A partition that is damaged or cannot be read has a NOTE, and the others are listed as usual.
    Directories that are not live (-delete, -stray, -future) and leftover files (.deleted, .cleaned,
    .swap) are counted and not read.

    Nothing is shortened: in a terminal that is too narrow, the column TOPIC ID is left out, and
    long names go on in the next line.

    Exit status: 0 nothing wrong was seen (records are not read), 1 a partition is damaged or cannot
    be read (see NOTE), 2 nothing under a PATH can be read.
    """
    names = options.names_in(topics, pattern)
    listing = pylog.list_partitions(*paths, topics=names or None, pattern=pattern)
    if as_json:
        write_json(listing_document(listing))
    else:
        print_listing(listing, sys.stdout)
    return exit_status.status_of_listing(listing)
