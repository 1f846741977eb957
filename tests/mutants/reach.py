"""Which tests reach which line: a pytest plugin that measures it, and what it has measured.

``python -m pytest -p tests.mutants.reach -n 2 …`` writes a coverage file with a context a test, and
how long each test took. Workers of xdist write files of their own. Processes that tests start are
not measured.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import coverage
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "mutants"
PACKAGES = ("pylog", "pyspark_pylog", "pylog_jobs")


class _Measurement:
    """Measures one process; coverage's context is the test that runs."""

    def __init__(self) -> None:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        self._seconds_path = FOLDER / f"seconds-{worker}.json"
        self._coverage = coverage.Coverage(
            data_file=str(FOLDER / f"lines-{worker}"),
            source_pkgs=list(PACKAGES),
            omit=["*/kernels/*"],
            config_file=False,
        )
        self._seconds: dict[str, float] = {}
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        result = yield
        self._coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        before = self._seconds.get(report.nodeid, 0.0)
        self._seconds[report.nodeid] = before + report.duration

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        self._seconds_path.write_text(json.dumps(self._seconds), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Measure in each process that runs tests."""
    is_controller = config.getoption("numprocesses", default=None) and not hasattr(
        config, "workerinput"
    )
    if not is_controller:
        FOLDER.mkdir(parents=True, exist_ok=True)
        config.pluginmanager.register(_Measurement(), "reach")


class Reach(NamedTuple):
    """What has been measured.

    Attributes
    ----------
    tests
        Of each line of each file, by its path below `ROOT`, the tests that reach it.
    seconds
        How long each test took.
    """

    tests: dict[str, dict[int, frozenset[str]]]
    seconds: dict[str, float]

    def of_line(self, path: str, line: int) -> list[str]:
        """Return the tests that reach a line, those most likely to notice a change first.

        Of a line that is executed once, at import, the tests that reach the file; all tests if the
        file has no other lines.
        """
        lines = self.tests.get(path, {})
        found = lines.get(line) or frozenset[str]().union(*lines.values()) or self.seconds.keys()
        stem = f"test_{Path(path).stem}"
        return sorted(found, key=lambda test: (stem not in test, self.seconds.get(test, 0.0)))


def read_reach(files: Sequence[Path]) -> Reach:
    """Return what the last measurement found about these files."""
    tests: dict[str, dict[int, set[str]]] = {}
    seconds: dict[str, float] = {}
    for each in FOLDER.glob("seconds-*.json"):
        seconds.update(json.loads(each.read_text("utf-8")))
    for each in FOLDER.glob("lines-*"):
        data = coverage.CoverageData(str(each))
        data.read()
        for path in files:
            for line, contexts in data.contexts_by_lineno(str(path)).items():
                reached = tests.setdefault(str(path.relative_to(ROOT)), {})
                reached.setdefault(line, set()).update(filter(None, contexts))
    frozen = {
        path: {line: frozenset(names) for line, names in lines.items() if names}
        for path, lines in tests.items()
    }
    return Reach(frozen, seconds)
