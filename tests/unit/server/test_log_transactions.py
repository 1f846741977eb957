"""The last stable offset of logs that change, and of walks that take long."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partialmethod
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.server.log_transactions import LogTransactions
from tests.support.batches import COMMIT, Built, joined, marker
from tests.support.log_files import (
    segment_path,
    write_high_watermarks,
    write_partition,
    write_segment,
)
from tests.support.raw_client import RawClient
from tests.unit.server.followed import content, fetched, followed
from tests.unit.server.test_followed_logs import COMMITTED, KAFKA_STORAGE_ERROR, batches
from tests.unit.server.test_replica_manager import fetch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pylog.reading.log_view import LogView

EMPTY_SNAPSHOT = bytes.fromhex("000148674bc700000000")
OPEN = [*batches(*range(4)), *batches(*range(4, 10), producer_id=7)]
MARKER = marker(10, COMMIT, producer_id=7)


def write_snapshot(directory: Path, offset: int) -> None:
    """Write the producer snapshot of a log in which no transaction is open."""
    segment_path(directory, offset, ".snapshot").write_bytes(EMPTY_SNAPSHOT)


def end_and_roll(directory: Path) -> None:
    """Do what a broker does that ends the transaction, and then rolls the log."""
    with segment_path(directory, 0).open("ab") as file:
        file.write(MARKER.data)
    write_segment(directory, 11, batches(*range(11, 20)))
    write_snapshot(directory, 11)


def delete_first(directory: Path) -> None:
    end_and_roll(directory)
    remove(directory, 0)


def delete_first_without_snapshots(directory: Path) -> None:
    delete_first(directory)
    remove(directory, 11, ".snapshot")


def compact(directory: Path) -> None:
    """Remove the transaction's records, its marker too, as delete.retention.ms allows later."""
    end_and_roll(directory)
    cleaned = directory / "aside"
    cleaned.write_bytes(joined(OPEN[:4]))
    cleaned.rename(segment_path(directory, 0))


def truncate_fully(directory: Path) -> None:
    """Do what a follower does whose leader's log begins after the end of its own."""
    remove(directory, 0)
    write_segment(directory, 15, batches(*range(15, 20)))


def remove(directory: Path, base: int, suffix: str = ".*") -> None:
    for path in directory.glob(f"{base:020d}{suffix}"):
        path.unlink()


@pytest.mark.parametrize(
    "change", [delete_first, delete_first_without_snapshots, compact, truncate_fully]
)
def test_a_transaction_whose_marker_is_gone_does_not_stay_open(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    directory = write_partition(tmp_path, {0: OPEN})
    with followed(tmp_path) as replicas:
        assert fetched(replicas, 0, isolation=1)["lastStableOffset"] == 4
        change(directory)
        replicas.refresh()
        answer = fetched(replicas, 15, isolation=1)
    assert (answer["errorCode"], answer["lastStableOffset"]) == (0, 20)
