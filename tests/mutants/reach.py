"""Which tests reach which suite: a pytest plugin that measures it, and what it has measured.

A suite is the block of a function, branch, loop or handler. The plugin puts a mark at the start of
each suite of the packages when they are imported; a test reaches those whose mark it sets. That
costs a run little, where a tracer of lines makes it many times slower. Each process writes a file
of its own; those that tests start are not measured. Nor are tests of Spark: its workers would be
given functions with marks, which they do not know.
"""

from __future__ import annotations

import ast
import builtins
import importlib.abc
import importlib.machinery
import json
import os
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType

    from numpy.typing import NDArray

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "mutants"
PACKAGE_FOLDERS = ("storage_core", "connector", "jobs")
_PACKAGES = ("pylog", "pyspark_pylog", "pylog_jobs")
_MARKS = "__marks_of_suites__"


def source_files() -> list[Path]:
    """Return the modules of the packages but the kernels, which run compiled."""
    return sorted(
        path
        for folder in PACKAGE_FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if "kernels" not in path.parts
    )


def _suites(tree: ast.Module) -> list[list[ast.stmt]]:
    """Return the suites of a module but its own and those of classes, which run at import."""
    blocks = (
        getattr(node, field, None)
        for node in ast.walk(tree)
        if not isinstance(node, (ast.Module, ast.ClassDef))
        for field in ("body", "orelse", "finalbody")
    )
    return [block for block in blocks if isinstance(block, list) and block]


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


class MeasureAnewError(RuntimeError):
    """What was measured is not about this code or these tests."""


class Suites:
    """The suites of all files, numbered.

    Attributes
    ----------
    count
        How many there are.
    checksum
        Of the files that they are in.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._lines: dict[str, list[tuple[int, int]]] = {}
        self._starts: dict[str, int] = {}
        self.count = 0
        self.checksum = 0
        for path in files:
            source = path.read_bytes()
            self.checksum = zlib.crc32(source, self.checksum)
            suites = _suites(ast.parse(source))
            self._starts[str(path)] = self.count
            self._lines[str(path)] = [
                (suite[0].lineno, suite[-1].end_lineno or suite[-1].lineno) for suite in suites
            ]
            self.count += len(suites)

    def marked(self, path: str, source: bytes) -> ast.Module:
        """Return a module that sets the mark of each suite that it reaches."""
        tree = ast.parse(source, path)
        for number, suite in enumerate(_suites(tree), self._starts[path]):
            mark = ast.parse(f"{_MARKS}[{number}] = 1").body[0]
            for node in ast.walk(mark):
                ast.copy_location(node, suite[0])
            suite.insert(1 if _is_docstring(suite[0]) else 0, mark)
        return tree

    def of_line(self, path: str, line: int) -> list[int]:
        """Return the innermost suite of a line; all of the file's for one that runs at import."""
        start = self._starts[path]
        around = [
            (last - first, start + index)
            for index, (first, last) in enumerate(self._lines[path])
            if first <= line <= last
        ]
        everything = range(start, start + len(self._lines[path]))
        return [min(around)[1]] if around else list(everything)


class _MarkingLoader(importlib.machinery.SourceFileLoader):
    """Compiles a module with marks, whatever compiled form is kept."""

    suites: Suites

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return compile(self.suites.marked(path, self.get_data(path)), path, "exec")


class _MarkingFinder(importlib.abc.MetaPathFinder):
    """Finds the packages' modules as usual, and gives them the loader that marks."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = {str(path) for path in files}
        _MarkingLoader.suites = Suites(files)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: object = None
    ) -> ModuleSpec | None:
        del target
        if fullname.partition(".")[0] not in _PACKAGES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin in self._files:
            spec.loader = _MarkingLoader(fullname, spec.origin)
        return spec


class _Measurement:
    """Notes the marks of each test that this process runs."""

    def __init__(self, marks: bytearray) -> None:
        self._path = FOLDER / f"reach-{os.getpid()}"
        self._marks = marks
        self._seconds: dict[str, float] = {}
        self._reached: dict[str, NDArray[np.uint8]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._marks[:] = bytes(len(self._marks))
        result = yield
        self._reached[item.nodeid] = np.packbits(np.frombuffer(self._marks, np.uint8))
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        before = self._seconds.get(report.nodeid, 0.0)
        self._seconds[report.nodeid] = before + report.duration

    def pytest_sessionfinish(self) -> None:
        np.save(self._path.with_suffix(".npy"), np.array([*self._reached.values()], np.uint8))
        about = {
            "checksum": _MarkingLoader.suites.checksum,
            "seconds": {test: self._seconds.get(test, 0.0) for test in self._reached},
        }
        self._path.with_suffix(".json").write_text(json.dumps(about), encoding="utf-8")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Measure in each process that runs tests, from before anything imports the packages."""
    options = early_config.known_args_namespace
    if getattr(options, "numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ:
        return
    if any(package in sys.modules for package in _PACKAGES):
        raise pytest.UsageError("the packages have been imported before they could be marked")
    FOLDER.mkdir(parents=True, exist_ok=True)
    sys.meta_path.insert(0, _MarkingFinder(source_files()))
    marks = bytearray(_MarkingLoader.suites.count)
    setattr(builtins, _MARKS, marks)
    early_config.pluginmanager.register(_Measurement(marks), "reach")


class Reach(NamedTuple):
    """What has been measured.

    Attributes
    ----------
    suites
        Those of the packages as they are.
    tests
        The names of the tests.
    seconds
        How long each test took.
    marks
        Of each test, one bit for each suite.
    """

    suites: Suites
    tests: list[str]
    seconds: dict[str, float]
    marks: NDArray[np.uint8]

    def of_line(self, path: str, line: int) -> list[str]:
        """Return the tests that reach a line, those most likely to notice a change first.

        Of a line that is executed once, at import, the tests that reach the file.
        """
        reached = np.zeros(len(self.tests), np.bool_)
        for suite in self.suites.of_line(str(ROOT / path), line):
            reached |= (self.marks[:, suite // 8] >> (7 - suite % 8)) & 1 == 1
        found = {self.tests[index] for index in np.flatnonzero(reached)}
        room, stem = Path(path).parent.name, f"test_{Path(path).stem}"
        return sorted(
            found,
            key=lambda test: (
                f"{stem}.py" not in test,
                f"/{room}/" not in test,
                self.seconds[test],
                test,
            ),
        )


def read_reach() -> Reach:
    """Return what the last measurement found."""
    suites = Suites(source_files())
    tests: list[str] = []
    seconds: dict[str, float] = {}
    marks = []
    for each in sorted(FOLDER.glob("reach-*.json")):
        about = json.loads(each.read_text("utf-8"))
        if about["checksum"] != suites.checksum:
            raise MeasureAnewError("code has changed since it was measured what tests reach")
        tests.extend(about["seconds"])
        seconds.update(about["seconds"])
        marks.append(np.load(each.with_suffix(".npy")))
    return Reach(suites, tests, seconds, np.concatenate(marks))
