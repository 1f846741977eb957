"""SIGKILL of a process that commits, at any moment: its job is written once, as a whole."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.crash.commit_worker import TASKS, job_in, rows_of, stage
from tests.crash.job_script import append_as_a_broker, leftovers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Counted, HowMany

ROUNDS = 40
"""How many processes are killed; ``--soak`` asks for more."""

UNDISTURBED = 2
"""How many commits come before, to know how long one takes."""

CORRECTIONS = {"not begun": 1.3, "announced": 1.0, "whole": 0.9}
"""Of the longest delay, after a kill that came too early or too late: machines have other work."""

SEED = 20_261_122
PROJECT = Path(__file__).parents[2]


class Worker:
    """The process that forks those that are killed."""

    def __init__(self, directory: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.commit_worker", str(directory)],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, number: int, delay: float | None) -> float:
        """Commit a job, and kill who does it after a delay; return how long it took."""
        self._say(str(number))
        process_id = int(self._line())
        begun = time.monotonic()
        if delay is not None:
            time.sleep(delay)
            os.kill(process_id, signal.SIGKILL)
        self._say("")
        assert self._line() == "ended"
        return time.monotonic() - begun

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture
def worker(memory_path: Path) -> Iterator[Worker]:
    (memory_path / "logs").mkdir()
    worker = Worker(memory_path / "logs")
    yield worker
    worker.close()


def values_of(number: int) -> Counter[str]:
    return Counter(row[2] for task in range(TASKS) for row in rows_of(number, task))


def visible(directory: Path) -> dict[int, Counter[str]]:
    """Return what a reader finds, by job; -1 stands for others."""
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for value in pylog.scan(directory, columns=["value"]).to_table()["value"].to_pylist():
        text = value.decode()
        found[int(text.split()[1]) if text.startswith("job ") else -1][text] += 1
    return found


@pytest.mark.slow
def test_a_killed_commit_leaves_its_job_whole_or_not_at_all_and_it_is_written_once(
    worker: Worker, memory_path: Path, counted: Counted, how_many: HowMany
) -> None:
    rounds = how_many(15, ROUNDS)
    directory = memory_path / "logs"
    random_source = random.Random(SEED)
    outcomes: Counter[str] = Counter()
    longest = min(worker.run(number, None) for number in range(UNDISTURBED))
    brokers = 0
    for number in range(UNDISTURBED, UNDISTURBED + rounds):
        worker.run(number, random_source.uniform(0, longest))
        is_announced = (directory / ".pylog-manifest").exists()
        found = visible(directory)
        assert found[number] in (Counter(), values_of(number)), number
        outcome = "whole" if found[number] else "announced" if is_announced else "not begun"
        outcomes[outcome] += 1
        longest *= CORRECTIONS[outcome]
        if number % 3 == 0:
            append_as_a_broker(directory)
            brokers += 1
        job = job_in(directory, number)
        job.abort([None] * TASKS)
        summary = job.commit(stage(job, number))
        assert summary.already_committed == (is_announced or bool(found[number])), number
        found = visible(directory)
        assert found.pop(number) == values_of(number), number
        assert leftovers(directory) == []
    found = visible(directory)
    broker = found.pop(-1, Counter())
    assert found == {number: values_of(number) for number in range(UNDISTURBED + rounds)}
    assert sum(broker.values()) >= brokers
    findings = pylog.read_table(directory, "findings").to_pylist()
    assert not [each for each in findings if each["severity"] != "info"]
    counted("killed commits", dict(outcomes))
