"""What a kernel takes: arguments and functions that cannot be are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pylog.native.kernel import kernel
from tests.unit.native.compilers import needs_compiler, only_libraries
from tests.unit.native.kernel_runs import LIBRARY, doubled
from tests.unit.native.sample_kernels import is_positive

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

of_the_library = pytest.mark.parametrize(
    "way_to_run", [pytest.param(LIBRARY, marks=only_libraries)], indirect=True
)
pytestmark = [needs_compiler, pytest.mark.usefixtures("way_to_run")]


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
