"""SIGKILL of processes that stage and commit jobs, at system calls that a seed draws; no Spark.

One job may be killed several times, also while it is completed by its rerun or by another opener.
"""

from __future__ import annotations

import random
import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.kills.account import Account
from tests.kills.broker_visits import BrokerVisits
from tests.kills.job_server import JobServer, Request, job_of
from tests.kills.jobs import PARTITIONS, TOPIC
from tests.kills.kill_point import KillPoint
from tests.support.kafka_broker_jars import LAST_VERSION_3
from tests.support.kafka_broker_tools import dump_log_segments, segment_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.broker.conftest import NewBroker
    from tests.conftest import Counted

SEED = 1_512
KILLS_A_BROKER_VISIT = 20


class Rounds:
    """Jobs one after the other, each killed until it gets through.

    Parameters
    ----------
    account
        Of the log directory.
    root
        Where notes are kept.
    visits
        Of a broker, now and then; None without one, where jobs make topics, too.
    """

    def __init__(self, account: Account, root: Path, visits: BrokerVisits | None = None) -> None:
        self._account = account
        self._note = root / "note"
        self._visits = visits
        self._random = random.Random(SEED)
        self._calls: dict[bool, int] = {}
        self.outcomes: Counter[str] = Counter()
        self.kills = 0

    def run(self, wanted: int) -> None:
        """Run jobs until so many processes were killed."""
        with JobServer(self._account.directory) as server:
            for number in range(2):
                self._measure(server, number)
            number = 1
            while self.kills < wanted:
                number += 1
                self._run_job(server, number)
                self._account.publish(number)

    def _measure(self, server: JobServer, number: int) -> None:
        """Run a job to its end, and count the calls of one with few rows, or with many."""
        point = KillPoint(str(self._note), "job", 0)
        assert server.run(self._request(number, point)) == 0
        [line] = point.lines()
        self._note.unlink()
        self._calls[number % 2 == 1] = int(line.split()[1])
        self._account.publish(number)

    def _request(self, number: int | None, point: KillPoint | None) -> Request:
        # Not each of them: 50 topics take longer to look at than to kill for.
        makes_topic = self._visits is None and number is not None and number % 5 < 2
        return Request(number, makes_topic, None if point is None else point.to_json())

    def _run_job(self, server: JobServer, number: int) -> None:
        calls = self._calls[number % 2 == 1]
        last_call = calls
        point: KillPoint | None = self._point(last_call)
        while (status := server.run(self._request(number, point))) != 0:
            self._check_killed(status, number)
            if self._random.random() < 0.3:
                # Somebody else opens the directory, and is killed as well, if it has much to do.
                status = server.run(self._request(None, self._point(calls // 2)))
                if status:
                    self._check_killed(status, number)
            is_killed_again = self._random.random() < 0.5
            point = self._point(calls) if is_killed_again else None

    def _point(self, last_call: int) -> KillPoint:
        return KillPoint(str(self._note), "job", self._random.randint(1, last_call))

    def _check_killed(self, status: int, number: int) -> None:
        assert status == -signal.SIGKILL, f"seed {SEED}, job {number}: status {status}"
        self._note.unlink()
        self.kills += 1
        is_announced = self._account.is_announced
        seen = self._account.look(number)
        self.outcomes[f"{'announced, ' if is_announced else ''}{seen} visible"] += 1
        if self._visits is not None and self.kills % KILLS_A_BROKER_VISIT == 0:
            self._visits.append()
            self._account.look(number)
            self.outcomes["then a broker"] += 1


@pytest.mark.slow
@pytest.mark.broker
def test_killed_commits_in_the_directory_of_a_broker_lose_and_double_nothing(
    memory_path: Path,
    new_broker: NewBroker,
    tmp_path: Path,
    kills: Callable[[int], int],
    counted: Counted,
) -> None:
    visits = BrokerVisits(new_broker(LAST_VERSION_3, log_dir=memory_path / "logs"))
    rounds = Rounds(visits.account, tmp_path, visits)
    rounds.run(kills(90))
    directory = str(visits.account.directory)
    visits.account.check_at_the_end(lambda number: job_of(directory, number).is_committed())
    visits.check_what_is_consumed()
    counted(f"killed commits and a broker, seed {SEED}", rounds.outcomes)


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.usefixtures("kafka_is_here")
def test_killed_commits_that_make_topics_lose_and_double_nothing(
    memory_path: Path, tmp_path: Path, kills: Callable[[int], int], counted: Counted
) -> None:
    directory = memory_path / "logs"
    directory.mkdir()
    account = Account(directory)
    rounds = Rounds(account, tmp_path)
    rounds.run(kills(70))
    account.check_at_the_end(lambda number: job_of(str(directory), number).is_committed())
    counted(f"killed commits that make topics, seed {SEED}", rounds.outcomes)
    partitions = [directory / f"{TOPIC}-{each}" for each in range(PARTITIONS)]
    partitions += sorted(directory.glob("new-*-2"))
    files = [path for each in partitions for path in segment_files(each)]
    dumped = dump_log_segments(files, "--deep-iteration", "--print-data-log")
    values = Counter(
        line.partition(" payload: ")[2].encode()
        for line in dumped.splitlines()
        if line.startswith("| offset: ")
    )
    account.compare(values)
