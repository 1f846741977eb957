"""CRC-32C (Castagnoli), the checksum of record batches v2 and of producer snapshots.

``crc32c`` uses the processor's instruction (above 10 GB/s); where no build of it exists for a
platform, ``crcmod`` computes the same function about thirty times slower. v0/v1 messages use
CRC-32 (IEEE), which is `zlib.crc32`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

try:
    from crc32c import crc32c
except ImportError:  # no wheel for this platform
    import crcmod.predefined

    _crcmod_crc32c: Callable[..., int] = crcmod.predefined.mkPredefinedCrcFun("crc-32c")

    def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
        """Return the CRC-32C of ``data``, continuing from ``value``."""
        return _crcmod_crc32c(bytes(data), value)


__all__ = ["crc32c"]
