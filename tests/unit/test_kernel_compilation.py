from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog import kernel_compilation
from pylog.native.kernel_cache import LEVELS
from tests.unit.kernels.conftest import KERNELS
from tests.unit.native.sample_kernels import clear
from tests.unit.native.test_kernel import only_images

if TYPE_CHECKING:
    from pathlib import Path


def test_every_kernel_is_compiled() -> None:
    assert len(KERNELS) > 20
    assert set(kernel_compilation.KERNELS) == set(KERNELS)


@only_images
def test_code_is_kept_for_this_machine_or_all_and_not_compiled_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel_compilation, "KERNELS", (clear,))
    [first] = pylog.jobs.compile_kernels()
    assert first.was_compiled
    assert (first.kernel, first.directory) == ("clear", tmp_path / "cache")
    everywhere = pylog.jobs.compile_kernels(all_levels=True)
    assert [each.level for each in everywhere] == list(LEVELS)
    assert [each.was_compiled for each in everywhere] == [
        each.level != first.level for each in everywhere
    ]
    assert len(list((tmp_path / "cache").iterdir())) == len(LEVELS)


@only_images
def test_without_a_directory_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null/none")
    monkeypatch.setattr("pylog.native.numba_compiler.compile_kernel", None)
    with pytest.raises(PermissionError, match="no directory to keep kernels in"):
        pylog.jobs.compile_kernels()


def test_where_numba_keeps_code_by_its_own_means_there_is_nothing_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernel_compilation, "this_level", lambda: None)
    with pytest.raises(NotImplementedError, match="on x86-64 and ARM only"):
        pylog.jobs.compile_kernels()
