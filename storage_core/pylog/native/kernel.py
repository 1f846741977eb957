"""What ``@kernel`` makes of a function, and ``@helper`` and its like of those that it calls."""

from __future__ import annotations

import ctypes
import functools
import logging
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pylog.lazy_modules import LazyModule
from pylog.native.kernel_cache import KernelCache, this_level
from pylog.native.machine_code import LoadedCode, UnsupportedObjectError, load
from pylog.native.signature import Signature

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from pylog.native import numba_compiler  # Numba
else:
    numba_compiler = LazyModule("pylog.native.numba_compiler")

_log = logging.getLogger("pylog.compilation")

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class KeptCode:
    """Where a kernel's machine code is kept.

    Attributes
    ----------
    kernel
        The kernel's name.
    level
        The level of x86-64 that the code is for.
    directory
        Where its file is.
    was_compiled
        Whether it was compiled just now; else it was kept before.
    """

    kernel: str
    level: str
    directory: Path
    was_compiled: bool


class Kernel:
    """A function that runs as machine code, without the interpreter's lock.

    Any number of threads may call it. Arguments are positional.
    """

    def __init__(
        self, function: Callable[..., object], writes: Collection[str], tables: Collection[str]
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.signature = Signature(function, writes, tables)
        self._call: Callable[..., object] = self._first_call
        self._code: LoadedCode | None = None  # keeps the memory
        self._lock = threading.Lock()

    def __call__(self, *arguments: object) -> Any:  # noqa: ANN401 - as the function says
        """Run the kernel; at the first call its code is loaded, or compiled and kept."""
        return self._call(*arguments)

    def _first_call(self, *arguments: object) -> object:
        with self._lock:
            if self._call == self._first_call:
                self._call = self._find_code()
        return self._call(*arguments)

    def _find_code(self) -> Callable[..., object]:
        if _is_set("NUMBA_DISABLE_JIT"):
            return self.function
        level = None if _is_set("NUMBA_BOUNDSCHECK") else this_level()
        if level is None:
            return numba_compiler.run_by_numba(self.function, self.signature)
        cache = KernelCache(self.function, level)
        object_file = cache.read()
        if object_file is None:
            try:
                object_file, _ = self._compile(cache, level)
            except UnsupportedObjectError:  # of a version of Numba or LLVM that we do not know
                return numba_compiler.run_by_numba(self.function, self.signature)
        self._code = load(object_file)
        return self.signature.caller(_ENTRY(self._code.entry))

    def _compile(self, cache: KernelCache, level: str) -> tuple[bytes, Path | None]:
        """Compile, keep the code if there is a directory for it, and return both."""
        directory = cache.writable_directory()
        _log.info(
            "compiling kernel %s, kept in %s",
            *(self.signature.name, directory or "no directory"),
            extra={"kept_in": directory},
        )
        object_file = numba_compiler.compile_kernel(self.function, self.signature, level)
        is_kept = directory is not None and cache.write(directory, object_file)
        return object_file, directory if is_kept else None

    def keep_code(self, level: str) -> KeptCode:
        """Compile the kernel for a level of x86-64, unless its code is kept already."""
        cache = KernelCache(self.function, level)
        kept_before = cache.directory_of_code()
        if kept_before is not None:
            return KeptCode(self.signature.name, level, kept_before, was_compiled=False)
        directory = None
        if cache.writable_directory() is not None:
            _, directory = self._compile(cache, level)
        if directory is None:
            msg = (
                "there is no directory to keep kernels in that only you can write to; set "
                "NUMBA_CACHE_DIR to one"
            )
            raise PermissionError(msg)
        return KeptCode(self.signature.name, level, directory, was_compiled=True)


def uses_instructions_of(level: str) -> bool:
    """Return whether intrinsics that need a level of x86-64 are what kernels are compiled with."""
    is_checked = _is_set("NUMBA_DISABLE_JIT") or _is_set("NUMBA_BOUNDSCHECK")
    return not is_checked and this_level() == level


def _is_set(variable: str) -> bool:
    """Return whether one of Numba's switches is on; Numba itself is not asked, nor imported."""
    return os.environ.get(variable, "0") not in {"", "0"}


def kernel(
    *, writes: Collection[str] = (), tables: Collection[str] = ()
) -> Callable[[Callable[..., object]], Kernel]:
    """Make a kernel of a function whose annotations say the types of its parameters."""
    return lambda function: Kernel(function, writes, tables)


def helper(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - the function
    """Mark a function that kernels call; it is compiled into them."""
    return intrinsic("")(function)


def intrinsic(
    name: str, *, also_checked: bool = False, level: str | None = None
) -> Callable[[Callable[..., Any]], Any]:
    """Mark a helper in whose place compiled code has one of `pylog.native.intrinsics`."""

    def mark(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - the function
        function.pylog_intrinsic = (name, also_checked, level)  # type: ignore[attr-defined]
        return function

    return mark
