"""SIGKILL of Spark's Python workers, executors, committing processes and drivers.

By turns a batch job, which is run again under its ``jobId``, and a stream, which is started again
from its checkpoint; all in the log directory of one real broker, which comes in between. Executors,
and the Python workers below them, are those of a standalone cluster.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.kills.broker_visits import BrokerVisits
from tests.kills.jobs import add_input
from tests.kills.kill_point import KillPoint, Victim
from tests.kills.spark_driver import LOCAL, Driver, Write
from tests.support.kafka_broker import KafkaBroker
from tests.support.memory_directory import memory_directory
from tests.support.spark_session import SPARK_CONF, require_java
from tests.support.standalone_cluster import StandaloneCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Counted

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.slow, pytest.mark.thorough]

SEED = 1_513
MICRO_BATCHES_A_QUERY = 25
"""Of those whose processes are killed; the ledger keeps the newest hundred of a query."""
DRIVERS_A_BROKER_VISIT = 7
_MOST_DRAWS = 10
_MOST_RERUNS = 20
ATTEMPTS = 4
"""Of a task, before Spark gives the job up."""
CONFIGURATION = SPARK_CONF / "standalone"
EXECUTOR_WAS_KILLED = "because it is EXITED"
"""What the master says of one whose end nobody has asked for."""


class Rounds:
    """Jobs and micro-batches, each of which is killed and then run again.

    Parameters
    ----------
    visits
        Of the broker whose log directory is written to.
    survivor
        The driver that lives on, and runs again what was killed.
    root
        Where streams have their files and checkpoints.
    """

    def __init__(self, visits: BrokerVisits, survivor: Driver, root: Path) -> None:
        self.visits = visits
        self.random = random.Random(SEED)
        self.outcomes: Counter[str] = Counter()
        self._account = visits.account
        self._survivor = survivor
        self._root = root
        self._note = root / "note"
        self._count = 0
        self._calls: dict[tuple[str, bool], int] = {}
        for step in ("write", "commit"):
            for is_large in (False, True):
                self._calls[step, is_large] = self._measure(step, is_large=is_large)

    def _new_write(self, *, is_stream: bool, is_large: bool) -> Write:
        """Return the next job; a stream has the files of one micro-batch more."""
        self._count += 1
        number = 2 * self._count + is_large
        directory = str(self._account.directory)
        if not is_stream:
            return Write(directory, number)
        query = self._root / f"query-{self._count // MICRO_BATCHES_A_QUERY}"
        add_input(query, number, files=2)
        return Write(directory, number, str(query))

    def _measure(self, step: str, *, is_large: bool) -> int:
        """Return how many calls a step makes at least."""
        write = self._new_write(is_stream=False, is_large=is_large)
        point = KillPoint(str(self._note), step, 0)
        assert self._survivor.write(replace(write, kill=point.to_json())) == ""
        calls = min(int(line.split()[1]) for line in point.lines())
        self._note.unlink()
        self._account.publish(write.number)
        return calls

    def run(
        self,
        step: str,
        victim: Victim,
        *,
        share: float | None = None,
        times: int = 1,
        driver: Driver | None = None,
        is_visited: bool = False,
    ) -> None:
        """Let one write be killed, look, and run it again.

        Parameters
        ----------
        step, victim, times
            See `KillPoint`.
        share
            How far the step has come, from 0 to 1; drawn if None.
        driver
            Who writes, and will be dead; by default the one that lives on.
        is_visited
            Whether the broker opens the directory before it is run again.
        """
        share = self.random.random() if share is None else share
        for _ in range(_MOST_DRAWS):
            is_stream, is_large = self._count % 2 == 1, self._count % 4 < 2
            write = self._new_write(is_stream=is_stream, is_large=is_large)
            call = 1 + int(share * self._calls[step, is_large])
            point = KillPoint(str(self._note), step, call, victim, times)
            where = f"seed {SEED}, job {write.number}, {victim} at call {call} of {step}"
            answer = (driver or self._survivor).write(
                replace(write, kill=point.to_json()), partial(self._account.look, write.number)
            )
            if point.lines():
                break
            # Partitions of rows without keys are drawn: there were fewer files, and fewer calls,
            # than when calls were counted. Nobody was killed, so this is not a round.
            assert answer == "", f"{where}: not reached; {answer}"
            self._account.publish(write.number)
            share *= 0.7
        else:
            pytest.fail(f"{where}: not reached")
        if driver is not None:
            driver.end()
        self._note.unlink()
        is_announced = self._account.is_announced
        seen = self._account.look(write.number)
        if answer == "" and not is_stream:
            assert seen == "whole", where
        self.outcomes[
            f"{'announced, ' if is_announced else ''}{seen} visible, {victim} in {step}"
        ] += 1
        if is_visited:
            self.visits.append()
            self._account.look(write.number)
        for _ in range(1 if is_stream else _MOST_RERUNS):
            error = self._survivor.write(write, lambda: self._account.look(write.number))
            assert error == "", f"{where}: {error}"
            if not self._account.staged_files():
                break  # else a task of the killed job was still at work: the next run sweeps it
        self._account.publish(write.number)


@pytest.fixture(scope="module")
def memory() -> Iterator[Path]:
    with memory_directory() as directory:
        yield directory


@pytest.fixture(scope="module")
def visits(
    kafka_is_here: None, memory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerVisits]:
    """Give a broker that is not running, and its log directory."""
    with KafkaBroker(tmp_path_factory.mktemp("broker"), log_dir=memory / "logs") as broker:
        yield BrokerVisits(broker)


@pytest.fixture(scope="module")
def cluster(
    spark_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StandaloneCluster]:
    """Give a master with two workers."""
    require_java()
    directory = tmp_path_factory.mktemp("cluster")
    with StandaloneCluster(directory, configuration=CONFIGURATION, home=spark_home) as running:
        yield running


@pytest.fixture(scope="module")
def rounds(
    cluster: StandaloneCluster, visits: BrokerVisits, memory: Path, spark_home: Path
) -> Iterator[Rounds]:
    root = memory / "rounds"
    root.mkdir()
    log = root / "survivor"
    with Driver(cluster.master_url, log, home=spark_home, configuration=CONFIGURATION) as survivor:
        yield Rounds(visits, survivor, root)
        survivor.stop()


def test_killed_python_workers(
    rounds: Rounds, kills: Callable[[int], int], counted: Counted
) -> None:
    for number in range(kills(6)):
        # Every fifth time all attempts are killed, so that Spark gives the write up.
        rounds.run("write", Victim.PROCESS, times=ATTEMPTS if number % 5 == 4 else 1)
    _count(rounds, counted)


def test_killed_executors(
    cluster: StandaloneCluster, rounds: Rounds, kills: Callable[[int], int], counted: Counted
) -> None:
    wanted = kills(20)
    before = cluster.log("master").count(EXECUTOR_WAS_KILLED)
    for number in range(wanted):
        rounds.run("write", Victim.JVM if number % 4 == 0 else Victim.EXECUTOR)
    assert cluster.log("master").count(EXECUTOR_WAS_KILLED) - before >= wanted
    _count(rounds, counted)


def test_processes_that_are_killed_in_a_commit_that_spark_then_aborts(
    rounds: Rounds, kills: Callable[[int], int], counted: Counted
) -> None:
    wanted = kills(5)
    for number in range(wanted):
        rounds.run("commit", Victim.PROCESS, share=(number + rounds.random.random()) / wanted)
    _count(rounds, counted)


def test_drivers_that_are_killed_at_each_step_of_a_commit(
    rounds: Rounds,
    tmp_path: Path,
    spark_home: Path,
    kills: Callable[[int], int],
    counted: Counted,
) -> None:
    wanted = kills(19)
    following = Driver(LOCAL, tmp_path / "driver-0", home=spark_home)
    for number in range(wanted):
        driver = following
        if number + 1 < wanted:  # it starts while this one is at work
            following = Driver(LOCAL, tmp_path / f"driver-{number + 1}", home=spark_home)
        with driver, ExitStack() as on_failure:
            on_failure.callback(following.end)
            rounds.run(
                "commit",
                Victim.JVM if number % 5 == 4 else Victim.DRIVER,
                share=(number + rounds.random.random()) / wanted,
                driver=driver,
                is_visited=number % DRIVERS_A_BROKER_VISIT == DRIVERS_A_BROKER_VISIT // 2,
            )
            on_failure.pop_all()
    _count(rounds, counted)


def test_in_the_end_everything_is_there_once_for_a_broker_too(rounds: Rounds) -> None:
    rounds.visits.account.check_at_the_end()
    rounds.visits.check_what_is_consumed()


def _count(rounds: Rounds, counted: Counted) -> None:
    counted(f"killed Spark writes, seed {SEED}", rounds.outcomes)
    rounds.outcomes.clear()
