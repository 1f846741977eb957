"""Kernels as they are called, and what a process finds, keeps and refuses in the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pylog.native.kernel import kernel
from pylog.native.kernel_cache import this_level
from tests.conftest import NUMBA_IS_OFF
from tests.unit.native.sample_kernels import clear, double_all, is_positive

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

REPOSITORY = Path(__file__).parents[3]
CODE = """
import sys, numpy as np
from pylog.kernels.scan_batches import scan_batches
from pylog.kernels.murmur2 import murmur2_partitions
empty = np.zeros(0, np.uint8)
print(scan_batches(empty, 0, 0, np.zeros(1, np.int64)))
keys, partitions = np.frombuffer(b"aab", np.uint8), np.zeros(2, np.int32)
print(murmur2_partitions(np.array([0, 1, 3]), keys, empty, 1000, partitions), partitions)
print(sorted({"numba", "llvmlite", "hashlib"} & set(sys.modules)))
"""
# Kafka's Java client sends the keys "a" and "ab" to these partitions of 1,000.
ANSWER = "(0, 0, 0)\n(0, 2) [524 434]\n"

only_images = pytest.mark.skipif(
    NUMBA_IS_OFF or this_level() is None or "NUMBA_BOUNDSCHECK" in os.environ,
    reason="there are no images here",
)


def run(cache: Path | str, first: str = "") -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", first + CODE],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stderr == ""
    assert done.stdout.startswith(ANSWER)
    return done.stdout.removeprefix(ANSWER).strip()


COMPILED = "['hashlib', 'llvmlite', 'numba']"
LOADED = "[]"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a cache by a first process."""
    cache = tmp_path_factory.mktemp("cache") / "kernels"
    assert run(cache) == COMPILED
    return cache


@pytest.fixture
def cache(kept: Path, tmp_path: Path) -> Path:
    """Copy the cache, for a test to change."""
    copy = tmp_path / "copy"
    copy.mkdir(mode=0o755)
    for path in kept.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    return copy


@only_images
def test_a_process_that_finds_its_kernels_imports_neither_numba_nor_llvm(kept: Path) -> None:
    assert len(list(kept.iterdir())) == 2
    assert run(kept) == LOADED


BY_LLVM = "from pylog.native import machine_code; machine_code.HAS_LINKER = False\n"


def test_where_code_is_not_linked_here_llvm_loads_the_same_file_without_numba(kept: Path) -> None:
    assert run(kept, BY_LLVM) == "['llvmlite']"


@only_images
@pytest.mark.slow
@pytest.mark.thorough
def test_files_that_are_damaged_or_foreign_are_made_again(cache: Path) -> None:
    paths = sorted(cache.iterdir())
    good = [path.read_bytes() for path in paths]
    paths[0].write_bytes(good[0][:-1])
    paths[1].write_bytes(b"\xcc" * 5000)
    assert run(cache) == COMPILED
    assert [path.read_bytes() for path in paths] == good
    paths[0].write_bytes(good[1])
    paths[1].unlink()
    paths[1].symlink_to(paths[0])
    assert run(cache) == COMPILED
    assert [path.read_bytes() for path in paths] == good
    assert run(cache) == LOADED


@only_images
def test_a_cache_that_others_can_write_to_is_neither_read_nor_written(cache: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in cache.iterdir()}
    cache.chmod(0o777)
    assert run(cache) == COMPILED
    assert {path: path.stat().st_mtime_ns for path in cache.iterdir()} == before
    cache.chmod(0o755)
    assert run(cache) == LOADED


@only_images
def test_without_a_cache_kernels_are_compiled_for_the_process() -> None:
    assert run("/dev/null/none") == COMPILED


@only_images
def test_processes_that_fill_a_cache_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", CODE]
    processes = [
        subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    outputs = [process.communicate(timeout=300)[0].decode() for process in processes]
    assert [output.startswith(ANSWER) for output in outputs] == [True] * 3
    assert len(list((tmp_path / "cache").iterdir())) == 2
    assert run(tmp_path / "cache") == LOADED


def doubled(**changes: object) -> object:
    arguments: dict[str, Any] = {
        "values": np.array([1, -5, 1 << 40]),
        "table": np.array([[1, 2], [3, 4]], dtype=np.int32),
        "row": 1,
        "is_row_wanted": True,
        "doubled": np.zeros(3, dtype=np.int64),
    }
    arguments |= changes
    return double_all(*arguments.values()), arguments["doubled"].tolist()


def test_a_kernel_takes_arrays_tables_numbers_and_flags_and_returns_several_numbers() -> None:
    assert doubled() == (((1 << 40) - 4, 7), [2, -10, 1 << 41])
    assert doubled(row=0) == (((1 << 40) - 4, 3), [2, -10, 1 << 41])
    assert doubled(is_row_wanted=False) == (((1 << 40) - 4, 0), [2, -10, 1 << 41])
    read_only = np.array([7])
    read_only.flags.writeable = False
    assert doubled(values=read_only, doubled=np.zeros(1, np.int64)) == ((7, 7), [14])
    assert doubled(values=np.zeros(0, np.int64))[0] == (0, 7)  # type: ignore[index]


def test_a_kernel_returns_a_flag_or_nothing() -> None:
    assert [is_positive(value) for value in (-(1 << 63), 0, (1 << 63) - 1)] == [False, False, True]
    assert is_positive(np.int32(4)) is True
    values = np.full(5, 9, np.uint8)
    assert clear(values[1:4]) is None
    assert values.tolist() == [9, 0, 0, 0, 9]


def misaligned() -> npt.NDArray[np.int64]:
    return np.frombuffer(bytes(25), np.uint8)[1:].view(np.int64)


@only_images
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"values": [1, 2, 3]}, "'values' is list; expected an array of int64, 1 dimension"),
        ({"values": np.zeros(3)}, "'values' is a writable array of float64, shape"),
        ({"values": np.zeros(3, ">i8")}, "a writable array of >i8"),
        ({"values": np.zeros(3, np.uint64)}, "array of uint64"),
        ({"values": np.zeros((3, 1), np.int64)}, r"shape \(3, 1\)"),
        ({"values": np.zeros(6, np.int64)[::2]}, "not C-contiguous"),
        ({"values": misaligned()}, "not aligned"),
        ({"table": np.zeros((2, 2), np.int32).T[:1].T}, "not C-contiguous"),
        ({"doubled": np.frombuffer(bytes(24), np.int64)}, "a read-only .*expected a writable"),
        ({"row": 1.0}, "float"),
        ({"row": None}, "NoneType"),
        ({"row": "1"}, "str"),
    ],
)
def test_arguments_of_other_types_are_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        doubled(**changes)


@only_images
def test_numbers_beyond_64_bits_and_wrong_counts_are_refused() -> None:
    with pytest.raises(OverflowError):
        is_positive(1 << 63)
    with pytest.raises(TypeError):
        is_positive()
    with pytest.raises(TypeError):
        is_positive(1, 2)


def takes_text(value: str) -> int:
    return len(value)


def returns_text(value: int) -> str:
    return str(value)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (takes_text, r"takes_text\(\): 'value' is 'str', expected an array or a number"),
        (returns_text, r"returns_text\(\) returns 'str', expected integers"),
    ],
)
def test_a_function_that_cannot_be_a_kernel_is_refused_where_it_is_defined(
    function: Callable[..., object], reason: str
) -> None:
    with pytest.raises(TypeError, match=reason):
        kernel()(function)


def test_what_is_said_to_be_written_to_has_to_be_an_array() -> None:
    with pytest.raises(TypeError, match=r"is_positive\(\) has no array 'other'"):
        kernel(writes=("other",))(is_positive.function)
