"""Numba, from a kernel in Python to an object file, or to a function that Numba itself runs.

Importing this takes as long as Numba does, so only those who compile do it.

Numba's own part, types and the intermediate code of LLVM, is done once for all processors. It
would also optimise that code for the processor it runs on; here LLVM does so for the one it is for,
with all of a kernel's helpers in one module, whose other functions are then nobody's but its own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
import numba
from numba.core import codegen, types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from pylog.native import intrinsics
from pylog.native.library import SYMBOL_PREFIX, tree_key
from pylog.native.signature import SCRATCH_WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pylog.native.signature import Parameter, Signature

IMPORTS = ("memcpy", "memmove", "memset", "pread")
"""Functions of the C library: all that machine code may call."""

# Division as in C: a kernel that could raise ZeroDivisionError would be refused.
_OPTIONS: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
# For what Python does not call; and no reference counts, since the caller owns all arrays.
_INNER: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True, "_nrt": False}

_IS_CONSTANT = re.compile(r'@[^=]+ = (?:[a-z_]+ )*constant (?:"[^"]*"|[^@"])*$')
_IS_OF_FLOATS = re.compile(r"\.(?:v\d+)?f\d+")  # many are functions of libm in the end

_addresses = itertools.count(1)
_njit: Any = numba.njit  # whose types know only some of its options


class UnsupportedKernelError(Exception):
    """A kernel needs what a library of kernels does not have."""


@dataclass(frozen=True, slots=True)
class CodeTarget:
    """The platform for which machine code is made, in LLVM's words."""

    triple: str
    cpu: str
    features: str = ""


class CompiledKernel:
    """A kernel in the intermediate code of LLVM, for any processor of a level."""

    def __init__(
        self, function: Callable[..., object], signature: Signature, level: str | None
    ) -> None:
        namespace = _with_helpers(function, _INNER, level, checks_bounds=False)
        with _intermediate_code_only():
            kernel = _njit(**_INNER)(_moved(function, namespace))
            entry = _njit(types.void(types.CPointer(types.int64)), **_INNER)(
                _entry(kernel, signature)
            )
            (compiled,) = entry.overloads.values()
        self._symbol = SYMBOL_PREFIX + signature.name
        self._name = compiled.fndesc.llvm_func_name
        self._module: bytes = compiled.library._final_module.as_bitcode()

    def object_file(self, target: CodeTarget) -> bytes:
        """Return the object file for a target, whose one global symbol is the kernel's.

        Raises
        ------
        UnsupportedKernelError
            It could raise an exception, allocates memory, or calls what no library has.
        """
        machine = llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=3, reloc="pic", codemodel="small"
        )
        module = llvm.parse_bitcode(self._module)
        module.triple, module.data_layout = target.triple, str(machine.target_data)
        for each in [*module.functions, *module.global_variables]:
            if each.name == self._name:
                each.name = self._symbol
            elif not each.is_declaration:
                each.linkage = "internal"
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.slp_vectorization = True
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        _ensure_alone(module, self._symbol)
        object_file: bytes = machine.emit_object(module)
        return object_file


def _ensure_alone(module: Any, symbol: str) -> None:
    """Refuse what could raise an exception or calls something outside."""
    for function in module.functions:
        is_instruction = function.name.startswith("llvm.") and not _IS_OF_FLOATS.search(
            function.name
        )
        if function.is_declaration and not is_instruction and function.name not in IMPORTS:
            raise UnsupportedKernelError(f"{symbol} calls {function.name}")
    for variable in module.global_variables:
        # Constants refer to nothing; exceptions that may be raised are kept as some that do.
        if not _IS_CONSTANT.match(str(variable)):
            raise UnsupportedKernelError(f"{symbol} has the variable {variable.name}")


@contextmanager
def _intermediate_code_only() -> Iterator[None]:
    """Have Numba stop before it optimises, and before it makes code for this processor."""

    def is_done(library: Any) -> None:
        library._finalized = True

    def no_address(library: Any, _: str) -> int:
        library._ensure_finalized()  # puts what is called into its module
        return next(_addresses)  # never called: they tell functions apart

    instead: dict[tuple[Any, str], Any] = {
        (codegen.CPUCodeLibrary, "_optimize_final_module"): lambda _: None,
        (codegen.CPUCodeLibrary, "_finalize_final_module"): is_done,
        (codegen.JITCodeLibrary, "get_pointer_to_function"): no_address,
        (codegen.JITCPUCodegen, "set_env"): lambda *_: None,
    }
    kept = {place: getattr(*place) for place in instead}
    try:
        for place, value in instead.items():
            setattr(*place, value)
        yield
    finally:
        for place, value in kept.items():
            setattr(*place, value)


def depends_on_level(function: Callable[..., object]) -> bool:
    """Return whether a kernel's helpers have other instructions on some levels."""
    used = (getattr(each, "pylog_intrinsic", ("",)) for each in function.__globals__.values())
    return any(isinstance(each[0], Mapping) for each in used)


def run_by_numba(function: Callable[..., object], signature: Signature) -> Callable[..., object]:
    """Return a kernel that Numba calls: compiled now, or out of the cache that it is told."""
    checks_bounds = bool(numba.config.BOUNDSCHECK)  # type: ignore[attr-defined]  # made at run time
    namespace = _with_helpers(function, _OPTIONS, None, checks_bounds=checks_bounds)
    arguments = tuple(_numba_type(parameter) for parameter in signature.parameters)
    moved = _moved(function, namespace)
    # Part of the name of Numba's file, which it would also read if only a helper had changed.
    moved.__qualname__ += f"_{tree_key()}"
    is_kept = bool(numba.config.CACHE_DIR)  # type: ignore[attr-defined]  # made at run time
    compiled: Callable[..., object] = _njit(arguments, cache=is_kept, **_OPTIONS)(moved)
    return compiled


def _with_helpers(
    function: Callable[..., Any],
    options: dict[str, Any],
    level: str | None,
    *,
    checks_bounds: bool,
) -> dict[str, Any]:
    """Return the globals of a kernel, in which helpers are what Numba can compile."""
    namespaces: dict[str, dict[str, Any]] = {}
    helpers: dict[Callable[..., Any], Any] = {}

    def namespace_of(function: Callable[..., Any]) -> dict[str, Any]:
        if function.__module__ not in namespaces:
            namespace = namespaces[function.__module__] = dict(function.__globals__)
            for name, value in function.__globals__.items():
                if hasattr(value, "pylog_intrinsic"):
                    namespace[name] = compilable(value)
        return namespaces[function.__module__]

    def compilable(value: Any) -> Any:
        if value not in helpers:
            instead, also_checked = value.pylog_intrinsic
            name = instead.get(level, "") if isinstance(instead, Mapping) else instead
            helpers[value] = (
                getattr(intrinsics, name)
                if name and (also_checked or not checks_bounds)
                else _njit(**options)(_moved(value, namespace_of(value)))
            )
        return helpers[value]

    return namespace_of(function)


def _moved(function: Callable[..., Any], namespace: dict[str, Any]) -> FunctionType:
    moved = FunctionType(function.__code__, namespace, function.__name__)
    moved.__qualname__ = function.__qualname__
    return moved


def _entry(kernel: object, signature: Signature) -> FunctionType:
    """Return the function that takes a frame apart, calls the kernel, and puts its results in."""
    at = signature.result_count + SCRATCH_WORDS
    namespace: dict[str, Any] = {"kernel": kernel}
    arguments = []
    for parameter in signature.parameters:
        if parameter.dtype is None:
            arguments.append(f"frame[{at}]" + (" != 0" if parameter.is_flag else ""))
            at += 1
        else:
            namespace[f"array_{parameter.name}"] = _array_in_frame(_numba_type(parameter))
            arguments.append(f"array_{parameter.name}(frame, {at})")
            at += 1 + parameter.dimensions
    lines = ["def entry(frame):", f"    result = kernel({', '.join(arguments)})"]
    if signature.returns_tuple:
        lines += [f"    frame[{i}] = result[{i}]" for i in range(signature.result_count)]
    elif signature.result_count:
        lines.append("    frame[0] = result")
    exec("\n".join(lines), namespace)  # noqa: S102 - of our own annotations
    entry: FunctionType = namespace["entry"]
    return entry


def _numba_type(parameter: Parameter) -> Any:
    if parameter.dtype is None:
        return types.boolean if parameter.is_flag else types.int64
    element = numba.from_dtype(parameter.dtype)  # type: ignore[arg-type]  # it takes any
    return types.Array(element, parameter.dimensions, "C", readonly=not parameter.is_written)


def _array_in_frame(kind: Any) -> Any:
    """Return an intrinsic: ``(frame, at)`` to the array whose address and lengths stand there."""

    @intrinsic
    def array_in_frame(typing: Any, frame: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            frame_value, first = arguments

            def word(index: int) -> Any:
                place = builder.add(first, first.type(index))
                return builder.load(builder.gep(frame_value, [place]))

            element = context.get_data_type(kind.dtype)
            size = context.get_constant(types.intp, context.get_abi_sizeof(element))
            shape = [word(1 + dimension) for dimension in range(kind.ndim)]
            strides = [size]
            for length in reversed(shape[1:]):
                strides.insert(0, builder.mul(strides[0], length))
            values = context.make_array(kind)(context, builder)
            populate_array(
                values,
                data=builder.inttoptr(word(0), element.as_pointer()),
                shape=shape,
                strides=strides,
                itemsize=size,
                meminfo=None,
            )
            return values._getvalue()

        return kind(frame, types.int64), generate

    return array_in_frame
