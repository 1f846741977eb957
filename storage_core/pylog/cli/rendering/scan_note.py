"""What ``cat`` says on stderr where it has printed nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.cli.rendering.counted import counted

if TYPE_CHECKING:
    from pylog import Scan


def nothing_matched(scan: Scan) -> str:
    """Return the sentence that tells an empty range from one in which nothing matched."""
    where = counted(len(scan.partitions), "partition")
    offsets = sum(task.end_offset - task.start_offset for task in scan.plan())
    if not offsets:
        return f"no record matches: the range that was asked for is empty ({where})"
    return f"no record matches: {counted(offsets, 'offset')} of {where} were looked at"
