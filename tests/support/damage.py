"""Damaged batches: single fields changed, and where batches lie in a file of several."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tests.support.batches import Built

SIZE_AT, MAGIC_AT, CRC_AT, PAYLOAD_AT = 8, 16, 17, 61


def flip(path: Path, at: int, pattern: int = 1) -> None:
    """Flip bits of one byte of a file; ``at`` counts from the end if it is negative."""
    data = bytearray(path.read_bytes())
    data[at] ^= pattern
    path.write_bytes(data)


def with_bytes(built: Built, at: int, data: bytes) -> Built:
    """Return the batch with other bytes from ``at`` on; its length stays."""
    return replace(built, data=built.data[:at] + data + built.data[at + len(data) :])


def with_flip(built: Built, at: int, pattern: int = 0xFF) -> Built:
    return with_bytes(built, at, bytes([built.data[at] ^ pattern]))


def with_size(built: Built, size_bytes: int) -> Built:
    """Return the batch with a size field that claims ``size_bytes`` of file."""
    return with_bytes(built, SIZE_AT, (size_bytes - 12).to_bytes(4, "big", signed=True))


def with_base_offset(built: Built, offset: int) -> Built:
    """Return the batch moved to another offset, which its checksum does not cover."""
    return with_bytes(built, 0, offset.to_bytes(8, "big", signed=True))


def positions(batches: Sequence[Built]) -> list[int]:
    """Return where each batch begins, and where the last one ends."""
    found = [0]
    for built in batches:
        found.append(found[-1] + len(built.data))
    return found


def visible_offsets(batches: Iterable[Built]) -> list[int]:
    return [record.offset for built in batches for record in built.visible]
