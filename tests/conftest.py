"""What every test has: a hypothesis profile, and golden data that nothing may write to."""

from __future__ import annotations

import os
import random
import time
import zlib
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from tests.support.golden import GoldenRoot
from tests.support.memory_directory import memory_directory
from tests.support.short_lived_java import SHORT_LIVED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

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
    parser.addoption("--all", action="store_true", help="what is marked thorough, too")
    parser.addoption("--part", metavar="K/N", help="the K-th of N parts of all tests, such as 1/3")


_TESTS = Path(__file__).parent
_WITH_SERVERS = [
    *(_TESTS / each for each in ("broker", "cookbook", "differential", "e2e", "interop", "kills")),
    *(_TESTS / each for each in ("notebooks", "spark", "unit/connector", "unit/jobs")),
]
"""Folders of tests that need Spark or a broker."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Look nowhere else for such tests: to collect all others takes longer than some of them."""
    if config.option.markexpr != "spark or broker":
        return None
    found = collection_path
    is_there = any(
        found.is_relative_to(each) or each.is_relative_to(found) for each in _WITH_SERVERS
    )
    return None if is_there else True


def _needs_server(item: pytest.Item) -> bool:
    if not any(map(item.get_closest_marker, ("broker", "spark"))):
        return False
    if not any(map(item.path.is_relative_to, _WITH_SERVERS)):
        folders = ", ".join(str(each.relative_to(_TESTS)) for each in _WITH_SERVERS)
        raise pytest.UsageError(
            f"{item.nodeid} needs Spark or a broker, and is in none of {folders}"
        )
    return True


_WITH_MANY_STARTS = {"tests/broker/test_starts.py": 3, "tests/broker/test_start_states.py": 3}
"""Files whose every case starts a broker, and into how many units those of a version are dealt."""


def _unit(nodeid: str) -> str:
    """Return what is dealt as one where Spark or a broker is started: what tests share is dear.

    That is a file; of one whose every case starts a broker a part of those of a version.
    """
    file, _, test = nodeid.partition("::")
    if file not in _WITH_MANY_STARTS:
        return file
    version = test.partition("[")[2].partition("-")[0]
    return f"{file} {version} {zlib.crc32(nodeid.encode()) % _WITH_MANY_STARTS[file]}"


class _UnitScheduling(LoadFileScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        return _unit(nodeid)


@pytest.hookimpl(optionalhook=True)  # some processes of tests do without xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:  # noqa: ANN401 - of xdist, private
    """Return who deals tests to processes; with another ``--dist`` the one of xdist."""
    return _UnitScheduling(config, log) if config.option.dist == "loadfile" else None


def _in_part(text: str, items: list[pytest.Item], dear: list[pytest.Item]) -> list[pytest.Item]:
    """Return the K-th of N parts, such as 1/3; all parts together have each test once."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        message = f"--part {text}: expected such as 1/3"
        raise pytest.UsageError(message)
    units = sorted({_unit(each.nodeid) for each in dear})
    dealt = {unit: index for index, unit in enumerate(units)}
    at = {id(each): dealt[_unit(each.nodeid)] for each in dear}
    return [
        each
        for each in items
        if at.get(id(each), zlib.crc32(each.nodeid.encode())) % int(count) == int(number) - 1
    ]


def _is_chosen(item: pytest.Item, seen: Counter[str], *, is_all: bool) -> bool:
    """Say whether a test runs without ``--soak``: unmarked ones, and one in so many cases.

    With ``--all`` each one runs that is not marked to be one of many then, too.
    """
    marks = list(item.iter_markers("thorough"))
    if is_all:
        one_in = [mark.kwargs.get("of_all", 1) for mark in marks]
    elif any("one_in" not in mark.kwargs for mark in marks):
        return False
    else:
        one_in = [mark.kwargs["one_in"] for mark in marks]
    name = item.nodeid.partition("[")[0]
    seen[name] += 1
    return all((seen[name] - 1) % each == 0 for each in one_in)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = items[:]
    dear = [each for each in items if _needs_server(each)]
    if not config.getoption("--soak"):
        seen: Counter[str] = Counter()
        is_all = config.getoption("--all")
        chosen = [each for each in chosen if _is_chosen(each, seen, is_all=is_all)]
    if text := config.getoption("--part"):
        chosen = _in_part(text, chosen, dear)
    if len(chosen) < len(items):
        left_out = set(map(id, items)) - set(map(id, chosen))
        config.hook.pytest_deselected(items=[each for each in items if id(each) in left_out])
        items[:] = chosen


@pytest.hookimpl(tryfirst=True)  # hypothesis reads the seed in its own pytest_configure
def pytest_configure(config: pytest.Config) -> None:
    name = config.option.hypothesis_profile or _profile_name()
    settings.load_profile(name)
    if name in {"dev", "ci"} and not (config.option.all or config.option.soak):
        settings.register_profile(f"{name}, some", settings.get_profile(name), max_examples=40)
        settings.load_profile(f"{name}, some")
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


class HowMany(Protocol):
    """The fixture `how_many`."""

    def __call__(self, few: int, all_of_them: int) -> int:
        """Return the second number with ``--all``, else the first one."""


@pytest.fixture(scope="session")
def how_many(pytestconfig: pytest.Config) -> HowMany:
    """Choose how many random cases a test tries; ``--soak`` says it for those that ask it."""
    is_all = pytestconfig.getoption("--all")
    soak: int = pytestconfig.getoption("--soak")
    return lambda few, all_of_them: soak or (all_of_them if is_all else few)


class SomeOf(Protocol):
    """The fixture `some_of`."""

    def __call__(self, points: Sequence[int], *, one_in: int) -> Sequence[int]:
        """Return all points with ``--all``, else the first, the last and one in so many."""


@pytest.fixture(scope="session")
def some_of(pytestconfig: pytest.Config) -> SomeOf:
    """Choose the points at which a test lets a machine or a disk fail."""

    def choose(points: Sequence[int], *, one_in: int) -> Sequence[int]:
        if pytestconfig.getoption("--all"):
            return points
        return sorted({*points[::one_in], *points[-1:]})

    return choose


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
