"""Where machine code is kept, and under which key.

The directory is the one that ``NUMBA_CACHE_DIR`` names, and no other, if it is set. Else it is
``__pycache__`` beside the kernel's source or, where that cannot be written or is not private (see
below), ``pylog`` in the user's cache directory: ``$XDG_CACHE_HOME``, or
``~/.cache``. Code is read from whichever has it, and kept in the first that takes it.

The key is a digest of all that decides what the code is: the kernel's source, that of the helpers
it imports, our own compiler, the versions of Numba and LLVM, the system, and the machine's *level*.
A level is a set of instructions that many processors share (x86-64-v3: since Intel's Haswell and
AMD's Excavator), so that a cache in a home directory or a container image serves them all; kernels
walk through bytes, and gain nothing from what newer processors have beyond that.

A file is the object file that LLVM wrote, the key (8 bytes), and a checksum of all before it (8
bytes, Python's `source_hash`), which finds what is torn or damaged. It is no signature: whoever can
write the file can run code in the reader's name, so only files are read that nobody but this user
or root can have written.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
from importlib.util import find_spec, source_hash
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_BYTES = 1 << 22
"""The largest file; kernels are a hundredth of it."""

_HASH_BYTES = 8

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


_COMPILER = ("numba_compiler", "intrinsics", "signature")
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
"""All levels of x86-64, the highest first."""

_OTHER_MACHINES = {"aarch64": "aarch64", "arm64": "aarch64"}
"""The one level of other processors, by what systems call them."""


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
    """Return this machine's level; None where Numba runs kernels itself."""
    machine = os.uname().machine
    if sys.maxsize < 1 << 32 or machine not in {"x86_64", *_OTHER_MACHINES}:
        return None
    if machine in _OTHER_MACHINES:
        return _OTHER_MACHINES[machine]
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
        self._key = key_of(function, level)
        stem = f"{self._source.stem}.{function.__name__}"
        self._name = f"{stem}-{level}-{self._key.hex()}.kernel"

    def read(self) -> bytes | None:
        """Return the object file, from the first directory that has it."""
        return next((code for _, code in self._kept()), None)

    def directory_of_code(self) -> Path | None:
        """Return the first directory that has the code."""
        return next((directory for directory, _ in self._kept()), None)

    def _kept(self) -> Iterator[tuple[Path, bytes]]:
        for directory in self._directories():
            if is_private_directory(directory):
                content = read_private_file(directory / self._name, MOST_BYTES)
                if content and (code := content_of(content, self._key)):
                    yield directory, code

    def writable_directory(self) -> Path | None:
        """Return the directory that code would be kept in; it is made if need be."""
        for directory in self._directories():
            if make_private_directory(directory) and os.access(directory, os.W_OK):
                return directory
        return None

    def write(self, directory: Path, object_file: bytes) -> bool:
        """Keep code in ``directory``, one of `writable_directory`; return whether it is."""
        return write_private_file(directory / self._name, file_of(object_file, self._key))

    def _directories(self) -> Iterator[Path]:
        chosen = os.environ.get("NUMBA_CACHE_DIR")
        if chosen:
            yield Path(chosen).resolve()
            return
        yield (self._source.parent / "__pycache__").resolve()
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - Path.expanduser() raises
        if Path(base).is_absolute():  # not where there is no home directory to put for the "~"
            yield (Path(base) / "pylog").resolve()


def file_of(object_file: bytes, key: bytes) -> bytes:
    """Return the content of a file that keeps code under ``key``."""
    content = object_file + key
    return content + source_hash(content)


def content_of(file: bytes, key: bytes) -> bytes | None:
    """Return the object file that a file keeps; None unless it is whole and of that key."""
    end = len(file) - _HASH_BYTES
    if (
        end <= len(key)
        or source_hash(file[:end]) != file[end:]
        or file[end - len(key) : end] != key
    ):
        return None
    return file[: end - len(key)]


def key_of(function: Callable[..., Any], level: str) -> bytes:
    """Return a hash of 64 bits, which is what Python takes for its own caches of code."""
    own = __name__.rpartition(".")[0]
    used = (each for each in function.__globals__.values() if hasattr(each, "pylog_intrinsic"))
    parts = [
        f"{sys.platform} {level} {function.__module__}.{function.__qualname__}".encode(),
        *(
            _source_of(each)
            for each in sorted({function.__module__, *(u.__module__ for u in used)})
        ),
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
