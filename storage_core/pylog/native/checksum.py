"""CRC-32C (Castagnoli), and what an error says of a wrong checksum.

Record batches v2 and producer snapshots have it. ``crc32c`` uses the processor's instruction (above
10 GB/s); where no build of it exists for a platform, ``crcmod`` computes the same function about
thirty times slower. v0/v1 messages use CRC-32 (IEEE), which is `zlib.crc32`.
"""

from __future__ import annotations

import importlib.util
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def _find_crc32c() -> Callable[..., int]:
    # The package asks for its own version in its metadata when it is imported, which takes longer
    # than importing Arrow; the function is in an extension module of it.
    package = importlib.util.find_spec("crc32c")
    folders = package.submodule_search_locations if package is not None else None
    found = PathFinder.find_spec("_crc32c", folders) if folders else None
    if found is not None and found.loader is not None:
        module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
        return module.crc32c  # type: ignore[no-any-return]
    try:
        return importlib.import_module("crc32c").crc32c  # type: ignore[no-any-return]
    except ImportError:  # no wheel for this platform
        crcmod = importlib.import_module("crcmod.predefined").mkPredefinedCrcFun("crc-32c")
        return lambda data, value=0: int(crcmod(bytes(data), value))


def wrong_checksum(what: str, stored: int, computed: int) -> str:
    """Return the sentence about a checksum that is not the one of the bytes it covers."""
    return f"{what} CRC stored {stored:#010x}, computed {computed:#010x}"


crc32c = _find_crc32c()
"""``crc32c(data, value=0)``: the CRC-32C of a bytes-like object, continuing from ``value``."""
