"""What ``--dry-run`` shows: what a command would remove from a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.cli.rendering.counted import counted

if TYPE_CHECKING:
    from pylog import Removal


def removal_lines(what: str, removal: Removal) -> list[str]:
    """Return what would be done, and what would be removed with it."""
    first, end = removal.start_offset, removal.end_offset
    offsets = f"offset {first}" if end - first == 1 else f"offsets {first} to {end - 1}"
    gone = (
        f"{offsets} would be removed: {counted(removal.records, 'record')}, "
        f"{counted(removal.size_bytes, 'byte')}, {counted(removal.segments, 'whole segment')}"
    )
    return [what, gone]


def removal_json(removal: Removal | None) -> dict[str, Any]:
    """Return what a dry run adds to the summary; nothing where there was none."""
    if removal is None:
        return {}
    return {
        "dryRun": True,
        "removed": {
            "startOffset": removal.start_offset,
            "endOffset": removal.end_offset,
            "records": removal.records,
            "sizeInBytes": removal.size_bytes,
            "segments": removal.segments,
        },
    }
