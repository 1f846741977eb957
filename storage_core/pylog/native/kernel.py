"""What ``@kernel`` makes of a function, and ``@helper`` and its like of those that it calls."""

from __future__ import annotations

import functools
import os
import threading
from typing import TYPE_CHECKING, Any

from pylog.lazy_modules import LazyModule
from pylog.native.library import LEVELS_WITH_CRC32C, this_library
from pylog.native.signature import Signature

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pylog.native import numba_compiler  # Numba
else:
    numba_compiler = LazyModule("pylog.native.numba_compiler")


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
        self._lock = threading.Lock()

    def __call__(self, *arguments: object) -> Any:  # noqa: ANN401 - as the function says
        """Run the kernel; the first call of any finds the library."""
        return self._call(*arguments)

    def _first_call(self, *arguments: object) -> object:
        with self._lock:
            if self._call == self._first_call:
                self._call = self._find_code()
        return self._call(*arguments)

    def _find_code(self) -> Callable[..., object]:
        if _is_set("NUMBA_DISABLE_JIT"):
            return self.function
        entry = None if _is_set("NUMBA_BOUNDSCHECK") else this_library().entry(self.signature.name)
        if entry is None:  # or not a kernel of pylog's own: a test's
            return numba_compiler.run_by_numba(self.function, self.signature)
        return self.signature.caller(entry)


def has_crc32c_instructions() -> bool:
    """Return whether kernels use the processor's instructions for checksums."""
    if _is_set("NUMBA_DISABLE_JIT") or _is_set("NUMBA_BOUNDSCHECK"):
        return False
    return this_library().level in LEVELS_WITH_CRC32C


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
    name: str | Mapping[str, str], *, also_checked: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """Mark a helper in whose place compiled code has one of `pylog.native.intrinsics`.

    ``name`` is the same for all levels, or has the name for each level that has the instruction.
    """

    def mark(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - the function
        function.pylog_intrinsic = (name, also_checked)  # type: ignore[attr-defined]
        return function

    return mark
