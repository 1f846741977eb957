from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from tests.support.batches import ABORT, COMMIT, batch_v2, marker
from tests.support.log_files import write_partition
from tests.unit.admin.coordinated import MINUTE, coordinated, data

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenRoot

NOW = 100 * MINUTE


def test_overdue_ones_come_first_and_the_oldest_of_them_at_the_head(tmp_path: Path) -> None:
    batches = [
        data(0, 1, NOW - 10 * MINUTE),
        data(1, 2, NOW - 16 * MINUTE),
        data(2, 3, NOW - 50 * MINUTE),
        data(3, 4, 5),
        marker(4, COMMIT, producer_id=4, timestamp=77),
    ]
    write_partition(tmp_path, {0: batches})
    listing = pylog.transactions(tmp_path, now_ms=NOW)
    assert [(each.producer_id, each.is_overdue) for each in listing.transactions] == [
        (3, True),
        (2, True),
        (1, False),
    ]
    assert listing.transactions[0].open_ms == 50 * MINUTE
    assert listing.totals == {"open": 3, "committed": 1}
    overdue = [
        each.is_overdue
        for each in pylog.transactions(
            tmp_path, now_ms=NOW, max_timeout_ms=55 * MINUTE
        ).transactions
    ]
    assert overdue == [False] * 3
    last = pylog.transactions(tmp_path, now_ms=NOW, includes_ended=True).transactions[-1]
    assert (last.state, last.started_ms, last.ended_ms, last.open_ms) == ("committed", 5, 77, None)


def test_a_young_transaction_is_not_hanging_whatever_its_coordinator_says(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [data(0, 2, NOW - MINUTE)]})
    write_partition(
        tmp_path, {0: [batch_v2([coordinated(1, "ended", 2, 4, 0)])]}, name="__transaction_state-0"
    )
    (found,) = pylog.transactions(tmp_path, now_ms=NOW).transactions
    assert (found.coordinator_state, found.is_overdue, found.is_hanging) == (
        "CompleteCommit",
        False,
        False,
    )


def test_damage_hides_the_rest_of_its_partition_alone(tmp_path: Path) -> None:
    damaged = write_partition(tmp_path, {0: [data(0, 1), data(1, 2), data(2, 3)]})
    log = damaged / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[2 * len(content) // 3 + 16] = 9  # the magic of the third batch
    log.write_bytes(content)
    write_partition(tmp_path, {0: [data(0, 4)]}, name="orders-1")
    state = [coordinated(1, "ended", 4, 4, 0)]
    write_partition(tmp_path, {0: [batch_v2(state)]}, name="__transaction_state-0")
    path = tmp_path / "__transaction_state-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:16] + b"\x09" + path.read_bytes()[17:])
    listing = pylog.transactions(tmp_path, topics=["orders"])
    assert (4, None) in {(each.producer_id, each.transactional_id) for each in listing.transactions}
    assert {str(each.path) for each in listing.errors} == {str(log), str(path)}  # type: ignore[attr-defined]


def test_transactions_of_all_golden_partitions_are_listed(golden_root: GoldenRoot) -> None:
    listing = pylog.transactions(golden_root.case("4.3.0/internal-logdir"))
    assert listing.has_coordinators
    assert {
        (each.topic, each.partition, each.first_offset, each.transactional_id, each.is_hanging)
        for each in listing.transactions
    } == {
        ("orders", 1, 45, "A-tx-z", False),
        ("__consumer_offsets", 1, 22, "A-tx-z", False),
    }
    assert listing.totals == {"committed": 6, "aborted": 6, "open": 2}
    only = pylog.transactions(golden_root.case("4.3.0/internal-logdir"), topics=["orders"])
    assert {place.topic for place in only.counts} == {"orders"}


def test_progress_goes_up_to_the_bytes_of_all_logs(tmp_path: Path) -> None:
    for number in range(3):
        batches = [data(0, 1), marker(1, ABORT, producer_id=1)]
        write_partition(tmp_path, {0: batches}, name=f"orders-{number}")
    steps: list[Any] = []
    pylog.transactions(tmp_path, progress=lambda done, total: steps.append((done, total)))
    size = sum(path.stat().st_size for path in tmp_path.glob("*/*.log"))
    assert steps == [(size // 3, size), (2 * size // 3, size), (size, size)]


def test_whoever_is_interrupted_does_not_wait_for_other_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        write_partition(tmp_path, {0: [data(0, 1)]}, name=f"orders-{number}")
    goes_on = threading.Event()
    waited_in_vain = threading.Event()

    def slow(view: Any) -> list[Any]:  # noqa: ANN401 - a LogView, which is not public
        if view.partition and not goes_on.wait(60):
            waited_in_vain.set()
        return []

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pylog.admin.transactions.find_transactions", slow)
    try:
        with pytest.raises(KeyboardInterrupt):
            pylog.transactions(tmp_path, threads=2, progress=interrupt)
        assert not waited_in_vain.is_set()
    finally:
        goes_on.set()
