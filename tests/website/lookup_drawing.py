"""The drawing of a look-up: from an offset to the segment, the index entry, the batch, the record.

Its numbers are constants, which a test finds again in a log that it makes.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.website.svg import box, drawing, text_at


class Batch(NamedTuple):
    """A batch of the log in the drawing of a look-up; offsets inclusive, positions in bytes."""

    first_offset: int
    last_offset: int
    position: int
    size: int


SEGMENTS = (0, 368769, 737337)
"""Base offsets of the segments in the drawing of a look-up, and in the text around it."""

BATCHES = (
    Batch(368769, 368770, 0, 275),
    Batch(368771, 368772, 275, 275),
    Batch(368773, 368774, 550, 275),
    Batch(368775, 368777, 825, 382),
    Batch(368778, 368779, 1207, 275),
)
INDEX_ENTRIES = ((5, 550), (10, 1207))
"""Offsets relative to the segment's, and positions: `BATCHES` with ``index.interval.bytes=300``."""

WANTED = 368776


def lookup_drawing() -> str:
    """Return a drawing of the look-up of `WANTED`: segment, index entry, headers, record."""
    [containing] = [each for each in BATCHES if each.first_offset <= WANTED <= each.last_offset]
    base = SEGMENTS[1]
    relative, entry_position = max(each for each in INDEX_ENTRIES if each[0] <= WANTED - base)
    parts = [
        text_at(
            20, 30, f"1  The segment: the last one that begins at or before {WANTED}", bold=True
        )
    ]
    for number, segment in enumerate(SEGMENTS):
        colour = "#fdc083" if segment == base else "#e3e7ec"
        parts += box(20 + number * 244, 44, 230, 30, colour, f"{segment:020}.log")
    parts.append(
        text_at(20, 112, f"2  The index: the last entry at or before {WANTED - base}", bold=True)
    )
    parts.append(text_at(20, 130, f"{base:020}.index holds offsets relative to {base}", small=True))
    for number, (offset, position) in enumerate(INDEX_ENTRIES):
        colour = "#fdc083" if offset == relative else "#e3e7ec"
        parts += box(20 + number * 244, 140, 230, 30, colour, f"{offset} → byte {position}")
    parts.append(
        text_at(330, 208, "3  The headers: from there to the batch that has it", bold=True)
    )
    scale = 720 / (BATCHES[-1].position + BATCHES[-1].size)
    for batch in BATCHES:
        is_walked = entry_position <= batch.position <= containing.position
        colour = "#fdc083" if batch == containing else "#8fbcdb" if is_walked else "#e3e7ec"
        x, wide = 20 + batch.position * scale, batch.size * scale
        parts += box(x, 244, wide, 44, colour, str(batch.first_offset), f"to {batch.last_offset}")
        parts.append(text_at(x, 304, f"{batch.position}", small=True))
    x = 20 + entry_position * scale
    parts.append(
        f'<path d="M135 170 L{x:.0f} 240" stroke="#333" fill="none" marker-end="url(#tip)"/>'
    )
    parts.append(
        text_at(20, 342, "4  The record: in the batch, once its checksum is right", bold=True)
    )
    parts += box(20, 356, 150, 30, "#8fbcdb", "header, 61 bytes")
    for delta in range(containing.last_offset - containing.first_offset + 1):
        offset = containing.first_offset + delta
        colour = "#fdc083" if offset == WANTED else "#e3e7ec"
        parts += box(176 + delta * 188, 356, 182, 30, colour, f"+{delta}: {offset}")
    return drawing(404, parts, f"The look-up of offset {WANTED} in segment {base}")
