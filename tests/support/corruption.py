"""Damage, and checksums made right again over it."""

from __future__ import annotations

import struct
import zlib

from tests.support.batches import crc32c


def entries(data: bytes) -> list[bytes]:
    """Return the whole entries at the head of ``data``, by their size fields alone."""
    found, at = [], 0
    while len(data) - at >= 17:
        (size,) = struct.unpack_from(">i", data, at + 8)
        if size < 14 or at + 12 + size > len(data):
            break
        found.append(data[at : at + 12 + size])
        at += 12 + size
    return found


def resealed(entry: bytes) -> bytes:
    """Return the entry with the checksum that its bytes call for."""
    if entry[16] == 2 and len(entry) >= 61:
        return entry[:17] + struct.pack(">I", crc32c(entry[21:])) + entry[21:]
    return entry[:12] + struct.pack(">I", zlib.crc32(entry[16:])) + entry[16:]


def with_sound_checksums(data: bytes) -> bytes:
    """Return the whole entries at the head of ``data``, each with a right checksum."""
    return b"".join(resealed(entry) for entry in entries(data))
