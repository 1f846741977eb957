"""What a shared library for macOS says of itself: as much of ``otool`` and ``codesign`` as we need.

Nothing here can load one. What macOS would refuse shows in its load commands, its symbols, and in
the hashes of its pages, without which no Apple processor runs code.
"""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

SYSTEM_LIBRARY = "/usr/lib/libSystem.B.dylib"
OF_THE_LINKER = {"__dso_handle", "_mh_dylib_header"}
"""Places that a linker names in each library."""
OF_THE_LOADER = {"dyld_stub_binder"}
"""What finds functions when they are first called, on Macs of old."""

ARM = 0x0100000C

_LIBRARY = 6
_SEGMENT, _SYMBOLS, _BUILD_VERSION, _SIGNATURE = 0x19, 0x2, 0x32, 0x1D
_OLD_VERSION = 0x24
_LOADED = {0xC, 0x80000018, 0x8000001F}  # a library, one that may be missing, one whose names count
_RUN_PATH = 0x8000001C
_WRITE_AND_EXECUTE = 2 | 4
_DEBUG, _PRIVATE, _KIND, _EXTERNAL = 0xE0, 0x10, 0x0E, 1
_SIGNATURES, _PAGES = 0xFADE0CC0, 0xFADE0C02
_AD_HOC = 2
_SHA256 = 2


class MachO(NamedTuple):
    """A 64-bit library.

    Attributes
    ----------
    is_library
        Whether it is one, and no program or object file.
    processor
        Apple's number of the kind of processor.
    oldest_system
        The version of macOS that it asks for.
    loads
        The libraries that are loaded with it.
    exports, imports
        Names of functions, without the underscore that C's have.
    has_run_path
        Whether it says where else libraries are looked for.
    has_writable_code
        Whether a segment may be written and executed.
    signature
        "" without one, "wrong" if a page has another hash, else "ad hoc" or "by name".
    """

    is_library: bool
    processor: int
    oldest_system: tuple[int, int]
    loads: list[str]
    exports: set[str]
    imports: set[str]
    has_run_path: bool
    has_writable_code: bool
    signature: str


def read_mach_o(content: bytes) -> MachO:
    """Read a library."""
    _, processor, _, kind, count, _, _, _ = struct.unpack_from("<8I", content)
    at = 32
    loads: list[str] = []
    exports: set[str] = set()
    imports: set[str] = set()
    oldest_system, signature = (0, 0), ""
    has_run_path = has_writable_code = False
    for _ in range(count):
        command, size = struct.unpack_from("<2I", content, at)
        fields = content[at + 8 : at + size]
        if command in _LOADED:
            name_at = struct.unpack_from("<I", fields)[0]
            loads.append(content[at + name_at : at + size].rstrip(b"\0").decode())
        elif command == _RUN_PATH:
            has_run_path = True
        elif command == _SEGMENT:
            protection = struct.unpack_from("<16s4Q2I", fields)[-1]
            has_writable_code |= protection & _WRITE_AND_EXECUTE == _WRITE_AND_EXECUTE
        elif command in {_BUILD_VERSION, _OLD_VERSION}:
            version = struct.unpack_from("<2I", fields)[command == _BUILD_VERSION]
            oldest_system = (version >> 16, version >> 8 & 0xFF)
        elif command == _SYMBOLS:
            exports, imports = _symbols(content, *struct.unpack_from("<4I", fields))
        elif command == _SIGNATURE:
            signature = _signature(content, *struct.unpack_from("<2I", fields))
        at += size
    return MachO(
        kind == _LIBRARY,
        processor,
        oldest_system,
        loads,
        exports,
        imports,
        has_run_path,
        has_writable_code,
        signature,
    )


def _symbols(
    content: bytes, at: int, count: int, text_at: int, _: int
) -> tuple[set[str], set[str]]:
    exports: set[str] = set()
    imports: set[str] = set()
    for name_at, kind, _, _, _ in struct.iter_unpack("<I2BHQ", content[at : at + 16 * count]):
        end = content.index(b"\0", text_at + name_at)
        name = content[text_at + name_at : end].decode().removeprefix("_")
        if kind & _EXTERNAL and not kind & (_DEBUG | _PRIVATE):
            (exports if kind & _KIND else imports).add(name)
    return exports, imports


def _signature(content: bytes, at: int, size: int) -> str:
    blob = content[at : at + size]
    magic, _, count = struct.unpack_from(">3I", blob)
    if magic != _SIGNATURES:
        return "wrong"
    for _, start in struct.iter_unpack(">2I", blob[12 : 12 + 8 * count]):
        if struct.unpack_from(">I", blob, start)[0] == _PAGES:
            return _hashes(content[:at], blob[start:])
    return "wrong"


def _hashes(signed: bytes, directory: bytes) -> str:
    fields = struct.unpack_from(">9I4B", directory)
    flags, hashes_at, count, limit = fields[3], fields[4], fields[7], fields[8]
    size, kind, _, page_bits = fields[9:]
    page = 1 << page_bits
    found = [
        hashlib.sha256(signed[start : start + page]).digest() for start in range(0, limit, page)
    ]
    kept = [directory[hashes_at + size * i : hashes_at + size * (i + 1)] for i in range(count)]
    if kind != _SHA256 or limit != len(signed) or found != kept:
        return "wrong"
    return "ad hoc" if flags & _AD_HOC else "by name"
