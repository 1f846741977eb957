"""Each test of the kernels runs them both as kept machine code and by Numba itself."""

from __future__ import annotations

import importlib
import os
import pkgutil
from typing import TYPE_CHECKING

import pytest

from pylog import kernels
from pylog.native.kernel import Kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODULES = tuple(
    importlib.import_module(f"{kernels.__name__}.{each.name}")
    for each in pkgutil.iter_modules(kernels.__path__)
)
KERNELS = [value for each in MODULES for value in vars(each).values() if isinstance(value, Kernel)]

# Numba itself runs kernels in its other modes, and where its insides are not known here.
_WAYS = ["machine code", pytest.param("Numba", marks=pytest.mark.thorough)]

_by_numba: dict[Kernel, Callable[..., object]] = {}


@pytest.fixture(autouse=True, scope="module", params=_WAYS)
def way_to_run(request: pytest.FixtureRequest) -> Iterator[str]:
    """Have all kernels run in one way, and in their own again afterwards."""
    if request.param == "machine code":
        yield request.param
        return
    if any(mode in os.environ for mode in ("NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK")):
        pytest.skip("there is one way in these modes")
    from pylog.native.numba_compiler import run_by_numba  # noqa: PLC0415 - imports Numba

    with pytest.MonkeyPatch.context() as patch:
        for kernel in KERNELS:

            def first_call(*arguments: object, kernel: Kernel = kernel) -> object:
                if kernel not in _by_numba:
                    _by_numba[kernel] = run_by_numba(kernel.function, kernel.signature)
                return _by_numba[kernel](*arguments)

            patch.setattr(kernel, "_call", first_call)
        yield request.param


__all__ = ["KERNELS", "MODULES", "way_to_run"]
