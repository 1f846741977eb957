"""Segments that are due get other batches; the others keep their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.recovery.rewritten_segments import rewrite_segments, segments_due
from tests.support.batch_parser import ParsedBatch
from tests.support.batches import ABORT, Built, batch_v2, marker, plain_records
from tests.support.log_files import tree
from tests.support.replica_histories import stored_batches

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.record.batch_scan import Window

PLACE = pylog.TopicPartition("orders", 0)


class Without:
    """Leaves out the batches that begin at some offsets, but for their place in the log."""

    def __init__(self, *offsets: int, fails: bool = False) -> None:
        self._offsets = set(offsets)
        self._fails = fails

    def is_due(self, window: Window) -> bool:
        return bool(self._offsets & set(window.headers.offsets.tolist()))

    def rewrite(self, window: Window) -> Iterator[memoryview]:
        for at, offset in enumerate(window.headers.offsets.tolist()):
            if offset not in self._offsets:
                yield window.bytes_of(at)
            elif self._fails:
                raise RuntimeError
            else:
                records = plain_records(offset, 1)
                size = int(window.headers.last_offsets[at])
                yield memoryview(batch_v2(records, base_offset=offset, last_offset=size).data)


def log_of(directory: Path, *segments: list[Built]) -> None:
    with pylog.logs.own_log_directory(directory) as manager:
        log = manager.get_or_create_log(PLACE)
        for number, batches in enumerate(segments):
            if number:
                log.roll()
            for each in batches:
                log.append_as_follower(each.data)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Give three segments of two batches of five records each."""
    batches = [batch_v2(plain_records(at, 5)) for at in range(0, 30, 5)]
    (tmp_path / "logs").mkdir()
    log_of(tmp_path / "logs", batches[:2], batches[2:4], batches[4:])
    return tmp_path / "logs"


@pytest.mark.parametrize(
    ("offsets", "due"),
    [((), []), ((0,), [0]), ((15,), [10]), ((5, 25), [0, 20]), ((0, 10, 20), [0, 10, 20])],
)
def test_segments_with_such_batches_are_due_and_the_others_keep_their_files(
    directory: Path, offsets: tuple[int, ...], due: list[int]
) -> None:
    before = tree(directory / "orders-0")
    rewriter, seen = Without(*offsets), [0]
    with pylog.logs.own_log_directory(directory) as manager:
        log = manager.get_log(PLACE)
        assert segments_due(log, rewriter, seen.append) == due
        assert sum(seen) == log.size_bytes
        rewrite_segments(log, due, rewriter)
        assert (log.log_start_offset, log.log_end_offset) == (0, 30)
    after = tree(directory / "orders-0")
    for base in (0, 10, 20):
        name = f"{base:020d}.log"
        assert (after[name] == before[name]) is (base not in due)
    assert not [name for name in after if name.endswith((".cleaned", ".swap", ".deleted"))]
    stored = [ParsedBatch.of(each) for each in stored_batches(directory / "orders-0")]
    counts = {each.base_offset: each.record_count for each in stored}
    assert counts == {at: 1 if at in offsets else 5 for at in range(0, 30, 5)}


def test_a_rewriter_that_fails_leaves_the_segment_and_those_after_it(directory: Path) -> None:
    before = {name: data for name, data in tree(directory).items() if name.endswith(".log")}
    with pylog.logs.own_log_directory(directory) as manager:
        log = manager.get_log(PLACE)
        with pytest.raises(RuntimeError):
            rewrite_segments(log, [10], Without(10, fails=True))
    after = {name: data for name, data in tree(directory).items() if ".log" in name}
    assert after == before


def test_aborted_transactions_stay_known(tmp_path: Path) -> None:
    data = batch_v2(
        plain_records(0, 5),
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    (tmp_path / "logs").mkdir()
    log_of(tmp_path / "logs", [data, marker(5, ABORT)], [batch_v2(plain_records(6, 5))])
    index = tmp_path / "logs" / "orders-0" / f"{0:020d}.txnindex"
    before = index.read_bytes()
    assert before
    with pylog.logs.own_log_directory(tmp_path / "logs") as manager:
        rewrite_segments(manager.get_log(PLACE), [0], Without(9))
    assert index.read_bytes() == before
