"""What every test has: a hypothesis profile, and golden data that nothing may write to."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pytest
from hypothesis import settings

from tests.support.golden import GoldenRoot
from tests.support.memory_directory import memory_directory
from tests.support.short_lived_java import SHORT_LIVED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_COUNTED = "counted"
PROFILE_VARIABLE = "HYPOTHESIS_PROFILE"
NUMBA_IS_OFF = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"

# No deadlines: the first call of a kernel compiles it.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("nightly", deadline=None, max_examples=2_000, print_blob=True)
# For `make test-fast`, where each property has a few cases, other ones each time.
settings.register_profile("fast", deadline=None, max_examples=25)
# For kernels that are not compiled, and for the modes that a test runs in a process of its own.
settings.register_profile(
    "few", deadline=None, max_examples=20, derandomize=True, database=None, print_blob=True
)


def _profile_name() -> str:
    by_default = "few" if NUMBA_IS_OFF else "ci" if os.environ.get("CI") else "dev"
    return os.environ.get(PROFILE_VARIABLE) or by_default


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--soak",
        type=int,
        default=0,
        metavar="N",
        help="how many: cases of a property, kills, or seconds of the stream beside a broker",
    )


@pytest.hookimpl(tryfirst=True)  # hypothesis reads the seed in its own pytest_configure
def pytest_configure(config: pytest.Config) -> None:
    name = config.option.hypothesis_profile or _profile_name()
    settings.load_profile(name)
    if config.option.hypothesis_seed is None and not settings.get_profile(name).derandomize:
        config.option.hypothesis_seed = str(random.randrange(2**32))
    # Of each Spark that a test starts, in its own process or in another one.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(SHORT_LIVED))
    if NUMBA_IS_OFF:
        # Compiled kernels wrap in silence, as Java does; NumPy's own integers say so.
        np.seterr(over="ignore")
    # One line a skipped test, with its name; folded, a file's skips are a number.
    config.option.fold_skipped = False


def pytest_report_header(config: pytest.Config) -> str:
    seed = config.option.hypothesis_seed
    how = f"--hypothesis-seed={seed}" if seed is not None else "derandomized"
    return f"hypothesis: {settings.get_current_profile_name()} {how}"


class Counted(Protocol):
    """The fixture `counted`."""

    def __call__(self, what: str, outcomes: Mapping[str, int]) -> None:
        """Add to the counts that are printed after the tests."""


@pytest.fixture
def counted(record_property: Callable[[str, object], None]) -> Counted:
    """Count what a test tried; the sums over all tests are printed at the end."""

    def count(what: str, outcomes: Mapping[str, int]) -> None:
        for outcome, number in outcomes.items():
            record_property(_COUNTED, (what, outcome, number))

    return count


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    sums: Counter[tuple[str, str]] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, entry in getattr(report, "user_properties", ()):
                if name == _COUNTED and report.when == "call":
                    what, outcome, number = entry
                    sums[what, outcome] += number
    if sums:
        terminalreporter.section("counted")
        for (what, outcome), number in sorted(sums.items()):
            terminalreporter.line(f"{what}: {number:,} {outcome}")


@pytest.fixture(scope="session")
def golden_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoldenRoot]:
    """Give the golden cases, each unpacked at its first use."""
    directory = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        directory = directory.parent  # the workers share one
    root = GoldenRoot(directory / "golden")
    yield root
    # Once more, of all cases: a fixture of a wider scope than a test's may have held one.
    _fail_if_changed(root.changes(of_all_ever_used=True), "by some test of this session")


@pytest.fixture(autouse=True)
def golden_data_is_only_read(golden_root: GoldenRoot) -> Iterator[None]:
    """Fail a test after which a golden case it used is not what it was: we only read."""
    golden_root.begin_watching()
    yield
    _fail_if_changed(golden_root.changes(), "by this test, or by one before or beside it")


def _fail_if_changed(changes: list[str], by: str) -> None:
    if changes:
        pytest.fail(f"golden data was written to, {by}:\n  " + "\n  ".join(changes), pytrace=False)


@pytest.fixture(autouse=True)
def nobody_else_writes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Save the waits by which a reader tells what others are just changing.

    Most tests read a directory at once after they have made it: a reader waits a step of the file
    system's clock then, and a moment before it takes a last batch for damaged. These waits were a
    quarter of the time of many tests. Where a broker or Spark writes meanwhile, they are needed.
    """
    if any(map(request.node.get_closest_marker, ("broker", "spark"))):
        return
    clock = SimpleNamespace(time_ns=time.time_ns, sleep=lambda seconds: None)
    monkeypatch.setattr("pylog.files.storage.time", clock)
    monkeypatch.setattr("pylog.reading.log_end.time", clock)


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """Give a `memory_directory`."""
    with memory_directory() as directory:
        yield directory
