from __future__ import annotations

import re
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from pylog.kernels import decode_legacy
from pylog.native.machine_code import HAS_LINKER, UnsupportedObjectError, link
from tests.conftest import NUMBA_IS_OFF
from tests.unit.kernels.conftest import KERNELS
from tests.unit.native import sample_kernels

if TYPE_CHECKING:
    from pylog.native.kernel import Kernel

pytestmark = [
    pytest.mark.skipif(NUMBA_IS_OFF, reason="nothing is compiled"),
    pytest.mark.skipif(not HAS_LINKER, reason="linked by LLVM on this machine"),
]


@pytest.mark.thorough(one_in=5)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.signature.name)
def test_every_kernel_of_the_product_becomes_an_image(kernel: Kernel) -> None:
    from pylog.native.numba_compiler import compile_kernel  # noqa: PLC0415 - imports Numba

    image = link(compile_kernel(kernel.function, kernel.signature, "x86-64"))
    assert len(image.code) > 100
    assert {name for _, name in image.imports} <= {"memcpy", "memmove", "memset", "pread"}


@pytest.mark.parametrize(("level", "multiplies"), [("x86-64", False), ("x86-64-v3", True)])
def test_an_instruction_is_used_only_where_the_level_has_it(
    level: str,
    multiplies: bool,  # noqa: FBT001 - a column of the table above
) -> None:
    from pylog.native.numba_compiler import compile_kernel  # noqa: PLC0415 - imports Numba

    kernel = decode_legacy.find_bad_crc
    image = link(compile_kernel(kernel.function, kernel.signature, level))
    # VPCLMULQDQ is C4, two bytes about registers, 44.
    assert bool(re.search(rb"\xc4[\x00-\xff][\x01-\x79]\x44", image.code)) is multiplies


@pytest.mark.parametrize("name", ["raises", "calls_a_library"])
def test_what_could_raise_or_call_elsewhere_is_refused(name: str) -> None:
    from pylog.native.numba_compiler import compile_kernel  # noqa: PLC0415 - imports Numba

    kernel: Kernel = getattr(sample_kernels, name)
    with pytest.raises(UnsupportedObjectError):
        compile_kernel(kernel.function, kernel.signature, "x86-64")


def test_what_allocates_does_not_compile() -> None:
    from numba.core.errors import TypingError  # noqa: PLC0415 - imports Numba

    with pytest.raises(TypingError):
        sample_kernels.allocates(5)


def test_a_kernel_that_is_refused_runs_by_numba() -> None:
    assert sample_kernels.raises(10) == 10
    with pytest.raises(ValueError, match=r"^$"):
        sample_kernels.raises(11)
    assert sample_kernels.calls_a_library(1) == 841


def test_a_numba_whose_insides_are_others_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    from pylog.native import numba_compiler  # noqa: PLC0415 - imports Numba

    unlike_ours = SimpleNamespace(overloads={(): SimpleNamespace(library=object())})
    monkeypatch.setattr(numba_compiler, "_njit", lambda *_, **__: lambda _: unlike_ours)
    kernel: Kernel = sample_kernels.raises
    with pytest.raises(UnsupportedObjectError, match=r"code elsewhere: .*_final_module"):
        numba_compiler.compile_kernel(kernel.function, kernel.signature, "x86-64")
