"""``python -m tests.mutants``: small changes of the code that no test notices.

A random sample of the mutants that `tests.mutants.operators` finds outside the kernels, the same
for the same seed. Each is tried on a copy of the packages with the tests that reach it, those of
its module and its room first, until one fails. Which tests these are is measured first
(``--measure``; once, and after changes of code or tests). Results are kept in ``build/mutants``, so
a run that is stopped goes on where it was; ``--again --seconds 300`` gives those that were not
caught more tests.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.mutants.operators import Mutant, is_change, possible_mutants
from tests.mutants.reach import (
    FOLDER,
    PACKAGE_FOLDERS,
    ROOT,
    MeasureAnewError,
    Reach,
    read_reach,
    source_files,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

KERNELS_FOLDER = "build/kernels"
_MEASURED = "not spark and not broker and not fuzz and not slow"
_START_SECONDS = 60.0
_PATIENCE = 6.0
_SECONDS_OF_FILE = 100.0
CAUGHT, TIMED_OUT, SURVIVED, NOT_REACHED = "caught", "timed out", "survived", "not reached"
NOT_COLLECTED = "not collected"


class Place(NamedTuple):
    """A mutant and the file it is in, by its path below the project."""

    path: str
    mutant: Mutant

    @property
    def key(self) -> str:
        """What the kept results call it."""
        return f"{self.path}:{self.mutant.line}:{self.mutant.start}:{self.mutant.text}"

    def diff(self) -> str:
        """Return the changed line, before and after."""
        source = (ROOT / self.path).read_bytes()
        before = source.decode().splitlines()[self.mutant.line - 1].strip()
        after = self.mutant.applied(source).decode().splitlines()[self.mutant.line - 1].strip()
        return f"{self.path}:{self.mutant.line}\n    - {before}\n    + {after}"


def sample(files: Sequence[Path], count: int, seed: int) -> list[Place]:
    """Return ``count`` random mutants."""
    places = [
        Place(str(path.relative_to(ROOT)), mutant)
        for path in files
        for mutant in possible_mutants(path.read_bytes())
    ]
    random.Random(seed).shuffle(places)
    changes = (each for each in places if is_change((ROOT / each.path).read_bytes(), each.mutant))
    return list(itertools.islice(changes, count))


def measure(paths: Sequence[str]) -> None:
    """Note what each test reaches: of all but slow ones and those of Spark and brokers, or some."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.reach"]
    if not paths:
        shutil.rmtree(FOLDER, ignore_errors=True)
        command += ["-n", "2", "-m", _MEASURED]
    done = subprocess.run([*command, *paths], cwd=ROOT, check=False)
    if done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise MeasureAnewError(f"the tests ended with {done.returncode}")


class Trial:
    """A copy of the packages in which mutants are tried, one after the other."""

    def __init__(self, number: int, reach: Reach, most_seconds: float) -> None:
        self._folder = FOLDER / f"copy-{number}"
        self._reach = reach
        self._most_seconds = most_seconds
        shutil.rmtree(self._folder, ignore_errors=True)
        unused = shutil.ignore_patterns("__pycache__")
        for folder in PACKAGE_FOLDERS:
            shutil.copytree(ROOT / folder, self._folder / folder, ignore=unused)
        kernels = ROOT / KERNELS_FOLDER
        if kernels.is_dir():  # compiling them takes a minute
            shutil.copytree(kernels, self._folder / KERNELS_FOLDER)

    def result(self, place: Place) -> str:
        """Return what the tests make of a mutant."""
        tests: list[str] = []
        expected = 0.0
        for test in self._reach.of_line(place.path, place.mutant.line):
            expected += self._reach.seconds.get(test, 0.0)
            if tests and expected > self._most_seconds:
                break
            tests.append(test)
        if not tests:  # what runs in processes that tests start, as Spark's workers
            named = sorted((ROOT / "tests").rglob(f"test_{Path(place.path).stem}.py"))
            tests, expected = list(map(str, named)), _SECONDS_OF_FILE
        if not tests:
            return NOT_REACHED
        target = self._folder / place.path
        source = target.read_bytes()
        target.write_bytes(place.mutant.applied(source))
        try:
            result = self._run(tests, expected)
            if result == TIMED_OUT:
                # Once more: the first time may have gone by while kernels were compiled.
                result = self._run(tests, expected)
        finally:
            target.write_bytes(source)
        if result != NOT_COLLECTED:
            return result
        if self._run(tests, expected, "--collect-only") == NOT_COLLECTED:
            raise MeasureAnewError("a test that was measured is not there any more")
        return CAUGHT  # nothing could be imported with it

    def _run(self, tests: list[str], expected: float, *options: str) -> str:
        arguments = self._folder / "tests.txt"
        arguments.write_text("\n".join(tests), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        paths = [str(self._folder / folder) for folder in PACKAGE_FOLDERS]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HYPOTHESIS_PROFILE": "ci",
        }
        try:
            done = subprocess.run(
                [*command, *options, f"--basetemp={self._folder / 'temporary'}", f"@{arguments}"],
                cwd=ROOT,
                env=environment,
                check=False,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_START_SECONDS + _PATIENCE * expected,
            )
        except subprocess.TimeoutExpired:
            return TIMED_OUT  # a loop that does not end, or a machine that is busy
        if done.returncode in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
            return NOT_COLLECTED
        return SURVIVED if done.returncode == pytest.ExitCode.OK else CAUGHT


def _work(trial: Trial, places: queue.SimpleQueue[Place], results: dict[str, str]) -> None:
    while True:
        try:
            place = places.get_nowait()
        except queue.Empty:
            return
        started = time.monotonic()
        result = trial.result(place)
        results[place.key] = result
        with (FOLDER / "results.jsonl").open("a", encoding="utf-8") as kept:
            kept.write(json.dumps([place.key, result]) + "\n")
        seconds = time.monotonic() - started
        sys.stderr.write(f"{len(results)}: {result} in {seconds:.0f} s: {place.diff()}\n")


def _kept_results() -> dict[str, str]:
    path = FOLDER / "results.jsonl"
    if not path.exists():
        return {}
    return dict(json.loads(line) for line in path.read_text("utf-8").splitlines())


def main() -> int:
    """Try mutants and print those that no test noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="default 300")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    parser.add_argument("--jobs", type=int, default=2, help="default 2")
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="of tests tried on a mutant; default 30"
    )
    parser.add_argument("--again", action="store_true", help="try those not caught once more")
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="of the file's path")
    parser.add_argument(
        "--measure",
        nargs="*",
        metavar="TESTS",
        help="measure anew what tests reach; with paths, of these in addition",
    )
    arguments = parser.parse_args()
    if arguments.measure is not None or not list(FOLDER.glob("reach-*.npy")):
        measure(arguments.measure or ())
    files = [path for path in source_files() if arguments.only in str(path)]
    reach = read_reach()
    places = sample(files, arguments.count, arguments.seed)
    kept = _kept_results()
    if arguments.again:
        kept = {key: result for key, result in kept.items() if result == CAUGHT}
    results = {place.key: kept[place.key] for place in places if place.key in kept}
    waiting: queue.SimpleQueue[Place] = queue.SimpleQueue()
    for place in places:
        if place.key not in results:
            waiting.put(place)
    threads = [
        threading.Thread(target=_work, args=(trial, waiting, results))
        for trial in [Trial(number, reach, arguments.seconds) for number in range(arguments.jobs)]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place in places:
        if results[place.key] != CAUGHT:
            sys.stdout.write(f"{results[place.key]}: {place.diff()}\n")
    counts = ", ".join(f"{number} {what}" for what, number in Counter(results.values()).items())
    sys.stdout.write(f"seed {arguments.seed}, {len(places)} mutants: {counts}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
