"""SIGKILL of drivers while they write a stream of many micro-batches, at moments that are drawn.

Elsewhere the kills fall into a commit or a task; here they also fall between micro-batches, and
into what Spark itself writes to the checkpoint.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.kills.account import Account
from tests.kills.jobs import CONFIG, PARTITIONS, TOPIC, add_input, number_of
from tests.kills.spark_driver import LOCAL, Driver, Write
from tests.support.spark_session import require_java

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Counted

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

SEED = 20_261_122
MICRO_BATCHES_A_DRIVER = 7
MOST_SECONDS = 2.5
"""Between the first micro-batch that a driver commits and its end; all of them take longer."""


class StreamThatIsKilled:
    """A stream whose drivers are killed, one after the other.

    Parameters
    ----------
    root
        Gets the log directory, the input files and the checkpoint.
    """

    def __init__(self, root: Path) -> None:
        self._query = root / "query"
        pylog.create_topic(root / "logs", TOPIC, PARTITIONS, properties=CONFIG)
        self._account = Account(root / "logs")
        self._write = Write(str(root / "logs"), 0, str(self._query), files_per_trigger=1)
        self._waiting: set[int] = set()
        self._count = 0

    def add_input(self) -> None:
        """Add a file for each of some micro-batches."""
        for _ in range(MICRO_BATCHES_A_DRIVER):
            self._waiting.add(self._count)
            add_input(self._query, self._count)
            self._count += 1

    def run(self, driver: Driver, seconds: float | None) -> bool:
        """Stream; return whether the driver was killed so long after its first commit.

        Parameters
        ----------
        driver
            Runs the query.
        seconds
            None to let it come to its end.
        """
        waiting_at_first = len(self._waiting)
        deadline: float | None = None

        def look() -> None:
            nonlocal deadline
            self._look()
            if deadline is None and len(self._waiting) < waiting_at_first and seconds is not None:
                deadline = time.monotonic() + seconds
            if deadline is not None and time.monotonic() > deadline:
                driver.kill()

        answer = driver.write(self._write, look)
        assert answer in ("", None), answer
        self._look()
        return answer is None

    def check_at_the_end(self) -> None:
        """Check that everything is there once."""
        assert not self._waiting
        self._account.look()
        self._account.check_findings()

    def _look(self) -> None:
        """Read everything: each micro-batch is there as a whole or not at all."""
        found = self._account.values()
        for number in {number_of(value) for value in found} & self._waiting:
            self._account.add_job(number)
            self._waiting.remove(number)
        self._account.compare(found)


def test_drivers_that_are_killed_while_they_stream_lose_and_double_nothing(
    memory_path: Path,
    tmp_path: Path,
    spark_home: Path,
    kills: Callable[[int], int],
    counted: Counted,
) -> None:
    require_java()
    stream = StreamThatIsKilled(memory_path)
    seconds = random.Random(SEED)
    outcomes: Counter[str] = Counter()
    following = Driver(LOCAL, tmp_path / "driver-0", home=spark_home)
    for number in range(kills(3) + 1):
        driver, is_last = following, number == kills(3)
        if not is_last:  # it starts while this one is at work
            following = Driver(LOCAL, tmp_path / f"driver-{number + 1}", home=spark_home)
            stream.add_input()
        with driver, ExitStack() as on_failure:
            on_failure.callback(following.end)
            was_killed = stream.run(driver, None if is_last else seconds.uniform(0, MOST_SECONDS))
            outcomes["killed" if was_killed else "came to its end"] += 1
            if not is_last:
                on_failure.pop_all()
    stream.check_at_the_end()
    assert outcomes["killed"] > 0
    counted(f"drivers that stream, seed {SEED}", outcomes)
