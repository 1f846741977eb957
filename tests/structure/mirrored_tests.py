"""Where the tests of a module are: at the mirrored path, or where a list says.

``storage_core/pylog/log/log_append.py`` has ``tests/unit/log/test_log_append.py``; tests of the
connector are in ``tests/unit/connector``, those of the jobs in ``tests/unit/jobs``. Modules of
names and texts alone, whose functions decide nothing, need none.
"""

from __future__ import annotations

import ast
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from tests.structure.source_tree import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.structure.source_tree import Module, SourceTree

LIST = "tests/structure/tested_elsewhere.txt"
MOST = 20
"""So many modules may be on the list."""
_ROOMS: Mapping[str, tuple[str, ...]] = {
    "pylog": (),
    "pyspark_pylog": ("connector",),
    "pylog_jobs": ("jobs",),
}
_DECISIONS = (
    *(ast.If, ast.For, ast.While, ast.Try, ast.Match, ast.With),
    *(ast.IfExp, ast.comprehension, ast.BoolOp),
)


def mirrored_tests(root: Path, tree: SourceTree) -> Iterator[Problem]:
    """Find modules that no test file mirrors and that the list has no line of; stale lines."""
    elsewhere = _read(root / LIST)
    without = {
        module.name: module
        for module in tree
        if _has_behaviour(module) and not (root / mirrored_path(module)).exists()
    }
    for name, module in without.items():
        if name not in elsewhere:
            remedy = f"Write {mirrored_path(module)}, or name what tests it in {LIST}."
            yield module.problem(1, f"no test file mirrors {name}", remedy)
    for place, (name, (line, test, why)) in enumerate(elsewhere.items(), start=1):
        if name not in without:
            yield Problem(LIST, line, f"{name} is gone, or has a test file", "Remove the line.")
        elif not (root / test).exists():
            yield Problem(LIST, line, f"there is no {test}", "Name the test file of the module.")
        elif not why:
            yield Problem(LIST, line, f"no reason is given for {name}", "Add it to the line.")
        elif place > MOST:
            yield Problem(LIST, line, f"more than {MOST} modules", "Write a test file for one.")


def mirrored_path(module: Module) -> str:
    """Return where the tests of a module belong."""
    package, *rooms, name = module.name.split(".")
    return str(PurePosixPath("tests/unit", *_ROOMS[package], *rooms, f"test_{name}.py"))


def _has_behaviour(module: Module) -> bool:
    """Whether a function of a module decides something, or does it again and again."""
    if module.is_package:
        return False
    return any(
        isinstance(node, _DECISIONS)
        for function in ast.walk(module.syntax)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
    )


def _read(path: Path) -> dict[str, tuple[int, str, str]]:
    """Return the line, the test file and the reason of each module on the list."""
    found = {}
    for line, text in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if text and not text.startswith("#"):
            module, test, *why = text.split(maxsplit=2)
            found[module] = line, test, " ".join(why)
    return found
