"""What ``search`` says at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.cli.rendering.byte_size import format_bytes
from pylog.cli.rendering.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog import SearchSummary


def summary_lines(summary: SearchSummary) -> Iterator[str]:
    """Yield what was found, how much was looked through, and how much could not be."""
    where = counted(summary.partitions, "partition")
    sets = summary.uncounted_batches
    wrapped = f" and {counted(sets, 'compressed message set')} of v0 or v1" if sets else ""
    of_all = "" if summary.is_complete else f" of {format_bytes(summary.total_bytes)}"
    yield (
        f"{counted(summary.matches, 'match', 'matches')} in "
        f"{counted(summary.scanned_records, 'record')}{wrapped} of {where}, "
        f"{format_bytes(summary.scanned_bytes)}{of_all} looked through"
        f"{'' if summary.is_complete else '; stopped at the limit'}"
    )
    if summary.unreadable:
        size_bytes = sum(each.end_position - each.position for each in summary.unreadable)
        yield (
            f"{counted(len(summary.unreadable), 'damaged range')} ({format_bytes(size_bytes)}) "
            "could not be searched, see above"
        )
