"""How long functions may be."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.structure.source_tree import Module, Problem, SourceTree

MAX_FUNCTION_LINES = 80  # without its docstring
KERNELS = "pylog.kernels"  # flat loops: they may be long


def long_functions(tree: SourceTree) -> Iterator[Problem]:
    """Find functions that are too long, docstrings not counted."""
    for module in _measured(tree):
        for node in ast.walk(module.syntax):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            lines = _lines(node) - _docstring_lines(node)
            if lines > MAX_FUNCTION_LINES:
                yield module.problem(
                    node.lineno,
                    f"{node.name} has {lines} lines without its docstring, "
                    f"allowed are {MAX_FUNCTION_LINES}",
                    "Name its steps, and make each a function.",
                )


def _measured(tree: SourceTree) -> Iterator[Module]:
    return (each for each in tree if each.name != KERNELS and not _is_below(each, KERNELS))


def _is_below(module: Module, package: str) -> bool:
    return module.name.startswith(f"{package}.")


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return 0 if ast.get_docstring(node, clean=False) is None else _lines(node.body[0])
