from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.native import kernel_cache
from pylog.native.kernel_cache import KernelCache, content_of, file_of, machine_level
from tests.unit.native import sample_kernels

if TYPE_CHECKING:
    from collections.abc import Callable

# Of /proc/cpuinfo on an Intel Haswell (2013) and on an Intel Nehalem (2008), shortened.
HASWELL = """fpu sse sse2 ht syscall nx lm constant_tsc nopl pni pclmulqdq ssse3 fma cx16 sse4_1
 sse4_2 movbe popcnt aes xsave avx f16c rdrand lahf_lm abm bmi1 avx2 smep bmi2 erms"""
NEHALEM = "fpu sse sse2 ht syscall nx lm constant_tsc pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm"

CODE = b"\x7fELF" + bytes(60)


@pytest.mark.parametrize(
    ("flags", "level"),
    [
        (HASWELL, "x86-64-v3"),
        (HASWELL + " avx512f avx512vl", "x86-64-v3"),
        (HASWELL.replace("bmi2", ""), "x86-64-v2"),
        (NEHALEM, "x86-64-v2"),
        (HASWELL.replace("ssse3", ""), "x86-64"),
        ("", "x86-64"),
    ],
)
def test_the_level_is_the_highest_of_which_no_instruction_is_missing(
    flags: str, level: str
) -> None:
    assert machine_level(set(flags.split())) == level


def kept_in(function: Callable[..., object], level: str = "x86-64") -> list[Path]:
    cache = KernelCache(function, level)
    directory = cache.writable_directory()
    assert directory is not None
    assert cache.write(directory, CODE)
    assert cache.read() == CODE
    return sorted(directory.glob("*.kernel"))


FUNCTION = sample_kernels.clear.function


def test_the_variable_names_the_one_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    (path,) = kept_in(FUNCTION)
    assert path.parent == tmp_path / "chosen"
    assert path.name.startswith("sample_kernels.clear-x86-64-")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null/none")
    assert KernelCache(FUNCTION, "x86-64").writable_directory() is None
    assert KernelCache(FUNCTION, "x86-64").read() is None


def test_without_it_code_is_kept_beside_the_source_or_else_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache = KernelCache(FUNCTION, "x86-64")
    monkeypatch.setattr(cache, "_source", tmp_path / "site" / "sample_kernels.py")
    assert cache.writable_directory() == tmp_path / "site" / "__pycache__"
    (tmp_path / "site").chmod(0o777)
    assert cache.writable_directory() == tmp_path / "cache" / "pylog"
    assert cache.write(tmp_path / "cache" / "pylog", CODE)
    assert cache.read() == CODE
    (tmp_path / "cache").chmod(0o777)
    assert cache.writable_directory() is None
    assert cache.read() is None


def test_without_a_home_directory_nothing_is_made_where_we_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)
    cache = KernelCache(FUNCTION, "x86-64")
    monkeypatch.setattr(cache, "_source", Path("/dev/null/sample_kernels.py"))
    assert cache.writable_directory() is None
    assert list(tmp_path.iterdir()) == []


def test_functions_and_levels_have_files_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    kept_in(FUNCTION, "x86-64")
    kept_in(FUNCTION, "x86-64-v3")
    assert len(kept_in(sample_kernels.is_positive.function)) == 3


@pytest.mark.parametrize(
    "changed",
    [
        ("tests.unit.native.sample_kernels", ""),
        ("pylog.kernels.helpers", ""),
        ("pylog.native.numba_compiler", ""),
        ("pylog.native.intrinsics", ""),
        ("pylog.native.signature", ""),
        ("numba", "_version.py"),
        ("llvmlite", "_version.py"),
    ],
)
def test_code_made_from_another_source_or_by_another_compiler_is_not_read(
    changed: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    (path,) = kept_in(FUNCTION)
    source_of = kernel_cache._source_of
    asked = []

    def other_source(module: str, beside: str = "") -> bytes:
        asked.append((module, beside))
        return source_of(module, beside) + b"\n" * ((module, beside) == changed)

    assert len(source_of(*changed)) > 100
    monkeypatch.setattr(kernel_cache, "_source_of", other_source)
    cache = KernelCache(FUNCTION, "x86-64")
    assert changed in asked
    assert cache.read() is None
    # Nor if it has the other's name.
    path.rename(tmp_path / cache._name)
    assert cache.read() is None


KEY = b"12345678"


def test_a_file_gives_back_the_code_that_it_keeps() -> None:
    assert content_of(file_of(CODE, KEY), KEY) == CODE
    assert file_of(CODE, KEY).startswith(CODE)


def test_code_of_another_key_is_not_taken() -> None:
    assert content_of(file_of(CODE, KEY), b"12345679") is None


def test_no_part_of_a_file_is_taken() -> None:
    file = file_of(CODE, KEY)
    assert [n for n in range(len(file)) if content_of(file[:n], KEY)] == []
    assert content_of(file + b"\0", KEY) is None


def test_a_file_with_a_changed_byte_is_not_taken() -> None:
    file = file_of(CODE, KEY)
    for at in range(len(file)):
        changed = bytearray(file)
        changed[at] ^= 0x20
        assert content_of(bytes(changed), KEY) is None


@given(st.binary(max_size=400))
def test_random_bytes_are_not_taken(content: bytes) -> None:
    assert content_of(content, KEY) is None
