"""A range of one log in a new one: where it begins and ends, and what is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import pylog
from pylog.files.durable_io import DurableIO
from pylog.record.batch_scan import find_batches
from pylog.recovery.partition_copy import CopyCounts, RangeCopy, end_transaction, first_offsets
from tests.support.batch_parser import ParsedBatch
from tests.support.batches import Built, batch_v2, joined, message, plain_records, wrapper
from tests.support.log_files import segment_path, write_partition
from tests.support.reading import as_buffer
from tests.support.replica_histories import stored_batches

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.log.unified_log import UnifiedLog

PLACE = pylog.TopicPartition("orders", 0)


def copied(copy: RangeCopy, place: Path, *, aborts: bool = False) -> tuple[int, int]:
    """Write a copy; return its start and end."""
    place.mkdir()
    copy.prepare(DurableIO(), str(place))
    with pylog.logs.own_log_directory(place) as manager:
        log = manager.get_log(PLACE)
        copy.write(log)
        if aborts:
            abort_all(log)
        return log.log_start_offset, log.log_end_offset


def abort_all(log: UnifiedLog) -> None:
    for each in log.producer_state.open_transactions:
        assert end_transaction(log, each) == log.log_end_offset - 1


def range_of(source: Path, start: int, end: int, *, is_exact: bool) -> RangeCopy:
    [view] = pylog.open_directory(source)
    return RangeCopy(view, start, end, is_exact=is_exact)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Give a log of batches 0 to 4, 5 to 9, and 20 to 24 in a segment of its own."""
    batches = [batch_v2(plain_records(at, 5), leader_epoch=2) for at in (0, 5, 20)]
    write_partition(tmp_path / "source", {0: batches[:2], 20: batches[2:]})
    return tmp_path / "source"


@pytest.mark.parametrize(
    ("start", "end", "is_exact", "bounds", "names", "batches", "rewritten"),
    [
        (0, 25, False, (0, 25), [0, 20], 3, 0),
        (0, 25, True, (0, 25), [0, 20], 3, 0),
        (2, 7, False, (2, 10), [0], 2, 0),
        (2, 7, True, (2, 7), [2], 2, 2),
        (5, 10, True, (5, 10), [5], 1, 0),
        (7, 22, False, (7, 25), [5, 20], 2, 0),
        (12, 18, True, (12, 18), [12], 0, 0),  # nothing has these offsets
        (12, 25, False, (12, 25), [12], 1, 0),
        (3, 3, True, (3, 3), [3], 0, 0),
    ],
)
def test_a_copy_has_whole_batches_or_exactly_the_range(
    source: Path,
    tmp_path: Path,
    *,
    start: int,
    end: int,
    is_exact: bool,
    bounds: tuple[int, int],
    names: list[int],
    batches: int,
    rewritten: int,
) -> None:
    copy = range_of(source, start, end, is_exact=is_exact)
    found = copied(copy, tmp_path / "copy")
    assert found == bounds
    files = sorted((tmp_path / "copy" / "orders-0").glob("*.log"))
    assert [int(each.stem) for each in files] == names
    assert (copy.counts.batches, copy.counts.rewritten_batches) == (batches, rewritten)
    assert copy.counts[3:] == (0, 0)  # nothing is left out
    stored = [ParsedBatch.of(each) for each in stored_batches(tmp_path / "copy/orders-0")]
    kept = {record.offset for each in stored for record in each.records()}
    whole = {*range(10), *range(20, 25)}
    assert kept >= {each for each in whole if start <= each < end}
    if is_exact:
        assert kept <= set(range(start, end))
    assert {each.leader_epoch for each in stored if each.record_count} <= {2}


def test_counting_finds_what_writing_does(source: Path, tmp_path: Path) -> None:
    planned, done = (range_of(source, 2, 7, is_exact=True) for _ in range(2))
    planned.count()
    copied(done, tmp_path / "copy")
    assert planned.counts == done.counts != CopyCounts()
    assert planned.size_bytes == done.size_bytes


def test_a_topic_id_comes_along(source: Path, tmp_path: Path) -> None:
    text = "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n"
    (source / "orders-0" / "partition.metadata").write_text(text)
    copied(range_of(source, 0, 25, is_exact=False), tmp_path / "copy")
    copy = (tmp_path / "copy" / "orders-0" / "partition.metadata").read_text()
    assert copy.split() == text.split()


def test_an_open_transaction_is_ended_by_its_producers_marker(tmp_path: Path) -> None:
    data = batch_v2(
        plain_records(0, 3),
        producer_id=6,
        producer_epoch=4,
        base_sequence=0,
        is_transactional=True,
    )
    write_partition(tmp_path / "source", {0: [data]})
    copy = range_of(tmp_path / "source", 0, 3, is_exact=True)
    assert copied(copy, tmp_path / "copy", aborts=True) == (0, 4)
    *_, last = (ParsedBatch.of(each) for each in stored_batches(tmp_path / "copy/orders-0"))
    assert (last.base_offset, last.producer_id, last.producer_epoch) == (3, 6, 4)
    assert (last.is_control, last.is_transactional) == (True, True)
    [record] = last.records()
    assert record.key == b"\0\0\0\0"  # ABORT


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([batch_v2(plain_records(3, 2)), batch_v2(plain_records(9, 2))], [3, 9]),
        ([message(each, magic=1) for each in plain_records(3, 2)], [3, 4]),
        ([wrapper(plain_records(at, 3), magic=1, codec="gzip") for at in (3, 8)], [1, 6]),
        (
            [batch_v2(plain_records(3, 2)), wrapper(plain_records(8, 3), magic=0, codec="gzip")],
            [3, 5],
        ),
    ],
)
def test_a_wrapper_begins_after_the_batch_before_it_at_the_latest(
    batches: list[Built], expected: list[int]
) -> None:
    headers = find_batches(as_buffer(joined(batches))).headers
    assert np.asarray(first_offsets(headers, 1)).tolist() == expected


def test_a_wrapper_that_the_range_begins_in_is_taken_whole(tmp_path: Path) -> None:
    batches = [wrapper(plain_records(at, 5), magic=1, codec="gzip") for at in (0, 5)]
    write_partition(tmp_path / "source", {0: batches})
    copy = range_of(tmp_path / "source", 7, 10, is_exact=False)
    assert copy.base_offset == 5
    assert copied(copy, tmp_path / "copy") == (7, 10)
    assert segment_path(tmp_path / "copy/orders-0", 5).read_bytes() == batches[1].data
