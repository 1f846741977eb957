"""Kernels as they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pylog.kernel_compilation import build_libraries, this_platform
from pylog.native.kernel import kernel
from pylog.native.library import KernelLibrary, these_levels
from tests.unit.native.compilers import needs_compiler, only_libraries
from tests.unit.native.sample_kernels import clear, double_all, is_positive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

SAMPLES = (clear, double_all, is_positive)
BY_NUMBA = "Numba"
LIBRARY = "library"


@pytest.fixture(scope="module", params=[BY_NUMBA, pytest.param(LIBRARY, marks=only_libraries)])
def way_to_run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Have the samples run by Numba, which runs what no library has, or from one of their own."""
    if request.param == BY_NUMBA:
        yield request.param
        return
    level = these_levels()[0]
    folder = tmp_path_factory.mktemp("kernels") / "samples"
    [path] = build_libraries(SAMPLES, this_platform(), [level], folder)
    library = KernelLibrary(level, path)
    with pytest.MonkeyPatch.context() as patch:
        for each in SAMPLES:
            entry = library.entry(each.signature.name)
            assert entry is not None
            patch.setattr(each, "_call", each.signature.caller(entry))
        yield request.param


of_the_library = pytest.mark.parametrize(
    "way_to_run", [pytest.param(LIBRARY, marks=only_libraries)], indirect=True
)
pytestmark = [needs_compiler, pytest.mark.usefixtures("way_to_run")]


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


@of_the_library
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


@of_the_library
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
