from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pylog import kernel_compilation
from pylog.kernel_compilation import PLATFORMS, build_libraries, this_platform
from pylog.native.library import (
    KernelLibrary,
    library_at,
    these_levels,
    this_library,
    this_machine,
)
from tests.release_check.checks import macos_problems
from tests.release_check.mach_o import read_mach_o
from tests.unit.kernels.conftest import KERNELS
from tests.unit.native.compilers import needs_compiler, only_libraries
from tests.unit.native.sample_kernels import clear, double_all, is_positive

if TYPE_CHECKING:
    from pylog.native.kernel import Kernel

# The first bytes of a 64-bit file for Linux with its kind of processor, and for macOS with its.
ELF = b"\x7fELF\x02\x01\x01"
MACH_O = b"\xcf\xfa\xed\xfe"
MACHINES = {
    "linux-x86_64": (ELF, 18, 62),
    "linux-aarch64": (ELF, 18, 183),
    "macos-arm64": (MACH_O, 4, 0x0100000C),
    "macos-x86_64": (MACH_O, 4, 0x01000007),
}


@only_libraries
def test_the_library_has_every_kernel() -> None:
    names = [kernel.signature.name for kernel in KERNELS]
    assert len(set(names)) == len(names) >= 29
    assert [name for name in names if this_library().entry(name) is None] == []
    assert {each.signature.name for each in kernel_compilation.all_kernels()} == set(names)


@needs_compiler
@pytest.mark.thorough(one_in=2)  # linking for macOS takes long
@pytest.mark.parametrize("platform", PLATFORMS)
def test_libraries_of_all_platforms_are_built_here(platform: str, tmp_path: Path) -> None:
    levels = PLATFORMS[platform].levels
    paths = build_libraries([clear, double_all], platform, levels, tmp_path / "kernels")
    assert [path.name for path in paths] == [f"kernels-{level}.so" for level in levels]
    start, at, machine = MACHINES[platform]
    for path in paths:
        content = path.read_bytes()
        assert content.startswith(start)
        size = 2 if start == ELF else 4
        assert int.from_bytes(content[at : at + size], "little") == machine
        assert b"pylog_double_all" in content
        assert b"Numba" not in content


@needs_compiler
@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize("platform", [each for each in PLATFORMS if each.startswith("macos")])
def test_macos_would_load_its_libraries(platform: str, tmp_path: Path) -> None:
    levels = PLATFORMS[platform].levels
    [path] = build_libraries([clear, double_all], platform, levels, tmp_path / "kernels")
    content = path.read_bytes()

    def problems(content: bytes, *kernels: str) -> list[str]:
        return [each.what for each in macos_problems("it", read_mach_o(content), kernels)]

    assert problems(content, "clear", "double_all") == []
    assert problems(content, "clear") == ["it has pylog_double_all"]
    assert problems(content, "clear", "double_all", "sum") == ["it lacks pylog_sum"]
    foreign = content.replace(b"_double_all\0", b"_double_box\0").replace(b"bzero\0", b"bzest\0")
    found = [each.rpartition(" ")[2].strip("_") for each in problems(foreign, "clear")]
    assert {"pylog_double_box", "bzest"} <= set(found)
    elsewhere = content.replace(b"/usr/lib/libSystem", b"/opt/lib/libSystem")
    assert "it loads /opt/lib/libSystem.B.dylib" in problems(elsewhere, "clear")
    if platform == "macos-arm64":  # which runs nothing without the hash of each page
        changed = content.replace(b"libSystem", b"libsystem")
        assert "it has the signature 'wrong'" in problems(changed, "clear")


_LOADS = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **names) {
    void *library = dlopen(names[1], RTLD_NOW);
    puts(library == 0 ? dlerror() : dlsym(library, "pylog_scan_batches") ? "has it" : "lacks it");
    return 0;
}
"""


@needs_compiler
@only_libraries
@pytest.mark.thorough
@pytest.mark.skipif(not list(Path("/lib").glob("ld-musl-*")), reason="musl is not installed")
def test_musl_loads_the_same_libraries_as_glibc(tmp_path: Path) -> None:
    (tmp_path / "loads.c").write_text(_LOADS)
    # Without what the compiler adds to find faults, which needs a newer musl.
    options = (
        "-O2",
        "-s",
        "-fno-sanitize=all",
        "-dynamic",
        "-target",
        f"{this_machine()}-linux-musl",
    )
    compiler = [sys.executable, "-m", "ziglang", "cc", *options, "-o", "loads", "loads.c"]
    places = {f"ZIG_{kind}_CACHE_DIR": str(tmp_path / "cache") for kind in ("GLOBAL", "LOCAL")}
    subprocess.run(compiler, cwd=tmp_path, env=os.environ | places, check=True)
    for level in these_levels():
        command = [tmp_path / "loads", library_at(level)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == "has it\n"


@needs_compiler
def test_the_same_sources_give_the_same_bytes_whatever_was_built_before(tmp_path: Path) -> None:
    built = []
    for number, chosen in enumerate(("clear", "double_all clear")):
        script = (
            "from pathlib import Path; import os; from tests.unit.native import sample_kernels\n"
            "os.environ |= {'NUMBA_CPU_NAME': 'generic', 'NUMBA_CPU_FEATURES': ''}\n"
            "from pylog.kernel_compilation import *\n"
            f"names, folder = {chosen.split()}, Path({str(tmp_path / str(number) / 'a')!r})\n"
            "for name in names:\n"
            "    kernel = getattr(sample_kernels, name)\n"
            "    paths = build_libraries([kernel], 'linux-aarch64', ['aarch64'], folder / name)\n"
            "print(paths[0])\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        with open(done.stdout.strip(), "rb") as file:  # noqa: PTH123 - a path that was printed
            built.append(file.read())
    assert built[0] == built[1]


@needs_compiler
@only_libraries
def test_a_library_is_built_once_and_object_files_are_kept(tmp_path: Path) -> None:
    level = these_levels()[-1]

    def build(name: str, *kernels: Kernel) -> Path:
        [path] = build_libraries(kernels, this_platform(), [level], tmp_path / name)
        return path

    path = build("one", is_positive)
    before = path.stat().st_mtime_ns
    assert build("one", is_positive).stat().st_mtime_ns == before
    objects = list((tmp_path / "objects").iterdir())
    assert len(objects) == 1
    both = build("two", is_positive, clear)
    assert len(list((tmp_path / "objects").iterdir())) == 2
    assert objects[0].stat().st_mtime_ns < both.stat().st_mtime_ns
    library = KernelLibrary(level, both)
    entry = library.entry("clear")
    assert entry is not None
    values = np.full(5, 9, np.uint8)
    clear.signature.caller(entry)(values[1:4])
    assert values.tolist() == [9, 0, 0, 0, 9]
    assert ctypes.CDLL(str(path))["pylog_is_positive"] is not None
