"""Each test of the kernels runs them from the library of each level, and by Numba itself."""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
from typing import TYPE_CHECKING

import pytest

from pylog import kernels
from pylog.native.kernel import Kernel
from pylog.native.library import KernelLibrary, library_at, these_levels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODULES = tuple(
    importlib.import_module(f"{kernels.__name__}.{each.name}")
    for each in pkgutil.iter_modules(kernels.__path__)
)
KERNELS = [value for each in MODULES for value in vars(each).values() if isinstance(value, Kernel)]

LIBRARY = "library"
BY_NUMBA = "Numba"
_WAYS = [
    LIBRARY,
    *(pytest.param(way, marks=pytest.mark.thorough) for way in (*these_levels()[1:], BY_NUMBA)),
]


@pytest.fixture(autouse=True, scope="module", params=_WAYS)
def way_to_run(request: pytest.FixtureRequest) -> Iterator[str]:
    """Have all kernels run in one way, and in their own again afterwards."""
    way = request.param
    if way == LIBRARY:
        yield way
        return
    if any(mode in os.environ for mode in ("NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK")):
        pytest.skip("there is one way in these modes")
    called = _by_numba() if way == BY_NUMBA else _of_level(way)
    with pytest.MonkeyPatch.context() as patch:
        for kernel in KERNELS:
            patch.setattr(kernel, "_call", called[kernel])
        yield way


@functools.cache
def _of_level(level: str) -> dict[Kernel, Callable[..., object]]:
    library = KernelLibrary(level, library_at(level))
    called = {}
    for kernel in KERNELS:
        entry = library.entry(kernel.signature.name)
        assert entry is not None
        called[kernel] = kernel.signature.caller(entry)
    return called


@functools.cache
def _by_numba() -> dict[Kernel, Callable[..., object]]:
    numba_compiler = pytest.importorskip("pylog.native.numba_compiler")

    def compiled_at_first_call(kernel: Kernel) -> Callable[..., object]:
        compiled = functools.cache(
            lambda: numba_compiler.run_by_numba(kernel.function, kernel.signature)
        )

        def call(*arguments: object) -> object:
            return compiled()(*arguments)

        return call

    return {kernel: compiled_at_first_call(kernel) for kernel in KERNELS}


__all__ = ["KERNELS", "MODULES", "way_to_run"]
