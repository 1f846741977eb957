"""The shared library that has all kernels: which one this process uses, and loading it.

A wheel has a library for each *level* of its kind of processor: a set of instructions that many
processors share (x86-64-v3: since Intel's Haswell and AMD's Excavator). Kernels walk through bytes,
and gain nothing from what newer processors have beyond that. The highest level of which this
processor lacks no instruction is chosen once, when the first kernel is called.

A library needs nothing but four functions of the C library, whichever that is. One that does not
load is an error: without it kernels would run as plain Python, hundreds of times slower.

In a clone there is no library beside this file. There it is in ``build/kernels``, under a hash of
all sources that decide what it is, and `pylog.kernel_compilation` makes it when it is missing.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from contextlib import suppress
from importlib.util import find_spec, source_hash
from pathlib import Path
from typing import TYPE_CHECKING

from pylog.errors import KernelsNotLoadedError
from pylog.lazy_modules import LazyModule

if TYPE_CHECKING:
    import subprocess
    import tempfile

    from pylog import installation
else:  # for errors, clones and zip files
    subprocess, tempfile = LazyModule("subprocess"), LazyModule("tempfile")
    installation = LazyModule("pylog.installation")

LEVELS = {
    "x86_64": {
        "x86-64-v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe pclmulqdq xsave",
        "x86-64-v2": "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3",
        "x86-64": "",
    },
    "aarch64": {"aarch64-crc": "crc32 aes pmull", "aarch64": ""},
}
"""The levels of each kind of processor, the highest first, and the flags, as Linux calls them, that
each has beside those of the ones below it.

The third one of x86-64 is meant to have the carry-less multiplication as well, which belongs to
none: every processor of that level has it.
"""
LEVELS_WITH_CRC32C = ("x86-64-v3", "aarch64-crc")
"""Those whose kernels use the processor's instructions for checksums."""

SYMBOL_PREFIX = "pylog_"
TREE = Path(__file__).parents[2]
"""The folder of the packages: of a clone, if it is called `TREE_NAME`."""
TREE_NAME = "storage_core"
_BESIDE = Path(__file__).parent
_FLAGS_OF_MACS = {*LEVELS["aarch64"]["aarch64-crc"].split(), *LEVELS["x86_64"]["x86-64-v2"].split()}
"""What every Mac has that runs the oldest system that wheels are for."""
_AT_HWCAP = 16
_ARM_CAPABILITIES = {"aes": 3, "pmull": 4, "crc32": 7}  # Linux: arch/arm64/include/uapi/asm/hwcap.h
_OTHER_NAMES = {"arm64": "aarch64", "amd64": "x86_64"}
_COMPILER = f"{__name__.partition('.')[0]}.kernel_compilation"  # a program, not imported
_COMPILER_SOURCES = (
    "kernel_compilation.py",
    *(f"native/{name}.py" for name in ("intrinsics", "numba_compiler", "signature")),
)


def this_machine() -> str:
    """Return the kind of processor, as Linux calls it."""
    name = os.uname().machine.lower()
    return _OTHER_NAMES.get(name, name)


def file_name(level: str) -> str:
    """Return what the library of a level is called, on every system."""
    return f"kernels-{level}.so"


def machine_levels(machine: str, flags: set[str]) -> list[str]:
    """Return the levels that a processor with ``flags`` can run, the highest first."""
    levels: list[str] = []
    for level, needed in reversed(LEVELS.get(machine, {}).items()):
        if not flags.issuperset(needed.split()):
            break
        levels.insert(0, level)
    return levels


@functools.cache
def these_levels() -> list[str]:
    """Return the levels that this machine can run, the highest first; none on an unknown one."""
    machine = this_machine()
    if sys.maxsize < 1 << 32:
        return []
    flags = _processor_flags() if sys.platform != "darwin" else _FLAGS_OF_MACS
    return machine_levels(machine, flags)


def _processor_flags() -> set[str]:
    if this_machine() == "aarch64":
        capabilities = ctypes.CDLL(None).getauxval(_AT_HWCAP)
        return {flag for flag, bit in _ARM_CAPABILITIES.items() if capabilities & 1 << bit}
    with suppress(OSError), Path("/proc/cpuinfo").open("rb") as file:
        for line in file.read(8192).splitlines()[:-1]:
            name, _, after = line.partition(b":")
            if name.strip() == b"flags":
                return set(after.decode("latin-1").split())
    return set()


class KernelLibrary:
    """A loaded library.

    Attributes
    ----------
    level
        The level that its code is for.
    """

    def __init__(self, level: str, path: Path) -> None:
        self.level = level
        try:
            self._library = _loaded(path)
        except OSError as error:
            msg = (
                f"the kernels cannot be loaded: {error}. A file system that is mounted noexec does "
                "not allow it: install pylog elsewhere. Otherwise reinstall it for this machine: "
                f"{installation.install_command(None, '--force-reinstall')}"
            )
            raise KernelsNotLoadedError(msg, path) from error

    def entry(self, name: str) -> ctypes._NamedFuncPointer | None:
        """Return the function of a kernel; None if the library has none of that name."""
        try:
            function = self._library[SYMBOL_PREFIX + name]
        except AttributeError:
            return None
        function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        return function


@functools.cache
def this_library() -> KernelLibrary:
    """Load the library that is for this machine.

    Raises
    ------
    KernelsNotLoadedError
        There is none, or it does not load.
    """
    levels = these_levels()
    beside = [level for level in levels if _is_there(_BESIDE / file_name(level))]
    if not beside and not (levels and TREE.name == TREE_NAME):
        here = " ".join([sys.platform, this_machine(), *levels[:1]])
        msg = f"no kernels for {here}: install the wheel of pyspark-pylog that is for this machine"
        raise KernelsNotLoadedError(msg, _BESIDE)
    level = (beside or levels)[0]
    return KernelLibrary(level, library_at(level))


def library_at(level: str) -> Path:
    """Return the path of the library of a level; in a clone it is made if need be."""
    path = _BESIDE / file_name(level)
    return path if _is_there(path) or TREE.name != TREE_NAME else library_of_tree(level)


def _is_there(path: Path) -> bool:
    return path.is_file() or _packed(path) is not None


def _packed(path: Path) -> bytes | None:
    """Return a file of a package that is imported out of a zip file, None if there is none."""
    loader = globals()["__spec__"].loader
    if path.parent.is_dir() or not hasattr(loader, "get_data"):
        return None
    try:
        return bytes(loader.get_data(str(path)))
    except OSError:
        return None


def _loaded(path: Path) -> ctypes.CDLL:
    packed = _packed(path)
    if packed is None:
        return ctypes.CDLL(str(path))
    # The system loads files only: one in memory, or else one that is gone once it is loaded.
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create(path.name), "wb") as file:
            file.write(packed)
            file.flush()
            return ctypes.CDLL(f"/proc/self/fd/{file.fileno()}")
    with tempfile.NamedTemporaryFile(suffix=path.suffix) as file:
        file.write(packed)
        file.flush()
        return ctypes.CDLL(file.name)


# In a clone.


def tree_key() -> str:
    """Return a hash of the sources in this tree that decide what a library is."""
    package = Path(__file__).parents[1]
    sources = [package / name for name in _COMPILER_SOURCES]
    sources += sorted((package / "kernels").glob("*.py"))
    return source_hash(b"".join(source_hash(path.read_bytes()) for path in sources)).hex()


def library_of_tree(level: str) -> Path:
    """Return the library of this tree's kernels, which is made if need be; that takes a minute."""
    folder = TREE.parent / "build" / "kernels" / tree_key()
    path = folder / file_name(level)
    if path.is_file():
        return path
    missing = [each for each in ("numba", "ziglang") if find_spec(each) is None]
    if missing:
        msg = (
            f"the kernels of this clone are not compiled, and {' and '.join(missing)} to do it "
            f"with cannot be imported: run pip install -e {TREE.parent}, or make lint there, which "
            "installs what development needs"
        )
        raise KernelsNotLoadedError(msg, path)
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write("pylog: compiling the kernels of this clone (once)…\n")
    command = [
        sys.executable,
        "-m",
        _COMPILER,
        "--levels",
        level,
        "--directory",
        str(folder),
    ]
    # In a process of its own: Numba is slow to import, and is told about processors as it starts.
    done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        msg = f"the kernels of this clone cannot be compiled: {lines[-1] if lines else 'why?'}"
        raise KernelsNotLoadedError(msg, path)
    return path
