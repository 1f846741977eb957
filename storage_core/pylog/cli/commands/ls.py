"""``pylog ls``: what is in a log directory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pylog
from pylog.cli import exit_status, options
from pylog.cli.options import command
from pylog.cli.output import disk_text, known, wrapped, write_json
from pylog.cli.style import BOLD, RED, OutputTraits
from pylog.cli.table import aligned_columns, aligned_rows, can_show_blocks
from pylog.text.words import counted, format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pylog.results import ListedLogDirectory, ListedPartition, PartitionListing


@command(
    "ls",
    "pylog ls /mnt/kafka-logs",
    "pylog ls /mnt/kafka-logs --pattern '^orders'",
)
@options.paths
@options.topics("Only these topics; may be given several times. Default: all.")
@options.pattern_of_any
@options.color
@options.json_output(
    'Print one JSON document, {"partitions": [...], "notLive": [...], "logDirectories": [...], '
    '"summary": {...}}, with sizes in bytes.'
)
def ls(
    paths: tuple[str, ...], *, topics: tuple[str, ...], pattern: str | None, as_json: bool
) -> int:
    """List topics and partitions: offsets, size, leader epoch.

    There is one row for each partition directory, internal topics included. It comes from file
    names, side files and a few batch headers; no record is read. START is the first offset that a
    broker serves and END the offset after the last record (exclusive), or ? where damage hides
    them. SIZE is the size of the .log files, DISK the size of all files in the directory. EPOCH is
    the latest leader epoch that a broker knows after it has loaded the log. "-" stands for values
    that the broker's version did not store.

    A line for each log directory follows: the ids of cluster, node and directory, and the size of
    all its files, by kind, as du --apparent-size counts it.

    A partition that is damaged or cannot be read has a NOTE, and the others are listed as usual.
    Directories that are not live (-delete, -stray, -future) and leftover files (.deleted, .cleaned,
    .swap) are counted and not read.

    Nothing is shortened: a narrow terminal drops the column TOPIC ID and wraps long names.

    Exit status: 0 nothing wrong was seen (records are not read), 1 a partition is damaged or cannot
    be read (see NOTE), 2 nothing under a PATH can be read.
    """
    names = options.names_in(topics, pattern)
    listing = pylog.list_partitions(*paths, topics=names or None, pattern=pattern)
    if as_json:
        write_json(_document(listing))
    else:
        _print_table(listing)
        sys.stdout.writelines(f"{line}\n" for line in _closing_lines(listing))
    return exit_status.status_of_listing(listing)


_LEFT = {"TOPIC", "TOPIC ID", "DIRECTORY", "NOTE"}
_LEAST_NEEDED = ("TOPIC ID", "DISK")

_STATES = {
    "delete": "being deleted",
    "stray": "not owned by its broker",
    "future": "being moved between disks",
}


def _columns(
    listing: PartitionListing, note: Callable[[ListedPartition], str]
) -> dict[str, list[str]]:
    """Return the cells by heading; directories only where there are several, notes only if any."""
    rows = listing.partitions
    columns = {
        "TOPIC": [pylog.jobs.printable(row.topic) for row in rows],
        "PARTITION": [str(row.partition) for row in rows],
        "START": [known(row.log_start_offset, "?") for row in rows],
        "END": [known(row.log_end_offset, "?") for row in rows],
        "SEGMENTS": [str(row.segments) for row in rows],
        "SIZE": [format_bytes(row.size_bytes) for row in rows],
        "DISK": [format_bytes(row.disk_bytes) for row in rows],
        "EPOCH": [known(row.leader_epoch) for row in rows],
        "TOPIC ID": [row.topic_id or "-" for row in rows],
        "DIRECTORY": [pylog.jobs.printable(row.log_directory) for row in rows],
        "NOTE": [note(row) for row in rows],
    }
    if len(set(columns["DIRECTORY"])) <= 1:
        del columns["DIRECTORY"]
    if not any(columns["NOTE"]):
        del columns["NOTE"]
    return columns


def _full_note(row: ListedPartition) -> str:
    return "; ".join([*map(pylog.jobs.printable, [*row.findings, *row.notes]), *_leftovers(row)])


def _short_note(row: ListedPartition) -> str:
    findings = [counted(len(row.findings), "finding")] if row.findings else []
    notes = [counted(len(row.notes), "note")] if row.notes else []
    return ", ".join([*findings, *notes, *_leftovers(row)])


def _leftovers(row: ListedPartition) -> list[str]:
    return [counted(row.leftover_files, "leftover file")] if row.leftover_files else []


def _print_table(listing: PartitionListing) -> None:
    """Print the table; in a terminal, lines below it spell out what its notes only count."""
    traits = OutputTraits.of(sys.stdout)
    if not traits.is_terminal:
        if listing.partitions:
            table = aligned_columns(_columns(listing, _full_note), _LEFT)
            sys.stdout.writelines(f"{line}\n" for line in table)
        return
    columns = _columns(listing, _short_note)
    heading, *rows = aligned_rows(columns, _LEFT, traits.width, _LEAST_NEEDED)
    rule = "─" if can_show_blocks(sys.stdout.encoding or "utf-8") else "-"
    sys.stdout.writelines(f"{traits.styled(line, BOLD)}\n" for line in heading)
    sys.stdout.write(rule * max(len(line) for lines in (heading, *rows) for line in lines) + "\n")
    for row, lines in zip(listing.partitions, rows, strict=True):
        style = RED if row.findings else ""
        sys.stdout.writelines(f"{traits.styled(line, style)}\n" for line in lines)
    for row in listing.partitions:
        for finding in [*row.findings, *row.notes]:
            text = pylog.jobs.printable(f"{row.topic}-{row.partition}: {finding}")
            sys.stdout.writelines(f"{line}\n" for line in wrapped(text, traits.width))


def _closing_lines(listing: PartitionListing) -> Iterator[str]:
    """Yield what follows the table: directories that are not live, and the summary."""
    for each in listing.not_live:
        yield (
            f"not live (-{each.state}, {_STATES[each.state]}): {pylog.jobs.printable(each.path)}, "
            f"{format_bytes(each.disk_bytes)}"
        )
    width = OutputTraits.of(sys.stdout).width
    for directory in listing.log_directories:
        yield from wrapped(_log_directory_text(directory), width)
    totals = listing.totals
    parts = [
        counted(totals.topics, "topic"),
        counted(totals.partitions, "partition"),
        counted(totals.segments, "segment"),
        format_bytes(totals.size_bytes),
        f"{format_bytes(totals.disk_bytes)} on disk",
    ]
    if totals.not_live:
        parts.append(counted(totals.not_live, "directory not live", "directories not live"))
    if totals.leftover_files:
        leftover_files = counted(totals.leftover_files, "leftover file")
        parts.append(f"{leftover_files} (.deleted, .cleaned, .swap)")
    if totals.findings:
        parts.append(counted(totals.findings, "finding"))
    yield from wrapped(", ".join(parts), width)


def _log_directory_text(each: ListedLogDirectory) -> str:
    ids = [
        f"{word} {value}"
        for word, value in (
            ("cluster", each.cluster_id),
            ("node", each.node_id),
            ("directory id", each.directory_id),
        )
        if value is not None
    ]
    errors = [f"not counted: {error}" for error in each.errors]
    text = f"{each.path}: {', '.join([*ids, disk_text(each.kinds)])}"
    return pylog.jobs.printable("; ".join([text, *errors]))


def _document(listing: PartitionListing) -> dict[str, Any]:
    left_out = dict.fromkeys(("log_directory", "errors", "warnings", "is_readable"))
    return {
        "partitions": [
            pylog.jobs.document_of(each, left_out) | {"findings": each.findings}
            for each in listing.partitions
        ],
        "notLive": pylog.jobs.document_of(listing.not_live),
        "logDirectories": pylog.jobs.document_of(listing.log_directories),
        "summary": pylog.jobs.document_of(listing.totals),
    }
