"""What type checkers see of the public names: a file beside each list of them.

The lists are loaded by name when they are used, which no type checker follows.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylog.lazy_modules import LazyNames

NAMESPACES = {
    "pylog": "storage_core/pylog/__init__.pyi",
    "pylog.jobs": "storage_core/pylog/jobs.pyi",
    "pylog.logs": "storage_core/pylog/logs.pyi",
    "pylog.results": "storage_core/pylog/results.pyi",
}


def stubs() -> dict[str, str]:
    """Return each file's text by its path."""
    return {path: _stub(namespace) for namespace, path in NAMESPACES.items()}


def _stub(namespace: str) -> str:
    names: LazyNames = importlib.import_module(namespace)._PUBLIC
    lines = [f"from {names.module_of(each)} import {each} as {each}" for each in names.names]
    lines += [f"from {namespace} import {each} as {each}" for each in names.modules]
    head = f"# Made by make import-graph from the list in {namespace}."
    loader = "from pylog.lazy_modules import LazyNames"
    ends = ["", "__all__: list[str]", "_PUBLIC: LazyNames"]
    if namespace == "pylog":
        ends.append("__version__: str")
    return "\n".join([head, "", loader, *sorted(lines), *ends, ""])
