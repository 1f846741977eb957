"""Numba, from a kernel in Python to an image, or to a function that Numba itself runs.

Importing this takes as long as Numba does, so only those who compile do it.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
import numba
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from pylog.native import intrinsics
from pylog.native.kernel_cache import LEVELS, key_of
from pylog.native.machine_code import ENTRY, HAS_LINKER, UnsupportedObjectError, link
from pylog.native.signature import SCRATCH_WORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.native.signature import Parameter, Signature

# Division as in C: a kernel that could raise ZeroDivisionError would be refused.
_OPTIONS: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
# For what Python does not call; and no reference counts, since the caller owns all arrays.
_INNER: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True, "_nrt": False}

# Beside those of the level itself; see `pylog.native.kernel_cache`.
_FEATURES = {"x86-64-v3": "+pclmul"}

_njit: Any = numba.njit  # whose types know only some of its options


def compile_kernel(function: Callable[..., object], signature: Signature, level: str) -> bytes:
    """Return the object file of a kernel, compiled for a level of this kind of processor."""
    namespace = _with_helpers(function, _INNER, level, checks_bounds=False)
    kernel = _njit(**_INNER)(_moved(function, namespace))
    entry = _njit(types.void(types.CPointer(types.int64)), **_INNER)(_entry(kernel, signature))
    try:
        (compiled,) = entry.overloads.values()
        module, name = compiled.library._final_module, compiled.fndesc.llvm_func_name
    except AttributeError as error:  # these are Numba's own affair
        msg = f"Numba {numba.__version__} keeps its code elsewhere: {error}"
        raise UnsupportedObjectError(msg) from error
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=level if level in LEVELS else "generic",
        features=_FEATURES.get(level, ""),
        opt=3,
        reloc="pic",
        codemodel="small",
    )
    module.get_function(name).name = ENTRY
    object_file: bytes = machine.emit_object(module)
    if HAS_LINKER:
        link(object_file)  # refuses what could raise an exception
    return object_file


def run_by_numba(function: Callable[..., object], signature: Signature) -> Callable[..., object]:
    """Return a kernel that Numba calls: compiled now, or out of Numba's own cache."""
    checks_bounds = bool(numba.config.BOUNDSCHECK)  # type: ignore[attr-defined]  # made at run time
    namespace = _with_helpers(function, _OPTIONS, None, checks_bounds=checks_bounds)
    arguments = tuple(_numba_type(parameter) for parameter in signature.parameters)
    moved = _moved(function, namespace)
    # Part of the name of Numba's file, which it would also read if only a helper had changed.
    moved.__qualname__ += f"_{key_of(function, '').hex()}"
    compiled: Callable[..., object] = _njit(arguments, cache=_can_cache(), **_OPTIONS)(moved)
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
            instead, also_checked, needed = value.pylog_intrinsic
            helpers[value] = (
                getattr(intrinsics, instead)
                if instead and (also_checked or not checks_bounds) and needed in {None, level}
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


def _probe() -> None:
    """Never run: a function to ask Numba about."""


def _can_cache() -> bool:
    """Return whether there is a directory for what Numba keeps itself.

    Without one, Numba refuses a function that is to be cached. It also takes ``~`` for a name where
    the home directory is not known, and would make a directory of that name wherever we happen to
    stand, which may be the directory that is read.
    """
    is_told = bool(os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME"))
    if not is_told and os.path.expanduser("~") == "~":  # noqa: PTH111 - expanduser() raises
        beside = Path(__file__).parent / "__pycache__"
        return beside.is_dir() and os.access(beside, os.W_OK)
    try:
        numba.njit(cache=True)(_probe)
    except RuntimeError:  # "cannot cache function …: no locator available"
        return False
    return True
