"""Transactions that nothing ends, in doctor's verdict: `pylog.checks.hanging_transactions`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import COMMIT, batch_v2, marker
from tests.support.log_files import write_partition
from tests.unit.admin.coordinated import coordinated, data

if TYPE_CHECKING:
    from pathlib import Path

ONGOING, COMPLETE_COMMIT = 1, 4  # kafka's TransactionState
WEEK = 7 * 24 * 3_600_000


@pytest.mark.parametrize(
    ("status", "updated_ms", "covers", "said"),
    [
        pytest.param(COMPLETE_COMMIT, 0, (), ["warning"], id="the coordinator has ended it"),
        pytest.param(
            ONGOING, 0, (("orders", 1),), ["warning"], id="the coordinator has another there"
        ),
        pytest.param(ONGOING, 0, (("orders", 0),), [], id="the coordinator will end it"),
        pytest.param(COMPLETE_COMMIT, WEEK, (), [], id="its end may have come since"),
    ],
)
def test_a_transaction_that_no_coordinator_ends_is_named(
    tmp_path: Path,
    status: int,
    updated_ms: int,
    covers: tuple[tuple[str, int], ...],
    said: list[str],
) -> None:
    began = int(time.time() * 1000) - WEEK // 2
    batches = [data(0, 1, began), data(1, 7, began)]
    batches.append(marker(2, COMMIT, producer_id=1, producer_epoch=3, timestamp=began))
    write_partition(tmp_path, {0: batches}, name="orders-0")
    records = [
        coordinated(0, "a", 1, COMPLETE_COMMIT, began),
        coordinated(1, "b", 7, status, began + updated_ms, *covers),
    ]
    write_partition(tmp_path, {0: [batch_v2(records)]}, name="__transaction_state-0")
    report = pylog.doctor(tmp_path)
    found = [each for each in report.findings if each.code == "hanging_transaction"]
    assert [str(each.severity) for each in found] == said
    waiting = [("orders-0", 1, 3)] if said else []
    consumers = report.verdict.consumers
    assert [(each.name, each.from_offset, each.to_offset) for each in consumers] == waiting
