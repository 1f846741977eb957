from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pylog import kernel_compilation
from pylog.native.kernel_cache import this_level
from tests.unit.native.sample_kernels import clear, is_positive
from tests.unit.native.test_kernel import only_images

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.unit.cli.conftest import Outcome


@only_images
def test_it_says_how_many_kernels_are_where(
    pylog_run: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel_compilation, "KERNELS", (clear, is_positive))
    first = pylog_run("compile")
    assert first.status == 0
    places, compiled = first.lines
    assert places == f"2 kernels for {this_level()} in {tmp_path / 'cache'}"
    assert compiled.startswith("2 compiled in ")
    assert compiled.endswith(" s, 0 were there already")
    second = pylog_run("compile", "--json")
    assert json.loads(second.output) == {
        "schemaVersion": 1,
        "kernels": [
            {
                "kernel": name,
                "level": this_level(),
                "directory": str(tmp_path / "cache"),
                "wasCompiled": False,
            }
            for name in ("clear", "is_positive")
        ],
    }


@only_images
def test_without_a_directory_it_says_which_variable_names_one(
    pylog_run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null/none")
    done = pylog_run("compile")
    assert (done.status, done.output) == (2, b"")
    assert done.error == (
        "pylog: error: there is no directory to keep kernels in that only you can write to; set "
        "NUMBA_CACHE_DIR to one\n"
    )


def test_elsewhere_than_on_linux_on_x86_64_it_refuses(
    pylog_run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_compilation, "this_level", lambda: None)
    done = pylog_run("compile")
    assert done.status == 2
    assert done.error == (
        "pylog: error: kernels are compiled ahead on x86-64 and ARM only; elsewhere Numba keeps "
        "its own\n"
    )
