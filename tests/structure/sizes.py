"""How large files, functions and the package ``log`` may be."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.structure.source_tree import Module, Problem, SourceTree

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60  # without its docstring
MAX_PACKAGE_FILES = {"pylog.log": 26}  # ``__init__.py`` counts, sub-packages count along
KERNELS = "pylog.kernels"  # self-contained files with flat loops: they may be long


def long_files(tree: SourceTree) -> Iterator[Problem]:
    """Find files that are too long."""
    for module in _measured(tree):
        lines = len(module.source.splitlines())
        if lines > MAX_FILE_LINES:
            yield module.problem(
                1,
                f"the file has {lines} lines, allowed are {MAX_FILE_LINES}",
                "Find what in it has a name of its own, and give that a file.",
            )


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


def crowded_packages(tree: SourceTree) -> Iterator[Problem]:
    """Find packages with more files than they may have."""
    for package, allowed in MAX_PACKAGE_FILES.items():
        files = [each for each in tree if each.name == package or _is_below(each, package)]
        if len(files) > allowed:
            yield files[0].problem(
                1,
                f"{package} has {len(files)} files, allowed are {allowed}",
                "Find the files that do one job together, and give them a package of their own.",
            )


def _measured(tree: SourceTree) -> Iterator[Module]:
    return (each for each in tree if each.name != KERNELS and not _is_below(each, KERNELS))


def _is_below(module: Module, package: str) -> bool:
    return module.name.startswith(f"{package}.")


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return 0 if ast.get_docstring(node, clean=False) is None else _lines(node.body[0])
