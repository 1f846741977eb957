"""Whatever was written, a result that is as at an instant has what was committed by then."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.jobs import merge
from tests.support.batches import ABORT, COMMIT, batch_v2, marker, plain_records
from tests.support.log_files import write_partition
from tests.unit.admin.coordinated import coordinated

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Counted, HowMany
    from tests.support.batches import Built, Stored

PARTITIONS, PRODUCERS = 3, 2
ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(1, 6)
SECOND = 1000
SEED = 55


class History:
    """Producers write transactions, one clock tells the time, and coordinators decide."""

    def __init__(self) -> None:
        self.now = 10 * SECOND
        self.logs: list[list[Built]] = [[] for _ in range(PARTITIONS)]
        self.states: list[Stored] = []
        self.written: list[dict[int, list[tuple[int, int]]]] = [{} for _ in range(PRODUCERS)]
        self.ends: list[list[tuple[int, int]]] = [[] for _ in range(PRODUCERS)]  # markers to come
        self.records: list[
            tuple[int, int, int, int | None]
        ] = []  # place, offset, time, transaction
        self.decided: dict[int, tuple[int, bool, list[int]]] = {}  # with the times of its markers
        self.transactions: list[int | None] = [None] * PRODUCERS
        self.count = 0

    def _end(self, partition: int) -> int:
        log = self.logs[partition]
        return log[-1].last_offset + 1 if log else 0

    def _note(self, producer: int, status: int) -> None:
        state = coordinated(len(self.states), f"app-{producer}", producer, status, self.now)
        self.states.append(state._replace(timestamp=self.now))

    def write(self, producer: int | None, partition: int, count: int) -> None:
        options: dict[str, object] = {}
        transaction = None
        if producer is not None:
            if self.ends[producer]:
                return  # it begins none before all markers of its last one are written
            if self.transactions[producer] is None:
                self.transactions[producer] = self.count
                self.count += 1
                self._note(producer, ONGOING)
                self.now += 1
            transaction = self.transactions[producer]
            self.written[producer].setdefault(partition, [])
            options = {
                "producer_id": producer,
                "producer_epoch": 0,
                "base_sequence": 0,
                "is_transactional": True,
            }
        first = self._end(partition)
        stored = plain_records(first, count, timestamp=self.now)
        self.logs[partition].append(batch_v2(stored, **options))  # type: ignore[arg-type]
        self.records += [(partition, each.offset, each.timestamp, transaction) for each in stored]
        self.now += count

    def decide(self, producer: int, *, commits: bool) -> None:
        transaction = self.transactions[producer]
        if transaction is None or self.ends[producer]:
            return
        self._note(producer, PREPARE_COMMIT if commits else PREPARE_ABORT)
        self.decided[transaction] = self.now, commits, []
        kind = COMMIT if commits else ABORT
        self.ends[producer] = [(partition, kind) for partition in self.written[producer]]
        self.now += 1

    def mark(self, producer: int) -> None:
        if not self.ends[producer]:
            return
        partition, kind = self.ends[producer].pop()
        at = self._end(partition)
        self.logs[partition].append(
            marker(at, kind, producer_id=producer, producer_epoch=0, timestamp=self.now)
        )
        transaction = self.transactions[producer]
        assert transaction is not None
        self.decided[transaction][2].append(self.now)
        self.now += 1
        if not self.ends[producer]:
            self._note(producer, COMPLETE_COMMIT if kind == COMMIT else COMPLETE_ABORT)
            self.now += 1
            self.transactions[producer] = None
            self.written[producer] = {}

    def committed(self, instant: int, *, knows_coordinators: bool) -> list[tuple[int, int]]:
        """Return which records readers of committed ones are to get."""
        ended = set()
        for transaction, (at, commits, marks) in self.decided.items():
            is_in = at < instant if knows_coordinators else any(each < instant for each in marks)
            if commits and is_in:
                ended.add(transaction)
        return sorted(
            (partition, offset)
            for partition, offset, time, transaction in self.records
            if time < instant and (transaction is None or transaction in ended)
        )


def random_history(rng: random.Random) -> History:
    history = History()
    for _ in range(rng.randint(10, 50)):
        producer = rng.randrange(PRODUCERS)
        step = rng.random()
        if step < 0.1:
            history.write(None, rng.randrange(PARTITIONS), rng.randint(1, 3))
        elif step < 0.45:
            history.write(producer, rng.randrange(PARTITIONS), rng.randint(1, 3))
        elif step < 0.65:
            history.decide(producer, commits=rng.random() < 0.7)
        else:
            history.mark(producer)
    return history


def found_by_merge(place: Path, history: History, instant: int) -> list[tuple[int, int]]:
    done = merge(place / "old", to=place / "new", until=pylog.Timestamp(instant))
    assert {each.topic for each in done.partitions} == {"orders"}
    scan = pylog.scan(
        place / "new",
        topics=["orders"],
        isolation="read_committed",
        columns=["partition", "offset"],
    )
    listed = pylog.transactions(place / "new", topics=["orders"]).transactions
    assert [each for each in listed if each.state == "open"] == []
    return sorted((each["partition"], each["offset"]) for each in scan.to_table().to_pylist())


@pytest.mark.parametrize("knows_coordinators", [True, False])
def test_readers_of_committed_records_get_what_was_committed_by_the_instant(
    tmp_path: Path, counted: Counted, how_many: HowMany, *, knows_coordinators: bool
) -> None:
    rng = random.Random(SEED)
    appended = Counter[str | None]()
    for number in range(how_many(60, 400)):
        history = random_history(rng)
        place = tmp_path / str(number)
        for partition, log in enumerate(history.logs):
            write_partition(place / "old", {0: log}, name=f"orders-{partition}")
        if knows_coordinators and history.states:
            states = [batch_v2([each]) for each in history.states]
            write_partition(place / "old", {0: states}, name="__transaction_state-0")
        instant = rng.randint(10 * SECOND, history.now)
        expected = history.committed(instant, knows_coordinators=knows_coordinators)
        assert found_by_merge(place, history, instant) == expected, (number, instant)
        planned = merge(place / "old", to=place / "x", until=pylog.Timestamp(instant), dry_run=True)
        appended.update(each.appended for one in planned.partitions for each in one.transactions)
    assert min(appended["COMMIT"], appended["ABORT"]) > 3
    counted("markers of results as at an instant", {str(kind): n for kind, n in appended.items()})
