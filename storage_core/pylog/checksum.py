"""CRC-32C (Castagnoli), the checksum of record batches v2 and of producer snapshots.

``crc32c`` uses the processor's instruction (above 10 GB/s); where no build of it exists for a
platform, ``crcmod`` computes the same function about thirty times slower. v0/v1 messages use
CRC-32 (IEEE), which is `zlib.crc32`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def _find_crc32c() -> Callable[..., int]:
    try:
        return importlib.import_module("crc32c").crc32c  # type: ignore[no-any-return]
    except ImportError:  # no wheel for this platform
        crcmod = importlib.import_module("crcmod.predefined").mkPredefinedCrcFun("crc-32c")
        return lambda data, value=0: int(crcmod(bytes(data), value))


crc32c = _find_crc32c()
"""``crc32c(data, value=0)``: the CRC-32C of a bytes-like object, continuing from ``value``."""
