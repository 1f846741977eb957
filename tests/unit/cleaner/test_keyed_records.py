"""The keys that a cleaning maps: of committed records alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.cleaner.dirty_log import ABORT, COMMIT, DirtyLog, Producer

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def dirty(tmp_path: Path) -> DirtyLog:
    return DirtyLog(tmp_path)


def test_records_of_an_open_transaction_are_not_in_the_map(dirty: DirtyLog) -> None:
    """The bound is given; that it is the last stable offset is the candidates' affair."""
    dirty.put((b"k", b"1"))
    dirty.log.roll()
    Producer(dirty, 1).put(b"k")
    dirty.log.roll()
    assert dirty.clean(end=dirty.log.last_stable_offset).next_dirty_offset == 1
    assert dirty.offsets == [0, 1]


def test_aborted_records_do_not_hide_older_ones(dirty: DirtyLog) -> None:
    """Kafka: testBasicTransactionAwareCleaning."""
    dirty.put((b"k", b"1"))
    producer = Producer(dirty, 1)
    producer.put(b"k")
    producer.end(ABORT)
    dirty.put((b"end", b"1"))
    dirty.roll_and_clean()
    assert (b"k", b"1") in dirty.pairs
    assert (b"k", b"v") not in dirty.pairs


def test_a_key_like_that_of_a_marker_is_a_key_like_any_other(dirty: DirtyLog) -> None:
    """Kafka: testCleaningWithKeysConflictingWithTxnMarkerKeys."""
    producer = Producer(dirty, 1)
    marker_key = b"\0\0\0\1"
    producer.put(marker_key)
    producer.end(COMMIT)
    dirty.put((b"end", b"1"))
    dirty.roll_and_clean()
    assert dirty.pairs[0] == (marker_key, b"v")
    assert dirty.offsets == [0, 1, 2]
