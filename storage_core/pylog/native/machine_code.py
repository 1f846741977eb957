"""From the object file that LLVM writes to code in executable memory.

On Linux on x86-64 this module does what a linker does, as far as kernels need it: a process that
finds its kernels kept loads all of them in some milliseconds. Elsewhere `by_llvm` has LLVM do it.

An object file (ELF, 64 bits) has sections, symbols that lie in them or are undefined, and
relocations: places in a section where the distance to a symbol belongs. Sections are put one
after the other, distances filled in, and for each function of the C library there is a stub
at the end::

    ff 25 02 00 00 00   jmp [rip + 2]
    cc cc               (never reached)
    8 bytes             the function's address

Everything else is refused: writable data, absolute addresses, other symbols. A kernel that could
raise an exception or allocate memory has one of these.

Sources: the System V ABI, and its x86-64 supplement for the two kinds of relocations.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.lazy_modules import LazyModule

if TYPE_CHECKING:
    from collections.abc import Iterator

    import llvmlite.binding as llvm
else:
    llvm = LazyModule("llvmlite.binding")

ENTRY = "pylog_kernel"
"""The function of an object file that is the kernel."""

HAS_LINKER = sys.platform == "linux" and os.uname().machine == "x86_64" and sys.maxsize > 1 << 32
"""Whether code is linked here; else by LLVM."""

_IMPORTS = ("memcpy", "memmove", "memset", "pread")  # of the C library: all that code may call
_ADDRESS = struct.Struct("<Q")

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


class UnsupportedObjectError(Exception):
    """An object file holds something that is not linked here."""


@dataclass(frozen=True, slots=True)
class CodeImage:
    """Position-independent machine code of one kernel.

    ``imports`` has where in the code a function's address belongs, and the function.
    """

    code: bytes
    entry: int
    imports: tuple[tuple[int, str], ...]


class LoadedCode:
    """A kernel in executable memory, which stays as long as this object."""

    __slots__ = ("_memory", "entry")

    def __init__(self, entry: int, memory: object) -> None:
        self.entry = entry
        self._memory = memory


def load(object_file: bytes) -> LoadedCode:
    """Return the kernel of an object file, ready to be called."""
    return load_image(link(object_file)) if HAS_LINKER else by_llvm(object_file)


def load_image(image: CodeImage) -> LoadedCode:
    """Put an image into memory, which is never writable and executable at once."""
    code = bytearray(image.code)
    for at, name in image.imports:
        _ADDRESS.pack_into(code, at, _address_of(name))
    memory = mmap.mmap(-1, len(code), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    process = _process()
    process.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if process.mprotect(address, len(code), mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "cannot make memory executable")
    return LoadedCode(address + image.entry, memory)


def by_llvm(object_file: bytes) -> LoadedCode:
    """Have LLVM link an object file for this process: without Numba, in a tenth of a second."""
    with suppress(RuntimeError):  # needed before llvmlite 0.45, and refused since
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(object_file))
    engine.finalize_object()
    return LoadedCode(engine.get_function_address(ENTRY), engine)


def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _address_of(name: str) -> int:
    return ctypes.cast(_process()[name], ctypes.c_void_p).value or 0


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    flags: int
    content: bytes
    link: int
    info: int
    alignment: int


def link(object_file: bytes) -> CodeImage:
    """Return the image of an object file."""
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
    return CodeImage(bytes(code), symbols.address_of(ENTRY), imports)


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
                if name not in _IMPORTS:
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
