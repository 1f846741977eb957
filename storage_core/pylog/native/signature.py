"""What a kernel takes and returns, and how that reaches machine code.

Annotations say most of it: ``npt.NDArray[np.uint8]`` is a C-contiguous array with one dimension,
``int`` an int64, ``bool`` a flag. What they cannot say, `Signature` is told: which arrays have two
dimensions, and which are written to. All others are read-only for the compiler.

Code gets one argument, a *frame* of int64: first the results, to be filled in; then two words that
Numba's calling convention wants somewhere; then, for each parameter, its value, or an array's
address and length in each dimension.
"""

from __future__ import annotations

import array
import ctypes
import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

SCRATCH_WORDS = 2
_WORD_BYTES = 8

# Of ndarray.flags.num, as in NumPy's C interface: C-contiguous, aligned, writeable.
_READABLE = 0x1 | 0x100
_WRITABLE = 0x400

_ARRAY = re.compile(r"npt\.NDArray\[np\.((?:u?int|float)\d+)\]")
_RESULTS = {"None": 0, "int": 1, "bool": 1}
_TUPLE = re.compile(r"tuple\[(int(?:, int)*)\]")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kernel."""

    name: str
    dtype: np.dtype[np.generic] | None = None
    dimensions: int = 0
    is_written: bool = False
    is_flag: bool = False


class Signature:
    """Parameters and results of a kernel."""

    def __init__(
        self, function: Callable[..., object], writes: Collection[str], tables: Collection[str]
    ) -> None:
        annotations = function.__annotations__
        self.name = function.__name__
        self.parameters = tuple(
            _parameter(self.name, name, annotations.get(name, ""), writes, tables)
            for name in inspect.signature(function).parameters
        )
        arrays = {parameter.name for parameter in self.parameters if parameter.dtype is not None}
        if unknown := {*writes, *tables} - arrays:
            raise TypeError(f"{self.name}() has no array {min(unknown)!r}")
        returned = annotations.get("return", "")
        values = _TUPLE.fullmatch(returned)
        if values is None and returned not in _RESULTS:
            raise TypeError(f"{self.name}() returns {returned!r}, expected integers")
        self.returns_tuple = values is not None
        self.result_count = values[1].count("int") if values else _RESULTS[returned]
        self._returns_flag = returned == "bool"

    def caller(self, entry: Callable[[int, int, int], int]) -> Callable[..., object]:
        """Return the kernel as Python calls it."""
        words = ["0"] * (self.result_count + SCRATCH_WORDS)
        checks = []
        namespace: dict[str, object] = {
            "_array": array.array,
            "_entry": entry,
            "_ndarray": np.ndarray,
            "_pointer_at": _pointer_at,
            "_refuse": self._refuse,
        }
        for index, parameter in enumerate(self.parameters):
            name = parameter.name
            if parameter.dtype is None:
                words.append(name)
                continue
            flags = _READABLE | _WRITABLE if parameter.is_written else _READABLE
            namespace[f"_dtype_{index}"] = parameter.dtype
            checks += [
                f"    if not (type({name}) is _ndarray and {name}.dtype == _dtype_{index}",
                f"        and {name}.ndim == {parameter.dimensions}",
                f"        and {name}.flags.num & {flags} == {flags}):",
                f"        _refuse({index}, {name})",
            ]
            words.append(_ADDRESS.format(name))
            words.append(f"{name}.size" if parameter.dimensions == 1 else f"*{name}.shape")
        scratch = _WORD_BYTES * self.result_count
        results = [f"_frame[{index}]" for index in range(self.result_count)]
        if self.returns_tuple:
            returned = f"({', '.join(results)},)"
        else:
            returned = "".join(results) + (" != 0" if self._returns_flag else "") or "None"
        source = [
            f"def {self.name}({', '.join(parameter.name for parameter in self.parameters)}, /):",
            *checks,
            f"    _frame = _array('q', ({', '.join(words)},))",
            "    _at, _ = _frame.buffer_info()",
            f"    if _entry(_at + {scratch}, _at + {scratch + _WORD_BYTES}, _at):",
            "        raise SystemError('a kernel ended with an error, and none can')",
            f"    return {returned}",
        ]
        exec("\n".join(source), namespace)  # noqa: S102 - names of parameters, and our own numbers
        called: Callable[..., object] = namespace[self.name]  # type: ignore[assignment]
        return called

    def _refuse(self, index: int, argument: object) -> None:
        parameter = self.parameters[index]
        kind = "a writable" if parameter.is_written else "an"
        dimensions = f"{parameter.dimensions} dimension{'s' * (parameter.dimensions > 1)}"
        given = type(argument).__name__
        if isinstance(argument, np.ndarray):
            flags = argument.flags
            given = (
                f"{'a writable' if flags.writeable else 'a read-only'} array of {argument.dtype}, "
                f"shape {argument.shape}, {'' if flags.c_contiguous else 'not '}C-contiguous, "
                f"{'' if flags.aligned else 'not '}aligned"
            )
        raise TypeError(
            f"{self.name}(): {parameter.name!r} is {given}; expected {kind} array of "
            f"{parameter.dtype}, {dimensions}, C-contiguous, aligned"
        )


def _parameter(
    function: str, name: str, annotation: str, writes: Collection[str], tables: Collection[str]
) -> Parameter:
    if annotation in {"int", "bool"}:
        return Parameter(name, is_flag=annotation == "bool")
    elements = _ARRAY.fullmatch(annotation)
    if elements is None:
        raise TypeError(f"{function}(): {name!r} is {annotation!r}, expected an array or a number")
    dimensions = 2 if name in tables else 1
    return Parameter(name, np.dtype(elements[1]), dimensions, is_written=name in writes)


# NumPy's C structure (PyArrayObject_fields, part of its ABI) is Python's object header, then the
# pointer to the data. Reading that takes a sixth of the time of ``ndarray.ctypes``, which would be
# most of the cost of a call.
_HEADER_BYTES = object.__basicsize__
_pointer_at = ctypes.c_void_p.from_address
_SAMPLE = np.zeros(1, dtype=np.int64)
_IS_AS_DESCRIBED = _pointer_at(id(_SAMPLE) + _HEADER_BYTES).value == _SAMPLE.ctypes.data
_ADDRESS = (
    f"(_pointer_at(id({{0}}) + {_HEADER_BYTES}).value or 0)"
    if _IS_AS_DESCRIBED
    else "{0}.ctypes.data"
)
