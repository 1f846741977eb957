from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from pylog.errors import KernelsNotLoadedError
from pylog.native import library
from pylog.native.library import KernelLibrary, library_at, machine_levels, this_library
from tests.unit.native.compilers import only_libraries

PACKAGE = Path(library.__file__).parents[1]

# Of /proc/cpuinfo on an Intel Haswell (2013) and on an Intel Nehalem (2008), shortened.
HASWELL = """fpu sse sse2 ht syscall nx lm constant_tsc nopl pni pclmulqdq ssse3 fma cx16 sse4_1
 sse4_2 movbe popcnt aes xsave avx f16c rdrand lahf_lm abm bmi1 avx2 smep bmi2 erms"""
NEHALEM = "fpu sse sse2 ht syscall nx lm constant_tsc pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm"
# On a Cortex-A72 with and without ARM's optional cryptography (a Raspberry Pi 4 has none).
GRAVITON = "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"
RASPBERRY = "fp asimd evtstrm crc32 cpuid"


@pytest.mark.parametrize(
    ("machine", "flags", "level"),
    [
        ("x86_64", HASWELL, "x86-64-v3"),
        ("x86_64", HASWELL + " avx512f avx512vl", "x86-64-v3"),
        ("x86_64", HASWELL.replace("bmi2", ""), "x86-64-v2"),
        ("x86_64", NEHALEM, "x86-64-v2"),
        ("x86_64", HASWELL.replace("ssse3", ""), "x86-64"),
        ("x86_64", "", "x86-64"),
        ("aarch64", GRAVITON, "aarch64-crc"),
        ("aarch64", RASPBERRY, "aarch64"),
    ],
)
def test_the_level_is_the_highest_of_which_no_instruction_is_missing(
    machine: str, flags: str, level: str
) -> None:
    assert machine_levels(machine, set(flags.split()))[0] == level


def test_a_processor_runs_all_lower_levels_too_and_an_unknown_one_none() -> None:
    assert machine_levels("x86_64", set(HASWELL.split())) == ["x86-64-v3", "x86-64-v2", "x86-64"]
    assert machine_levels("riscv64", set(HASWELL.split())) == []


@pytest.mark.parametrize(
    ("capabilities", "levels"),
    [(0x8FF, ["aarch64-crc", "aarch64"]), (0x887, ["aarch64"])],  # of the same two Cortex-A72
)
def test_what_an_arm_processor_can_do_is_asked_of_linux(
    monkeypatch: pytest.MonkeyPatch, capabilities: int, levels: list[str]
) -> None:
    asked = SimpleNamespace(getauxval={16: capabilities}.__getitem__)  # AT_HWCAP
    monkeypatch.setattr(library, "this_machine", lambda: "aarch64")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: asked)
    monkeypatch.setattr(sys, "platform", "linux")
    assert library.these_levels.__wrapped__() == levels


@only_libraries
def test_the_level_is_the_highest_of_this_machine() -> None:
    assert this_library().level == library.these_levels()[0]
    assert this_library().entry("scan_batches") is not None
    assert this_library().entry("no_kernel") is None


@pytest.mark.parametrize("content", [b"", b"\x7fELF" + bytes(60), b"MZ" + bytes(62)])
def test_a_library_that_does_not_load_is_an_error_that_says_what_to_do(
    content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "kernels.so"
    path.write_bytes(content)
    with pytest.raises(KernelsNotLoadedError, match=r"cannot be loaded: .*noexec.*pip"):
        KernelLibrary("x86-64", path)


def test_where_there_is_no_library_the_error_names_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(library, "these_levels", list)
    monkeypatch.setattr(library, "this_machine", lambda: "riscv64")
    with pytest.raises(
        KernelsNotLoadedError, match="native: no kernels for linux riscv64: install"
    ):
        this_library.__wrapped__()


CODE = """
import sys
import numpy as np
from pylog.kernels.murmur2 import murmur2_partitions
from pylog.native.library import this_library
keys, nulls = np.frombuffer(b"aab", np.uint8), np.zeros(0, np.uint8)
partitions = np.zeros(2, np.int32)
print(murmur2_partitions(np.array([0, 1, 3]), keys, nulls, 1000, partitions), partitions)
print(this_library().level, {"numba", "llvmlite", "ctypes.util"} & set(sys.modules))
"""
# Kafka's Java client sends the keys "a" and "ab" to these partitions of 1,000.
ANSWER = f"(0, 2) [524 434]\n{library.these_levels()[0]} set()\n"


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Run code with the package of ``path`` and nothing else of this tree."""
    environment = {name: value for name, value in os.environ.items() if name[:5] != "NUMBA"}
    environment["PYTHONPATH"] = str(path)
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the package as a wheel has it: the library is beside the modules."""
    folder = tmp_path_factory.mktemp("site-packages")
    unused = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(PACKAGE, folder / "pylog", ignore=unused)
    level = library.these_levels()[0]
    shutil.copy(library_at(level), folder / "pylog" / "native" / library.file_name(level))
    return folder


def test_an_installed_library_is_used_and_neither_numba_nor_llvm_is_imported(
    installed: Path,
) -> None:
    done = run(CODE, installed)
    assert (done.stdout, done.stderr) == (ANSWER, "")


def test_an_installation_without_its_library_compiles_nothing(
    installed: Path, tmp_path: Path
) -> None:
    shutil.copytree(installed, tmp_path / "copy")
    for path in (tmp_path / "copy").rglob("*.so"):
        path.unlink()
    done = run(CODE, tmp_path / "copy")
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("pylog.errors.KernelsNotLoadedError: ")
    assert "native: no kernels for " in done.stderr


@pytest.mark.parametrize("has_memory_files", [True, False])
def test_a_package_in_a_zip_file_has_its_kernels_too(
    installed: Path,
    tmp_path: Path,
    has_memory_files: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    archive = tmp_path / "pylog.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in sorted(installed.rglob("*")):
            packed.write(path, path.relative_to(installed))
    without = "" if has_memory_files else "import os; del os.memfd_create\n"
    done = run(f"{without}{CODE}", archive)
    assert (done.stdout, done.stderr) == (ANSWER, "")


# In a clone.


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a copy of the package in a folder of a clone's name."""
    unused = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(PACKAGE, tmp_path / library.TREE_NAME / "pylog", ignore=unused)
    return tmp_path / library.TREE_NAME


WITHOUT = """
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name in {names} else found(name)
"""


def test_a_clone_that_can_compile_nothing_says_how_it_could(clone: Path) -> None:
    done = run(WITHOUT.format(names={"numba", "ziglang"}) + CODE, clone)
    assert done.stdout == ""
    assert (
        "are not compiled, and numba and ziglang to do it with cannot be imported: run"
        in (done.stderr.splitlines()[-1])
    )


def test_the_key_of_a_clone_is_that_of_its_kernels_and_its_compiler(clone: Path) -> None:
    code = "from pylog.native.library import tree_key; print(tree_key())"

    def key() -> str:
        done = run(code, clone)
        assert done.stderr == ""
        return done.stdout

    first = key()
    (clone / "pylog" / "versions.py").write_text("# changed")
    assert key() == first
    keys = {first}
    for changed in ("kernels/murmur2.py", "kernels/helpers.py", "native/intrinsics.py"):
        path = clone / "pylog" / changed
        path.write_text(path.read_text() + "\n# changed")
        keys.add(key())
    assert len(keys) == 4
