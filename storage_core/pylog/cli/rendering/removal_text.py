"""What ``--dry-run`` shows: what a command would remove from a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pylog import Removal


def removal_lines(what: str, removal: Removal) -> list[str]:
    """Return what would be done, and what would go with it."""
    first, end = removal.start_offset, removal.end_offset
    if first == end:
        return [f"{what}, as it does now: nothing would go"]
    gone = (
        f"offsets {first} to {end - 1} would go: {removal.records} records; "
        f"{removal.size_bytes} bytes, {removal.segments} segments as a whole"
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
            "sizeBytes": removal.size_bytes,
            "segments": removal.segments,
        },
    }
