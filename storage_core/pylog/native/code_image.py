"""Machine code in a file, and in memory.

A file, all integers unsigned and little-endian::

    magic            8 bytes   b"pylogimg"
    key              8 bytes   what the code was made from, see `pylog.native.kernel_cache`
    code size        uint32
    entry            uint32    where in the code the kernel begins
    import count     uint32
    imports         each: where in the code its address belongs (uint32), name (12 bytes, zeros)
    code
    checksum         8 bytes   of all before it, Python's `source_hash`

The checksum finds what is torn or damaged. It is no signature: whoever can write the file can run
code in the reader's name, which is why `pylog.native.kernel_cache` looks at who that is.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from dataclasses import dataclass
from importlib.util import source_hash

IMPORTS = ("memcpy", "memmove", "memset", "pread")
"""All that code may call outside itself: functions of the C library."""

MOST_BYTES = 1 << 22
"""The largest file; kernels are a hundredth of it."""

_MAGIC = b"pylogimg"
KEY_BYTES = 8
_CHECKSUM_BYTES = 8
_HEAD = struct.Struct(f"<8s{KEY_BYTES}sIII")
_IMPORT = struct.Struct("<I12s")
_ADDRESS = struct.Struct("<Q")


class UnsupportedObjectError(Exception):
    """An object file holds something that an image cannot."""


@dataclass(frozen=True, slots=True)
class CodeImage:
    """Position-independent machine code of one kernel.

    Attributes
    ----------
    code
        Instructions and constants.
    entry
        The byte of ``code`` where the kernel begins: ``int32 (void *, void *, int64 *frame)``.
    imports
        For each function called outside: the byte of ``code`` that its address is written to, eight
        bytes, and its name.
    """

    code: bytes
    entry: int
    imports: tuple[tuple[int, str], ...]

    def to_bytes(self, key: bytes) -> bytes:
        """Return the content of a file that keeps this image under ``key`` (KEY_BYTES)."""
        head = _HEAD.pack(_MAGIC, key, len(self.code), self.entry, len(self.imports))
        imports = [_IMPORT.pack(at, name.encode()) for at, name in self.imports]
        content = b"".join([head, *imports, self.code])
        return content + source_hash(content)

    @classmethod
    def from_bytes(cls, content: bytes, key: bytes) -> CodeImage | None:
        """Return the image that a file keeps; None unless it is whole and was kept under ``key``.

        Whatever ``content`` is, what is returned can be loaded; whether it can be trusted is for
        the caller to know.
        """
        end = len(content) - _CHECKSUM_BYTES
        if end < _HEAD.size or source_hash(content[:end]) != content[end:]:
            return None
        magic, stored_key, size, entry, count = _HEAD.unpack_from(content)
        start = _HEAD.size + count * _IMPORT.size
        if magic != _MAGIC or stored_key != key or start + size != end or entry >= size:
            return None
        table = content[_HEAD.size : start]
        imports = tuple(
            (at, name.rstrip(b"\0").decode("latin-1")) for at, name in _IMPORT.iter_unpack(table)
        )
        if any(at + _ADDRESS.size > size or name not in IMPORTS for at, name in imports):
            return None
        return cls(content[start:end], entry, imports)


class LoadedImage:
    """An image in executable memory, which stays as long as this object.

    Memory is never writable and executable at once.

    Attributes
    ----------
    entry
        The address of the kernel.

    Raises
    ------
    OSError
        The system grants no executable memory.
    """

    __slots__ = ("_memory", "entry")

    def __init__(self, image: CodeImage) -> None:
        code = bytearray(image.code)
        for at, name in image.imports:
            _ADDRESS.pack_into(code, at, _address_of(name))
        self._memory = mmap.mmap(-1, len(code), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._memory.write(code)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        if _process.mprotect(address, len(code), mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "cannot make memory executable")
        self.entry = address + image.entry


_process = ctypes.CDLL(None, use_errno=True)
_process.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def _address_of(name: str) -> int:
    return ctypes.cast(_process[name], ctypes.c_void_p).value or 0
