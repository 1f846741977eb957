"""A listing for people: a table where it goes to a terminal, aligned plain text elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.cli.byte_size import format_bytes
from pylog.cli.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.table import Table

    from pylog.cli.partition_listing import Listing, PartitionRow

_LEFT = {"TOPIC", "TOPIC ID", "DIRECTORY", "NOTE"}
_MAY_WRAP = {"TOPIC", "DIRECTORY", "NOTE"}

_STATES = {
    "delete": "being deleted",
    "stray": "not owned by its broker",
    "future": "being moved between disks",
}


def _columns(listing: Listing, note: Callable[[PartitionRow], str]) -> dict[str, list[str]]:
    """Return the cells by heading; directories only where there are several, notes only if any."""
    rows = listing.rows
    columns = {
        "TOPIC": [printable(row.topic) for row in rows],
        "PARTITION": [str(row.partition) for row in rows],
        "START": [_known(row.log_start_offset, "?") for row in rows],
        "END": [_known(row.log_end_offset, "?") for row in rows],
        "SEGMENTS": [str(row.segments) for row in rows],
        "SIZE": [format_bytes(row.size_bytes) for row in rows],
        "EPOCH": [_known(row.leader_epoch, "-") for row in rows],
        "TOPIC ID": [row.topic_id or "-" for row in rows],
        "DIRECTORY": [printable(row.log_directory) for row in rows],
        "NOTE": [note(row) for row in rows],
    }
    if len(set(columns["DIRECTORY"])) <= 1:
        del columns["DIRECTORY"]
    if not any(columns["NOTE"]):
        del columns["NOTE"]
    return columns


def _full_note(row: PartitionRow) -> str:
    return "; ".join([*map(printable, [*row.findings, *row.notes]), *_leftovers(row)])


def _short_note(row: PartitionRow) -> str:
    findings = [_count(len(row.findings), "finding")] if row.findings else []
    notes = [_count(len(row.notes), "note")] if row.notes else []
    return ", ".join([*findings, *notes, *_leftovers(row)])


def _leftovers(row: PartitionRow) -> list[str]:
    return [_count(row.leftover_files, "leftover file")] if row.leftover_files else []


def _known(value: int | None, otherwise: str) -> str:
    return otherwise if value is None else str(value)


def _count(number: int, thing: str, plural: str | None = None) -> str:
    return f"{number} {thing if number == 1 else plural or thing + 's'}"


def plain_table(listing: Listing) -> Iterator[str]:
    """Yield the lines of the table, columns aligned and two blanks apart; none without rows."""
    if not listing.rows:
        return
    padded = []
    for heading, cells in _columns(listing, _full_note).items():
        width = max(map(len, (heading, *cells)))
        pad = str.ljust if heading in _LEFT else str.rjust
        padded.append([pad(cell, width) for cell in (heading, *cells)])
    for row in zip(*padded, strict=True):
        yield "  ".join(row).rstrip()


def rich_table(listing: Listing) -> Table:
    """Return the table for a terminal; `finding_lines` tell what its notes only count."""
    # Not at the head of the file: a listing that goes into a pipe need not wait for rich.
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    columns = _columns(listing, _short_note)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in columns:
        table.add_column(
            heading,
            justify="left" if heading in _LEFT else "right",
            overflow="fold",
            no_wrap=heading not in _MAY_WRAP,
        )
    for row, cells in zip(listing.rows, zip(*columns.values(), strict=True), strict=True):
        style = "red" if row.findings else ""
        # Text, not str: a topic may be called [red].
        table.add_row(*(Text(cell, style) for cell in cells))
    return table


def finding_lines(listing: Listing) -> Iterator[str]:
    """Yield the findings and notes, each with its partition."""
    for row in listing.rows:
        for finding in [*row.findings, *row.notes]:
            yield printable(f"{row.topic}-{row.partition}: {finding}")


def closing_lines(listing: Listing) -> Iterator[str]:
    """Yield what follows the table: directories that are not live, and the summary."""
    for each in listing.not_live:
        state = each["state"]
        yield f"not live (-{state}, {_STATES[state]}): {printable(each['path'])}"
    totals = listing.totals
    parts = [
        _count(totals["topics"], "topic"),
        _count(totals["partitions"], "partition"),
        _count(totals["segments"], "segment"),
        format_bytes(totals["sizeInBytes"]),
    ]
    if totals["notLive"]:
        parts.append(_count(totals["notLive"], "directory not live", "directories not live"))
    if totals["leftoverFiles"]:
        parts.append(
            f"{_count(totals['leftoverFiles'], 'leftover file')} (.deleted, .cleaned, .swap)"
        )
    if totals["findings"]:
        parts.append(_count(totals["findings"], "finding"))
    yield ", ".join(parts)
