"""Sequence numbers of producers, and what the transaction index says of open transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pylog
from tests.support.batches import ABORT, COMMIT, Built, batch_v2, marker, plain_records
from tests.support.log_files import (
    TRANSACTION_ENTRY,
    Transactions,
    segment_path,
    write_log_start_offsets,
    write_partition,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

DAY_MS = 86_400_000


def batch(
    offset: int,
    sequence: int,
    *,
    count: int = 5,
    epoch: int = 0,
    timestamp: int = 1000,
    producer_id: int = 7,
    is_transactional: bool = False,
) -> Built:
    records = plain_records(offset, count, timestamp=timestamp)
    return batch_v2(
        records,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )


def findings(directory: Path, *batches: Built) -> list[dict[str, Any]]:
    written = write_partition(directory, {batches[0].base_offset: batches})
    rows: list[dict[str, Any]] = pylog.read_table(written, "findings").to_pylist()
    return rows


def codes(rows: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["severity"], row["code"]) for row in rows]


def test_numbers_that_follow_each_other_are_no_finding(tmp_path: Path) -> None:
    other = batch(5, 3, producer_id=8)
    highest = 2**31 - 1
    batches = [batch(0, highest - 6), other, batch(10, highest - 1), batch(15, 3)]
    assert findings(tmp_path, *batches) == []


def test_a_gap_in_an_epoch_without_one_in_the_offsets_is_a_warning(tmp_path: Path) -> None:
    first, second = batch(0, 0), batch(5, 9)
    (row,) = findings(tmp_path, first, second)
    assert codes([row]) == [("warning", "sequence_gap")]
    assert row["message"] == (
        "producer 7, epoch 0: sequence number 9 comes after 4, so the producer sent 4 records "
        "that are not in the log"
    )
    size = len(first.data)
    assert (row["position"], row["end_position"]) == (size, size + len(second.data))
    assert (row["next_offset"], row["end_offset"]) == (5, 10)


def test_it_is_found_across_segments_and_windows_too(tmp_path: Path) -> None:
    large = plain_records(5, 60, value_size=100_000)
    between = batch_v2(large, producer_id=8, producer_epoch=0, base_sequence=0)
    written = write_partition(tmp_path, {0: [batch(0, 0), between], 65: [batch(65, 6)]})
    rows = pylog.read_table(written, "findings").to_pylist()
    assert [(row["code"], row["next_offset"]) for row in rows] == [("sequence_gap", 65)]


def test_a_number_that_goes_back_may_be_a_record_twice(tmp_path: Path) -> None:
    (row,) = findings(tmp_path, batch(0, 0), batch(5, 0))
    assert codes([row]) == [("warning", "repeated_sequence")]
    assert row["message"] == (
        "producer 7, epoch 0: sequence number 0 comes after 4, so records may be in the log twice"
    )


def test_an_epoch_begins_at_zero(tmp_path: Path) -> None:
    assert findings(tmp_path / "sound", batch(0, 0), batch(5, 0, epoch=1)) == []
    (row,) = findings(tmp_path / "gap", batch(0, 0), batch(5, 3, epoch=1))
    assert codes([row]) == [("warning", "sequence_gap")]
    assert row["message"].startswith("producer 7, epoch 1: the epoch begins with sequence number 3")


def test_markers_have_no_numbers(tmp_path: Path) -> None:
    batches = [
        batch(0, 0, is_transactional=True),
        marker(5, COMMIT, producer_id=7),
        batch(6, 5, is_transactional=True),
        marker(11, COMMIT, producer_id=7),
    ]
    assert findings(tmp_path, *batches) == []


def test_what_compaction_or_a_lost_file_took_is_told_of_the_offsets_alone(tmp_path: Path) -> None:
    (row,) = findings(tmp_path, batch(0, 0), batch(10, 10))
    assert row["code"] == "offset_gap"
    # Fewer offsets are missing than numbers: they do not explain them.
    rows = findings(tmp_path / "more", batch(0, 0), batch(10, 11))
    assert sorted(row["code"] for row in rows) == ["offset_gap", "sequence_gap"]


def test_what_came_before_the_first_batch_that_is_left_is_not_judged(tmp_path: Path) -> None:
    assert findings(tmp_path, batch(100, 41), batch(105, 46)) == []


@pytest.mark.parametrize(("later", "severity"), [(DAY_MS - 100, "warning"), (DAY_MS, "info")])
def test_a_broker_may_have_forgotten_a_producer_after_a_day(
    tmp_path: Path, later: int, severity: str
) -> None:
    other = batch(5, 0, producer_id=8, timestamp=1004 + later)
    (row,) = findings(tmp_path, batch(0, 0), other, batch(10, 50))
    assert codes([row]) == [(severity, "sequence_gap")]
    assert ("forgotten" in row["message"]) is (severity == "info")


def test_or_once_its_records_were_deleted(tmp_path: Path) -> None:
    tmp_path.joinpath("meta.properties").write_text("version=1\nbroker.id=0\n", "utf-8")
    write_log_start_offsets(tmp_path, {("orders", 0): 5})
    assert codes(findings(tmp_path, batch(0, 0), batch(5, 0))) == [("info", "repeated_sequence")]


def test_what_coordinators_write_for_producers_has_no_numbers_to_follow(tmp_path: Path) -> None:
    batches = [batch(0, 0, is_transactional=True), batch(5, 0, is_transactional=True)]
    written = write_partition(tmp_path, {0: batches}, name="__consumer_offsets-1")
    assert pylog.read_table(written, "findings").to_pylist() == []


def test_many_gaps_are_counted(tmp_path: Path) -> None:
    rows = findings(tmp_path, *(batch(5 * at, 6 * at) for at in range(120)))
    assert len(rows) == 101
    assert rows[-1]["message"] == (
        "sequence numbers of producers skip some, or go back, 19 more times"
    )


# What is open while producer 1 aborts: nothing; a transaction of producer 2; one that comes later.
ALONE = [batch(0, 0, producer_id=1, is_transactional=True), marker(5, ABORT, producer_id=1)]
BESIDE = [
    batch(0, 0, producer_id=2, is_transactional=True),
    batch(5, 0, producer_id=1, is_transactional=True),
    marker(10, ABORT, producer_id=1),
    batch(11, 5, producer_id=2, is_transactional=True),
    marker(16, COMMIT, producer_id=2),
]
BEFORE_ANOTHER = [
    *ALONE,
    batch(6, 0, producer_id=3),
    batch(11, 0, producer_id=2, is_transactional=True),
    marker(16, COMMIT, producer_id=2),
]


def with_stable_offset(directory: Path, batches: Sequence[Built], stable: int) -> Path:
    written = write_partition(directory, {0: batches})
    ((producer_id, first, last, _),) = Transactions(batches).aborted
    entry = TRANSACTION_ENTRY.pack(0, producer_id, first, last, stable)
    segment_path(written, 0, ".txnindex").write_bytes(entry)
    return written


@pytest.mark.parametrize(
    ("batches", "stable"),
    [
        (ALONE, 6),
        (BESIDE, 0),
        (BEFORE_ANOTHER, 6),
        (BEFORE_ANOTHER, 11),  # as a follower writes it, which was given all of this at once
    ],
)
def test_a_stable_offset_that_a_broker_may_write_is_no_finding(
    tmp_path: Path, batches: Sequence[Built], stable: int
) -> None:
    written = with_stable_offset(tmp_path, batches, stable)
    assert pylog.read_table(written, "findings").to_pylist() == []


@pytest.mark.parametrize(
    ("batches", "stable", "expected"),
    [
        (ALONE, 7, 6),  # above the end of the log
        (ALONE, 5, 6),
        (BESIDE, 11, 0),  # readers would stop there, and producer 2 was not done
        (BESIDE, 2**62, 0),
        (BEFORE_ANOTHER, 12, 6),
        (BEFORE_ANOTHER, 3, 6),
    ],
)
def test_one_that_it_would_not_write_is_a_warning(
    tmp_path: Path, batches: Sequence[Built], stable: int, expected: int
) -> None:
    written = with_stable_offset(tmp_path, batches, stable)
    (row,) = pylog.read_table(written, "findings").to_pylist()
    assert codes([row]) == [("warning", "wrong_transaction_index")]
    assert row["message"].endswith(f"has last stable offset {stable}, expected {expected}")


def test_what_was_open_before_the_log_began_may_be_lower(tmp_path: Path) -> None:
    batches = [batch(10, 0, producer_id=1, is_transactional=True), marker(15, ABORT, producer_id=1)]
    written = write_partition(tmp_path, {10: batches})
    entry = TRANSACTION_ENTRY.pack(0, 1, 10, 15, 4)
    segment_path(written, 10, ".txnindex").write_bytes(entry)
    assert pylog.read_table(written, "findings").to_pylist() == []
