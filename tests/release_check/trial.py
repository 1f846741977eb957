"""What is tried in an environment that has nothing but the wheel and what it needs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.release_check.problem import StepFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.release_check.fresh_environment import FreshEnvironment

TOPIC = "orders"
_DISTRIBUTIONS = "from importlib import metadata; print(*metadata.packages_distributions())"
_VERSIONS = "import pylog; pylog.show_versions()"


def steps(
    environment: FreshEnvironment, logs: Path, version: str
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield each thing that is tried: what it is, and what raises `StepFailedError` if it fails.

    Parameters
    ----------
    environment
        The wheel is installed there.
    logs
        A log directory of a broker that has a topic ``orders``, with what Kafka's consumer said of
        it in ``expected.orders-<partition>.uncommitted.jsonl``.
    version
        Of the wheel.
    """
    run = environment.run

    def version_of(*program: str) -> Callable[[], None]:
        return lambda: expect(run(*program, "--version"), f"pylog {version}\n")

    def listing() -> None:
        expect(TOPIC in run("pylog", "ls", str(logs)), expected=True)
        document = json.loads(run("pylog", "ls", "--json", str(logs)))
        expect(next(iter(document)), "schemaVersion")

    def records() -> None:
        found = len(run("pylog", "cat", str(logs), "--topic", TOPIC).splitlines())
        expect(found, expected_records(logs))

    def versions() -> None:
        line = run("python", "-c", _VERSIONS).splitlines()[0]
        expect(f" {version} ({environment.prefix}" in line, expected=True)

    def manual() -> None:
        page = environment.prefix / "share" / "man" / "man1" / "pylog.1"
        expect(page.is_file(), expected=True)

    def samples() -> None:
        expect("Try:" in run("pylog", "demo", str(logs.parent / "samples")), expected=True)

    def demo() -> None:
        expect(TOPIC in run("python", "-m", "pylog_jobs.demo", str(logs)), expected=True)

    before = environment.installed()

    def no_compiler() -> None:
        there = set(run("python", "-c", _DISTRIBUTIONS).split())
        expect(there & {"numba", "llvmlite", "ziglang"}, set())

    def nothing_written() -> None:
        expect([str(path) for path in environment.home.rglob("*")], [])
        expect(environment.installed(), before)

    yield "neither Numba nor LLVM is there", no_compiler
    yield "pylog --version", version_of("pylog")
    yield "python -m pylog --version", version_of("python", "-m", "pylog")
    yield "pylog.show_versions(), from the environment", versions
    yield "the manual page", manual
    yield "pylog ls", listing
    yield "pylog cat: as many records as Kafka's consumer got", records
    yield "pylog demo", samples
    yield "python -m pylog_jobs.demo, with Spark", demo
    yield "nothing in the home directory or beside the packages was written", nothing_written


def expected_records(logs: Path) -> int:
    """Return how many records Kafka's consumer got of the topic."""
    files = logs.glob(f"expected.{TOPIC}-*.uncommitted.jsonl")
    return sum(len(file.read_bytes().splitlines()) for file in files)


def expect(found: object, expected: object) -> None:
    """Raise `StepFailedError` unless both are the same."""
    if found != expected:
        msg = f"found {found!r}, expected {expected!r}"
        raise StepFailedError(msg)
