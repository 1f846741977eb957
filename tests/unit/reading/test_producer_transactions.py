"""Transactions of a log, as the table has them: where each begins, and how it ends."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.native.checksum import crc32c
from tests.support.batches import ABORT, COMMIT, batch_v2, marker, plain_records, with_bad_crc
from tests.support.log_files import (
    TRANSACTION_ENTRY,
    segment_path,
    write_log_start_offsets,
    write_partition,
)
from tests.unit.tables.transaction_rows import data, rows

if TYPE_CHECKING:
    from pathlib import Path

NO_EVIDENCE = None


def write_snapshot(directory: Path, offset: int, open_since: dict[int, int]) -> None:
    """Write a producer snapshot in which each producer has a transaction open, -1 for none."""
    entries = b"".join(
        struct.pack(">qhiqiqiq", producer, 3, 9, 90, 0, 1000, 0, first)
        for producer, first in open_since.items()
    )
    body = struct.pack(">i", len(open_since)) + entries
    head = struct.pack(">hI", 1, crc32c(body))
    segment_path(directory, offset, ".snapshot").write_bytes(head + body)


def test_they_come_in_the_order_of_their_markers_and_open_ones_last(tmp_path: Path) -> None:
    batches = [
        data(0, producer_id=1),
        data(2, producer_id=2),
        data(4, producer_id=3),
        marker(6, ABORT, producer_id=2),
        marker(7, COMMIT, producer_id=1),
        data(8, producer_id=2),
    ]
    write_partition(tmp_path, {0: batches})
    found = [(row["producer_id"], row["state"], row["marker_offset"]) for row in rows(tmp_path)]
    assert found == [
        (2, "aborted", 6),
        (1, "committed", 7),
        (3, "open", None),
        (2, "open", None),
    ]


@pytest.mark.parametrize(
    ("snapshot", "sequence", "expected"),
    [
        ({1: 95}, 4, (95, True)),
        ({1: -1}, 4, (100, False)),
        ({2: 95}, 4, (100, False)),
        (NO_EVIDENCE, 4, (100, None)),
        (NO_EVIDENCE, 0, (100, False)),
    ],
)
@pytest.mark.parametrize("state", ["committed", "aborted", "open"])
def test_the_first_segments_snapshot_knows_what_was_open_before(
    tmp_path: Path,
    snapshot: dict[int, int] | None,
    sequence: int,
    expected: tuple[int, bool | None],
    state: str,
) -> None:
    end = {"committed": [marker(102, COMMIT)], "aborted": [marker(102, ABORT)], "open": []}[state]
    directory = write_partition(tmp_path, {100: [data(100, sequence=sequence), *end]})
    if snapshot is not None:
        write_snapshot(directory, 100, snapshot)
    (row,) = rows(tmp_path)
    assert row["state"] == state
    assert (row["first_offset"], row["begins_before_log_start"]) == expected


def test_a_damaged_snapshot_is_not_used(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {100: [data(100)]})
    write_snapshot(directory, 100, {1: 95})
    path = segment_path(directory, 100, ".snapshot")
    path.write_bytes(path.read_bytes()[:-1] + b"\x00")
    (row,) = rows(tmp_path)
    assert (row["first_offset"], row["begins_before_log_start"]) == (100, None)


def test_the_transaction_index_knows_where_an_aborted_one_began(tmp_path: Path) -> None:
    batches = [data(100), marker(102, ABORT), data(103), marker(105, ABORT)]
    directory = write_partition(tmp_path, {100: batches})
    entries = [(0, 1, 95, 102, 103), (0, 1, 103, 105, 106)]
    segment_path(directory, 100, ".txnindex").write_bytes(
        b"".join(TRANSACTION_ENTRY.pack(*entry) for entry in entries)
    )
    found = [(row["first_offset"], row["begins_before_log_start"]) for row in rows(tmp_path)]
    assert found == [(95, True), (103, False)]


def test_an_aborted_one_that_began_with_the_log_did_not_begin_before_it(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {100: [data(100), marker(102, ABORT)]})
    entry = TRANSACTION_ENTRY.pack(0, 1, 100, 102, 103)
    segment_path(directory, 100, ".txnindex").write_bytes(entry)
    (row,) = rows(tmp_path)
    # Not known: only a snapshot would tell that there was nothing of it before.
    assert (row["first_offset"], row["begins_before_log_start"]) == (100, None)


def test_a_segment_without_a_readable_transaction_index_hides_no_later_one(tmp_path: Path) -> None:
    segments = {100: [data(100, producer_id=2)], 102: [marker(102, COMMIT, producer_id=2)]}
    directory = write_partition(tmp_path, {**segments, 103: [data(103), marker(105, ABORT)]})
    of_another_version = TRANSACTION_ENTRY.pack(9, 2, 95, 102, 103)
    segment_path(directory, 102, ".txnindex").write_bytes(of_another_version)
    entry = TRANSACTION_ENTRY.pack(0, 1, 95, 105, 106)
    segment_path(directory, 103, ".txnindex").write_bytes(entry)
    found = {row["producer_id"]: row["first_offset"] for row in rows(tmp_path)}
    assert found == {1: 95, 2: 100}


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [({1: 95}, (95, True)), ({}, (None, False)), (NO_EVIDENCE, (None, None))],
)
def test_a_marker_may_be_all_that_is_left(
    tmp_path: Path, snapshot: dict[int, int] | None, expected: tuple[int | None, bool | None]
) -> None:
    directory = write_partition(tmp_path, {100: [marker(100, COMMIT)]})
    if snapshot is not None:
        write_snapshot(directory, 100, snapshot)
    (row,) = rows(tmp_path)
    assert (row["first_offset"], row["begins_before_log_start"]) == expected
    assert (row["last_offset"], row["batches"], row["size_in_bytes"]) == (None, 0, 0)
    assert (row["state"], row["marker_offset"]) == ("committed", 100)


def test_what_lies_below_the_log_start_offset_begins_before_it(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [data(0), data(2, sequence=6), marker(4, COMMIT)]})
    write_log_start_offsets(tmp_path, {("orders", 0): 2})
    (row,) = rows(tmp_path)
    assert (row["first_offset"], row["begins_before_log_start"]) == (0, True)


def test_control_batches_of_other_kinds_are_not_transactions(tmp_path: Path) -> None:
    leader_change = batch_v2(plain_records(0, 1), control_type=2)
    write_partition(tmp_path, {0: [leader_change, batch_v2(plain_records(1, 1), producer_id=5)]})
    assert rows(tmp_path) == []


def test_damage_inside_a_transaction_leaves_its_state_unknown(tmp_path: Path) -> None:
    batches = [
        data(0),
        data(2, producer_id=2, sequence=0),
        with_bad_crc(marker(4, ABORT)),
        data(5, sequence=6),
        marker(7, COMMIT),
        data(8, producer_id=3),
    ]
    write_partition(tmp_path, {0: batches})
    table = pylog.read_table(tmp_path, "transactions", mode="DROPMALFORMED")
    found = [
        (row["producer_id"], row["first_offset"], row["last_offset"], row["state"])
        for row in table.to_pylist()
    ]
    assert found == [(1, 0, 6, "unknown"), (2, 2, 3, "unknown"), (3, 8, 9, "open")]


def test_damage_at_the_end_leaves_the_state_of_open_ones_unknown(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [data(0), with_bad_crc(marker(2, ABORT))]})
    (row,) = pylog.read_table(tmp_path, "transactions", mode="DROPMALFORMED").to_pylist()
    assert (row["state"], row["marker_offset"]) == ("unknown", None)
