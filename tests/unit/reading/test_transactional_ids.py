"""Transactional ids, as the coordinator's records have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pylog
from tests.support.batches import batch_v2
from tests.support.log_files import write_partition
from tests.unit.admin.coordinated import coordinated, data

if TYPE_CHECKING:
    from pathlib import Path


def test_a_transactional_id_and_its_state_come_from_the_coordinator(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [data(0, 1, 9), data(1, 2), data(2, 3), data(3, 4), data(4, 5)]})
    records = [
        coordinated(0, "under-way", 1, 1, 4000, ("orders", 0)),
        coordinated(1, "ended", 2, 4, 0),
        coordinated(2, "elsewhere", 3, 1, 0, ("orders", 1)),
        # Another producer has the id of producer 4 by now.
        coordinated(3, "moved", 4, 1, 0, ("orders", 0)),
        coordinated(4, "moved", 9, 1, 0, ("orders", 0)),
    ]
    write_partition(tmp_path, {0: [batch_v2(records)]}, name="__transaction_state-0")
    found = {each.producer_id: each for each in pylog.transactions(tmp_path).transactions}
    assert {
        producer: (each.transactional_id, each.coordinator_state, each.is_hanging)
        for producer, each in found.items()
    } == {
        1: ("under-way", "Ongoing", False),
        2: ("ended", "CompleteCommit", True),
        3: ("elsewhere", "Ongoing", True),
        4: ("moved", "Ongoing", True),
        5: (None, None, None),
    }
    # The coordinator knows when it began; of others the first batch tells.
    assert (found[1].started_ms, found[2].started_ms) == (4000, 1000)


def test_transactional_ids_with_one_producer_id_are_named(tmp_path: Path) -> None:
    records = [
        coordinated(0, "a", 1, 0, 0),
        coordinated(1, "b", 1, 4, 0),
        coordinated(2, "c", 1, 0, 0),
        coordinated(3, "c", 2, 0, 0),  # it has another one by now
        coordinated(4, "d", 3, 0, 0),
        coordinated(5, "e", 3, 0, 0),
        coordinated(6, "e", 3, 0, 0)._replace(value=None),
    ]
    write_partition(tmp_path, {0: [batch_v2(records)]}, name="__transaction_state-0")
    [shared] = pylog.transactions(tmp_path).shared_producers
    assert shared == (1, ("a", "b"))
