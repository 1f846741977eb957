"""Producer snapshots: which are refused, and what is in the others.

An input: a byte of flags, and the file. The flags may ask for a right version, entry count and
checksum.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pylog.errors import CorruptSnapshotError
from pylog.files.producer_snapshot import parse_producer_snapshot, read_producer_snapshot
from tests.fuzz.golden_files import golden_files
from tests.support.batches import crc32c

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_BYTES = 2_000
VERSION, COUNT, CHECKSUM = 0x01, 0x02, 0x04
HEAD_BYTES, ENTRY_BYTES = 10, 46
FIELD_WIDTHS = (8, 2, 4, 8, 4, 8, 4, 8)


def check(data: bytes, file: Path) -> None:
    content = _repaired(data[1:], data[0]) if data else b""
    file.write_bytes(content)
    expected = _entries(content)
    try:
        found = read_producer_snapshot(file)
    except CorruptSnapshotError:
        assert expected is None
    else:
        assert [tuple(entry) for entry in found] == expected
        assert parse_producer_snapshot(content) == found


def _repaired(content: bytes, flags: int) -> bytes:
    if len(content) < HEAD_BYTES:
        return content
    version, crc, rest = content[:2], content[2:6], content[6:]
    if flags & VERSION:
        version = struct.pack(">h", 1)
    if flags & COUNT:
        count = (len(rest) - 4) // ENTRY_BYTES
        rest = struct.pack(">i", count) + rest[4 : 4 + count * ENTRY_BYTES]
    if flags & CHECKSUM:
        crc = struct.pack(">I", crc32c(rest))
    return version + crc + rest


def _entries(content: bytes) -> list[tuple[int, ...]] | None:
    """Return the fields of all entries, None where the file is to be refused."""
    if len(content) < HEAD_BYTES or content[:2] != b"\0\1":
        return None
    count = int.from_bytes(content[6:10], signed=True)
    if count < 0 or len(content) != HEAD_BYTES + count * ENTRY_BYTES:
        return None
    if int.from_bytes(content[2:6]) != crc32c(content[6:]):
        return None
    entries, at = [], HEAD_BYTES
    for _ in range(count):
        fields = []
        for width in FIELD_WIDTHS:
            fields.append(int.from_bytes(content[at : at + width], signed=True))
            at += width
        entries.append(tuple(fields))
    return entries


def seeds() -> Iterator[bytes]:
    for count in (0, 1, 3):
        content = struct.pack(">hIi", 1, 0, count) + bytes(range(ENTRY_BYTES)) * count
        for flags in (0, CHECKSUM, VERSION | COUNT | CHECKSUM):
            yield bytes([flags]) + content


def golden_seeds() -> Iterator[bytes]:
    for _, data in golden_files(".snapshot", max_bytes=MAX_BYTES):
        yield bytes([0]) + data
