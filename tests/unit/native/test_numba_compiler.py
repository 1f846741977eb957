from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.native import sample_kernels
from tests.unit.native.compilers import needs_compiler, only_libraries

if TYPE_CHECKING:
    from pylog.native.kernel import Kernel

pytestmark = [needs_compiler, only_libraries]

TARGETS = [
    ("x86_64-unknown-linux-gnu", "x86-64"),
    ("aarch64-unknown-linux-gnu", "generic"),
    ("arm64-apple-macosx11.0.0", "generic"),
]


@pytest.mark.parametrize("name", ["raises", "calls_a_library"])
@pytest.mark.parametrize(("triple", "cpu"), TARGETS)
def test_what_could_raise_or_call_elsewhere_is_refused(name: str, triple: str, cpu: str) -> None:
    import llvmlite.binding as llvm  # noqa: PLC0415 - only where there is one

    from pylog.native import numba_compiler  # noqa: PLC0415 - imports Numba

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    kernel: Kernel = getattr(sample_kernels, name)
    compiled = numba_compiler.CompiledKernel(kernel.function, kernel.signature, None)
    with pytest.raises(numba_compiler.UnsupportedKernelError, match=f"^pylog_{name} "):
        compiled.object_file(numba_compiler.CodeTarget(triple, cpu))


def test_what_allocates_does_not_compile() -> None:
    from numba.core.errors import TypingError  # noqa: PLC0415 - imports Numba

    from pylog.native import numba_compiler  # noqa: PLC0415 - imports Numba

    kernel: Kernel = sample_kernels.allocates
    with pytest.raises(TypingError):
        numba_compiler.CompiledKernel(kernel.function, kernel.signature, None)


def test_a_kernel_that_no_library_has_runs_by_numba() -> None:
    assert sample_kernels.raises(10) == 10
    with pytest.raises(ValueError, match=r"^$"):
        sample_kernels.raises(11)
    assert sample_kernels.calls_a_library(1) == 841
