"""CRC-32C (Castagnoli), and what an error says of a wrong checksum.

Record batches v2 and producer snapshots have it. fastcrc uses what instructions the processor has,
and lets go of the interpreter's lock. v0/v1 messages use CRC-32 (IEEE), which is `zlib.crc32`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastcrc.crc32 import iscsi

if TYPE_CHECKING:
    from collections.abc import Callable

crc32c: Callable[..., int] = iscsi
"""``crc32c(data, value=None)``: the CRC-32C of a bytes-like object, continuing from ``value``."""


def wrong_checksum(what: str, stored: int, computed: int) -> str:
    """Return the sentence about a checksum that is not the one of the bytes it covers."""
    return f"{what} CRC stored {stored:#010x}, computed {computed:#010x}"
