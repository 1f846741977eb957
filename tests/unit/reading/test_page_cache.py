"""Scans that leave the page cache as it was: rows are the same, pages stay or go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.files import uncached_file
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import segment_path, write_partition
from tests.support.page_cache import bring_in, cached_pages, can_be_dropped, drop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CACHED = range(40, 60)
NO_FLAG = 1 << 30
"""A flag that no system knows: what an older one says of `RWF_DONTCACHE`."""


@pytest.fixture(params=["by the system", "by ourselves"])
def log(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a ``.log`` file of which some pages are cached."""
    if request.param == "by ourselves":
        monkeypatch.setattr(uncached_file, "RWF_DONTCACHE", NO_FLAG)
    batches = [batch_v2(plain_records(10 * at, 10, value_size=500)) for at in range(400)]
    directory = write_partition(tmp_path, {0: batches}, with_time_index=False)
    path = segment_path(directory, 0)
    if not can_be_dropped(path):
        pytest.skip("pages of this file system cannot be dropped")
    drop(path.with_suffix(".index"))
    bring_in(path, CACHED)
    return path


READS: dict[str, Callable[[pylog.results.Scan], object]] = {
    "table": lambda scan: scan.to_table(),
    "count": lambda scan: scan.count(),
    "last": lambda scan: scan.last(100).to_table(),
    "one batch": lambda scan: next(scan.to_batches()),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_the_page_cache_is_left_as_it_was(
    log: Path, read: Callable[[pylog.results.Scan], object], threads: int
) -> None:
    scan = pylog.scan(log.parent, threads=threads, window_bytes=1 << 15, leave_page_cache=True)
    result = read(scan)
    pages = [cached_pages(log), cached_pages(log.with_suffix(".index"))]
    assert pages == [list(CACHED), []]
    assert result == read(pylog.scan(log.parent, threads=threads, window_bytes=1 << 15))


def test_a_range_of_time_and_offsets_too(log: Path) -> None:
    where = pylog.RecordFilter(min_timestamp=5)
    table = pylog.scan(log.parent, start=1005, where=where, leave_page_cache=True).to_table()
    assert cached_pages(log) == list(CACHED)
    assert table == pylog.scan(log.parent, start=1005, where=where).to_table()


def test_a_task_in_another_process_knows_of_it(log: Path) -> None:
    scan = pylog.scan(log.parent, leave_page_cache=True, min_partitions=4)
    assert sum(batch.num_rows for task in scan.plan() for batch in task.read()) == 4000
    assert cached_pages(log) == list(CACHED)


def test_tables_leave_it_too(log: Path) -> None:
    table = pylog.read_table(log.parent, "batches", check_crc=True, leave_page_cache=True)
    assert table.num_rows == 400
    assert cached_pages(log) == list(CACHED)


def test_a_read_that_is_not_asked_to_fills_it(log: Path) -> None:
    assert pylog.scan(log.parent).to_table().num_rows == 4000
    assert len(cached_pages(log)) > len(CACHED)
    drop(log)
