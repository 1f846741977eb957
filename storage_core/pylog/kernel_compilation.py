"""All kernels as shared libraries: what a build of pylog does, and a clone at first use.

``python -m pylog.kernel_compilation --directory DIR`` needs Numba, and ziglang as the linker. It
works for each of `PLATFORMS` from any Linux: LLVM writes object files for other processors, too,
and the linker comes with what it needs of other systems. The same versions of Python, Numba and
ziglang give the same bytes. Object files are kept in ``objects`` beside the directory, under a hash
of what they are made of, so that after a change only the kernels that it touches are compiled.
"""

from __future__ import annotations

import argparse
import fcntl
import functools
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import source_hash
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pylog import kernels, native
from pylog.lazy_modules import LazyModule, modules_of
from pylog.native.kernel import Kernel
from pylog.native.library import LEVELS, file_name, this_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import llvmlite.binding as llvm

    from pylog.native import numba_compiler  # Numba
else:
    llvm = LazyModule("llvmlite.binding")
    numba_compiler = LazyModule("pylog.native.numba_compiler")


@dataclass(frozen=True, slots=True)
class Platform:
    """A system and a kind of processor.

    Attributes
    ----------
    machine
        The kind of processor.
    triple
        LLVM's name.
    linker
        Arguments of ziglang that link a shared library.
    levels
        Those that it needs; the last is the least.
    wheel_tag
        What wheels for it are called.
    """

    machine: str
    triple: str
    linker: tuple[str, ...]
    wheel_tag: str
    levels: tuple[str, ...] = field(default=())


_LINUX = (
    *("ld.lld", "-shared", "--strip-all", "--gc-sections", "--build-id=none"),
    *("-z", "noexecstack", "-z", "now"),
)
_MACOS = ("cc", "-shared", "-s", "-Wl,-install_name,@rpath/pylog-kernels")


def _linux(machine: str) -> Platform:
    # The libraries refer to no version of a C library. Tags name the oldest that installers know
    # and that has a thread-safe loader; dependencies ask for more.
    tag = f"manylinux2014_{machine}.manylinux_2_17_{machine}.musllinux_1_2_{machine}"
    return Platform(machine, f"{machine}-unknown-linux-gnu", _LINUX, tag, tuple(LEVELS[machine]))


PLATFORMS = {
    "linux-x86_64": _linux("x86_64"),
    "linux-aarch64": _linux("aarch64"),
    "macos-arm64": Platform(
        "aarch64",
        "arm64-apple-macosx11.0.0",
        (*_MACOS, "-target", "aarch64-macos.11.0"),
        "macosx_11_0_arm64",
        ("aarch64-crc",),
    ),
    "macos-x86_64": Platform(
        "x86_64",
        "x86_64-apple-macosx10.15.0",
        (*_MACOS, "-target", "x86_64-macos.10.15"),
        "macosx_10_15_x86_64",
        ("x86-64-v2",),
    ),
}

_CPUS = {"x86-64-v3": ("x86-64-v3", "+pclmul"), "aarch64-crc": ("generic", "+crc,+aes")}
_COMPILER = ("numba_compiler", "intrinsics", "signature")
"""Modules of `pylog.native` that decide what an object file is."""


def this_platform() -> str:
    """Return the name of this machine's platform, which need not be one of `PLATFORMS`."""
    machine = this_machine()
    if sys.platform == "darwin":
        return f"macos-{'arm64' if machine == 'aarch64' else machine}"
    return f"{sys.platform}-{machine}"


def all_kernels() -> list[Kernel]:
    """Return every kernel there is, in the order of their names."""
    values = [value for module in modules_of(kernels) for value in vars(module).values()]
    found = {value.signature.name: value for value in values if isinstance(value, Kernel)}
    return [found[name] for name in sorted(found)]


def build_libraries(
    chosen: Sequence[Kernel], platform: str, levels: Collection[str], directory: Path
) -> list[Path]:
    """Make the library of each level in ``directory``, unless it is there.

    Processes that do so at once wait for each other.
    """
    paths = [directory / file_name(level) for level in levels]
    directory.mkdir(parents=True, exist_ok=True)
    with _locked(directory.parent / "lock"):
        for level, path in zip(levels, paths, strict=True):
            if not path.is_file():
                about = PLATFORMS[platform]
                files = [_object_file(each, about, level, directory.parent) for each in chosen]
                _link(about, files, path)
    return paths


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _object_file(kernel: Kernel, platform: Platform, level: str, directory: Path) -> Path:
    """Return the path of a kernel's object file, which is made if need be."""
    key = _key_of(kernel.function, f"{platform.triple} {level}")
    path = directory / "objects" / f"{kernel.signature.name}-{level}-{key}.o"
    if not path.is_file():
        path.parent.mkdir(exist_ok=True)
        target = numba_compiler.CodeTarget(
            platform.triple, *_CPUS.get(level, (_generic(level), ""))
        )
        depends = numba_compiler.depends_on_level(kernel.function)
        compiled = _compiled(kernel, level if depends else None)
        _write(path, compiled.object_file(target))
    return path


def _generic(level: str) -> str:
    return level if level.startswith("x86") else "generic"


@functools.cache
def _compiled(kernel: Kernel, level: str | None) -> numba_compiler.CompiledKernel:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return numba_compiler.CompiledKernel(kernel.function, kernel.signature, level)


def _link(platform: Platform, objects: Sequence[Path], path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".link-") as scratch:
        environment = os.environ | {
            "ZIG_GLOBAL_CACHE_DIR": scratch,
            "ZIG_LOCAL_CACHE_DIR": scratch,
        }
        linked = Path(scratch, path.name)
        command = [sys.executable, "-m", "ziglang", *platform.linker, "-o", str(linked)]
        subprocess.run([*command, *map(str, objects)], env=environment, check=True)
        linked.chmod(0o755)
        linked.rename(path)


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.rename(path)


def _key_of(function: Callable[..., Any], target: str) -> str:
    """Return a hash of all that decides what a kernel's object file is."""
    used = [each for each in function.__globals__.values() if hasattr(each, "pylog_intrinsic")]
    modules = {sys.modules[each.__module__].__file__ or "" for each in (function, *used)}
    sources = [Path(__file__), *(Path(native.__path__[0], f"{name}.py") for name in _COMPILER)]
    versions = [f"{name} {metadata.version(name)}" for name in ("numba", "llvmlite", "numpy")]
    parts = [f"{target} {function.__qualname__} {sys.version_info[:2]}", *versions]
    hashes = [source_hash(part.encode()) for part in parts]
    hashes += map(_hash_of_file, [*map(Path, sorted(modules)), *sources])
    return source_hash(b"".join(hashes)).hex()


@functools.cache
def _hash_of_file(path: Path) -> bytes:
    return source_hash(path.read_bytes())


def main(arguments: Sequence[str] | None = None) -> None:
    """Compile and link."""
    parser = argparse.ArgumentParser(prog="python -m pylog.kernel_compilation", description=__doc__)
    parser.add_argument("--platform", choices=PLATFORMS, default=this_platform())
    parser.add_argument("--levels", nargs="+", metavar="LEVEL", help="default: all it needs")
    parser.add_argument("--directory", type=Path, required=True, help="where they are put")
    given = parser.parse_args(arguments)
    # Before Numba is imported: what is compiled here is not for this very processor.
    os.environ |= {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    levels = given.levels or PLATFORMS[given.platform].levels
    build_libraries(all_kernels(), given.platform, levels, given.directory)


if __name__ == "__main__":
    main()
