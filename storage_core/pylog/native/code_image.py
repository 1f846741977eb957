"""Machine code in a file, and in memory.

A file, all integers unsigned and little-endian::

    magic            8 bytes   b"pylogimg"
    key              8 bytes   what the code was made from, see `pylog.native.code_image`
    code size        uint32
    entry            uint32    where in the code the kernel begins
    import count     uint32
    imports         each: where in the code its address belongs (uint32), name (12 bytes, zeros)
    code
    checksum         8 bytes   of all before it, Python's `source_hash`

The checksum finds what is torn or damaged. It is no signature: whoever can write the file can run
code in the reader's name, which is why `pylog.native.code_image` looks at who that is.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import stat
import struct
import sys
from dataclasses import dataclass
from importlib.util import find_spec, source_hash
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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
    """Position-independent machine code of one kernel."""

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
        """Return the image that a file keeps; None unless whole and kept under ``key``."""
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


# From the object file that LLVM writes to a code image: what a linker does, as far as we need it.
#
# An object file (ELF, 64 bits) has sections, symbols that lie in them or are undefined, and
# relocations: places in a section where the distance to a symbol belongs. Sections are put one
# after the other, distances filled in, and for each function of the C library there is a stub
# at the end::
#
#     ff 25 02 00 00 00   jmp [rip + 2]
#     cc cc               (never reached)
#     8 bytes             the function's address, filled in when the image is loaded
#
# Everything else is refused: writable data, absolute addresses, other symbols. A kernel that could
# raise an exception or allocate memory has one of these.
#
# Sources: the System V ABI, and its x86-64 supplement for the two kinds of relocations.


_EXPECTED_IDENT = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_TYPE_RELOCATABLE = 1
_MACHINE_X86_64 = 62
_HEADER = struct.Struct("<16xHH20xQ10xHHH")  # type, machine; section table: at, entry size, count
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

_SYMBOL_TABLE = 2
_RELOCATIONS_WITH_ADDEND = 4
_NO_BITS = 8
_FLAG_WRITE = 1
_FLAG_ALLOC = 2
_UNDEFINED = 0
_FIRST_RESERVED_INDEX = 0xFF00

_PC32 = 2
_PLT32 = 4
_UNWINDING = ".eh_frame"  # for C++ exceptions and debuggers: nothing refers to it

_STUB = b"\xff\x25\x02\x00\x00\x00\xcc\xcc" + bytes(8)
_STUB_ADDRESS_AT = 8
_STUB_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    flags: int
    content: bytes
    link: int
    info: int
    alignment: int


def link(object_file: bytes, entry: str) -> CodeImage:
    """Return the image of an object file whose kernel is the function ``entry``."""
    sections = _sections(object_file)
    code = bytearray()
    places: dict[int, int] = {}
    for index, section in enumerate(sections):
        if section.flags & _FLAG_ALLOC and section.content and section.name != _UNWINDING:
            if section.flags & _FLAG_WRITE or section.kind == _NO_BITS:
                raise UnsupportedObjectError(f"writable data: section {section.name}")
            code += bytes(-len(code) % section.alignment)
            places[index] = len(code)
            code += section.content
    symbols = _Symbols(sections, places)
    code += bytes(-len(code) % _STUB_ALIGNMENT)
    for name in symbols.imported():
        symbols.stubs[name] = len(code)
        code += _STUB
    for section in sections:
        if section.kind == _RELOCATIONS_WITH_ADDEND and section.info in places:
            for at, symbol_and_kind, addend in _RELOCATION.iter_unpack(section.content):
                kind = symbol_and_kind & 0xFFFFFFFF
                target = symbols.address(symbol_and_kind >> 32)
                if kind not in {_PC32, _PLT32}:
                    raise UnsupportedObjectError(f"relocation of kind {kind} at {at}")
                place = places[section.info] + at
                struct.pack_into("<i", code, place, target + addend - place)
    imports = tuple((at + _STUB_ADDRESS_AT, name) for name, at in symbols.stubs.items())
    return CodeImage(bytes(code), symbols.address_of(entry), imports)


def _sections(object_file: bytes) -> list[_Section]:
    if not object_file.startswith(_EXPECTED_IDENT):
        raise UnsupportedObjectError("not a little-endian ELF file of 64 bits")
    kind, machine, table_at, entry_size, count, names_index = _HEADER.unpack_from(object_file)
    if (kind, machine, entry_size) != (_TYPE_RELOCATABLE, _MACHINE_X86_64, _SECTION.size):
        raise UnsupportedObjectError(f"not a relocatable file for x86-64: machine {machine}")
    table = object_file[table_at : table_at + count * _SECTION.size]
    rows = list(_SECTION.iter_unpack(table))
    contents = [
        b"" if row[1] == _NO_BITS else object_file[row[4] : row[4] + row[5]] for row in rows
    ]
    return [
        _Section(
            _text(contents[names_index], name),
            kind,
            flags,
            bytes(size) if kind == _NO_BITS else content,
            link_index,
            info,
            max(alignment, 1),
        )
        for (name, kind, flags, _, _, size, link_index, info, alignment, _), content in zip(
            rows, contents, strict=True
        )
    ]


def _text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


class _Symbols:
    """The symbols of an object file, once it is known where its sections lie."""

    def __init__(self, sections: list[_Section], places: dict[int, int]) -> None:
        tables = [section for section in sections if section.kind == _SYMBOL_TABLE]
        names = sections[tables[0].link].content
        self._symbols: list[tuple[str, int, int]] = [
            (_text(names, name), int(section), int(value))
            for name, _, _, section, value, _ in _SYMBOL.iter_unpack(tables[0].content)
        ]
        self._places = places
        self.stubs: dict[str, int] = {}
        """Where in the code the stub of each imported function is."""

    def imported(self) -> Iterator[str]:
        """Yield the names of the functions that are called outside."""
        for name, section, _ in self._symbols:
            if section == _UNDEFINED and name:
                if name not in IMPORTS:
                    raise UnsupportedObjectError(f"undefined symbol {name}")
                yield name

    def address(self, index: int) -> int:
        """Return the byte of the code that a symbol stands for."""
        name, section, value = self._symbols[index]
        if section == _UNDEFINED and name in self.stubs:
            return self.stubs[name]
        if section >= _FIRST_RESERVED_INDEX or section not in self._places:
            raise UnsupportedObjectError(f"symbol {name} in section {section}")
        return self._places[section] + value

    def address_of(self, name: str) -> int:
        """Return the byte of the code where the function ``name`` begins."""
        for index, (symbol, section, _) in enumerate(self._symbols):
            if symbol == name and section != _UNDEFINED:
                return self.address(index)
        raise UnsupportedObjectError(f"no function {name}")


# Where machine code is kept, and under which key.
#
# The directory is the one that ``NUMBA_CACHE_DIR`` names, and no other, if it is set. Else it is
# ``__pycache__`` beside the kernel's source or, where that cannot be written or is not private (see
# `pylog.native.code_image`), ``pylog`` in the user's cache directory: ``$XDG_CACHE_HOME``, or
# ``~/.cache``. Code is read from whichever has it, and kept in the first that takes it.
#
# The key is a digest of all that decides what the code is: the kernel's source, our own
# compiler, the versions of Numba and LLVM, and the machine's *level*. A level is a set of
# instructions that many processors share (x86-64-v3: since Intel's Haswell and AMD's
# Excavator), so that a cache in a home directory or a container image serves them all; kernels
# walk through bytes, and gain nothing from what newer processors have beyond that.


# Files that nobody but this user, or root, can have written.
#
# What is read here is run, so it is not enough that a file belongs to us: whoever can rename a
# directory on the way to it can put another in its place. A directory is *private* if it and
# all its parents, symbolic links resolved, belong to this user or to root, and nobody else may
# write there.
#
# One exception, for ``/tmp`` and the like: in a directory with the sticky bit others may add
# entries but not rename or remove ours, so one may be a parent, as long as what it holds on our
# way belongs to us or to root, which is asked of each step anyway. It may not be the directory
# itself.
#
# Permissions of a group count as somebody else's, also where the group has one member today. POSIX
# access lists show up in them: the group's bits are the most that any entry of a list grants.


_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def is_private_directory(directory: Path) -> bool:
    """Return whether ``directory`` exists and is private, as described above."""
    try:
        steps = [os.lstat(step) for step in (directory, *directory.parents)]
    except OSError:
        return False
    if not directory.is_absolute() or steps[0].st_mode & _WRITABLE_BY_OTHERS:
        return False
    return all(
        stat.S_ISDIR(step.st_mode)  # False for a symbolic link: the caller resolves them
        and _is_ours(step)
        and (not step.st_mode & _WRITABLE_BY_OTHERS or bool(step.st_mode & stat.S_ISVTX))
        for step in steps
    )


def read_private_file(path: Path, most_bytes: int) -> bytes | None:
    """Return the content of a file in a private directory, None unless it is our own."""
    try:
        # Without O_NONBLOCK, opening a named pipe waits for somebody to write into it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        about = os.fstat(descriptor)
        if (
            not stat.S_ISREG(about.st_mode)
            or not _is_ours(about)
            or about.st_mode & _WRITABLE_BY_OTHERS
            or about.st_size > most_bytes
        ):
            return None
        return os.pread(descriptor, about.st_size, 0)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def write_private_file(path: Path, content: bytes) -> bool:
    """Put ``content`` at ``path``, in a private directory; return whether that worked."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o644), "wb") as file:
            os.fchmod(
                file.fileno(), 0o644
            )  # readable by all, whatever the umask: see Docker images
            file.write(content)
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        return False
    return True


def make_private_directory(directory: Path) -> bool:
    """Make ``directory``, and its parents, if it does not exist; return whether it is private."""
    try:
        # One by one: mkdir() would make parents that a group may write to, where the umask says so.
        for missing in (*reversed(directory.parents), directory):
            missing.mkdir(mode=0o755, exist_ok=True)
    except OSError:
        return False
    return is_private_directory(directory)


def _is_ours(about: os.stat_result) -> bool:
    return about.st_uid in {0, os.geteuid()}


_COMPILER = ("numba_compiler", "intrinsics", "elf_object", "signature", "code_image")
"""Modules of this package that decide what the code is."""

_LEVELS = {
    "x86-64-v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe pclmulqdq xsave",
    "x86-64-v2": "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3",
}
"""The flags, as Linux calls them, that each level has beside those of the ones below it.

The third one is meant to have the carry-less multiplication as well, which belongs to none: every
processor of that level has it.
"""
_LEAST_LEVEL = "x86-64"
LEVELS = (*_LEVELS, _LEAST_LEVEL)
"""All levels, the highest first."""


def machine_level(flags: set[str]) -> str:
    """Return the highest level of x86-64 whose instructions a processor with ``flags`` has."""
    level = _LEAST_LEVEL
    for name, needed in reversed(_LEVELS.items()):
        if not flags.issuperset(needed.split()):
            break
        level = name
    return level


@functools.cache
def this_level() -> str | None:
    """Return this machine's level; None where images do not exist."""
    if sys.platform != "linux" or os.uname().machine != "x86_64" or sys.maxsize < 1 << 32:
        return None
    try:
        with Path("/proc/cpuinfo").open("rb") as file:
            about_one = file.read(8192)
    except OSError:
        return _LEAST_LEVEL
    lines = (line.partition(b":") for line in about_one.splitlines()[:-1])
    flags = next((after for name, _, after in lines if name.strip() == b"flags"), b"")
    return machine_level(set(flags.decode("latin-1").split()))


class KernelCache:
    """The place of one kernel's code."""

    def __init__(self, function: Callable[..., object], level: str) -> None:
        self._source = Path(function.__code__.co_filename)
        self._key = _key(function, level)
        stem = f"{self._source.stem}.{function.__name__}"
        self._name = f"{stem}-{level}-{self._key.hex()}.kernel"

    def read(self) -> CodeImage | None:
        """Return the code, from the first directory that has it."""
        return next((image for _, image in self._kept()), None)

    def directory_of_code(self) -> Path | None:
        """Return the first directory that has the code."""
        return next((directory for directory, _ in self._kept()), None)

    def _kept(self) -> Iterator[tuple[Path, CodeImage]]:
        for directory in self._directories():
            if is_private_directory(directory):
                content = read_private_file(directory / self._name, MOST_BYTES)
                image = content and CodeImage.from_bytes(content, self._key)
                if image:
                    yield directory, image

    def writable_directory(self) -> Path | None:
        """Return the directory that code would be kept in; it is made if need be."""
        for directory in self._directories():
            if make_private_directory(directory) and os.access(directory, os.W_OK):
                return directory
        return None

    def write(self, directory: Path, image: CodeImage) -> bool:
        """Keep ``image`` in ``directory``, one of `writable_directory`; return whether it is."""
        return write_private_file(directory / self._name, image.to_bytes(self._key))

    def _directories(self) -> Iterator[Path]:
        chosen = os.environ.get("NUMBA_CACHE_DIR")
        if chosen:
            yield Path(chosen).resolve()
            return
        yield (self._source.parent / "__pycache__").resolve()
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - Path.expanduser() raises
        if Path(base).is_absolute():  # not where there is no home directory to put for the "~"
            yield (Path(base) / "pylog").resolve()


def _key(function: Callable[..., Any], level: str) -> bytes:
    """Return a hash of 64 bits, which is what Python takes for its own caches of code."""
    own = __name__.rpartition(".")[0]
    parts = [
        f"{level} {function.__module__}.{function.__qualname__}".encode(),
        _source_of(function.__module__),
        *(_source_of(f"{own}.{name}") for name in _COMPILER),
        *(_source_of(package, "_version.py") for package in ("numba", "llvmlite")),
    ]
    return source_hash(b"".join(source_hash(part) for part in parts))


@functools.cache
def _source_of(module: str, beside: str = "") -> bytes:
    """Return the source of a module, which is not imported, or of the file ``beside`` it."""
    spec = find_spec(module)
    if spec is None or spec.origin is None or spec.loader is None:
        return b""
    path = str(Path(spec.origin).with_name(beside)) if beside else spec.origin
    return spec.loader.get_data(path)  # type: ignore[attr-defined, no-any-return]  # a zip file's, too
