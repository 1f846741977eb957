"""A wrapper's first offset is known once it is decompressed, and held against what is before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import MisplacedBatchError
from tests.support.batches import (
    Stored,
    batch_v2,
    plain_records,
    wrapper,
    wrapper_of,
)
from tests.support.codecs import gzip_member
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

VALUE = b"v" * 10_000


def moved(data: bytes, offset: int) -> bytes:
    """Return an entry with another offset, which lies outside its checksum."""
    return offset.to_bytes(8, "big") + data[8:]


def test_after_a_batch_of_format_v2(tmp_path: Path) -> None:
    before = batch_v2(plain_records(0, 10))
    following = wrapper([Stored(n, n, None, b"v") for n in range(10, 20)], magic=1, codec="gzip")
    directory = write_partition(tmp_path, {0: [before]}, with_index=False)
    log = directory / f"{0:020d}.log"
    log.write_bytes(before.data + moved(following.data, 10))
    with pytest.raises(MisplacedBatchError, match="begin with offset 1, expected at least 10"):
        pylog.scan(directory).to_table()


@pytest.mark.parametrize("which", [1, 21, 42, 59])
def test_wherever_a_group_or_a_window_ends(tmp_path: Path, which: int) -> None:
    built = [
        wrapper([Stored(10 * number + n, n, None, VALUE) for n in range(10)], magic=1, codec="gzip")
        for number in range(60)
    ]
    entries = [each.data for each in built]
    entries[which] = moved(entries[which], 10 * which)
    directory = write_partition(tmp_path, {0: built}, with_index=False)
    (directory / f"{0:020d}.log").write_bytes(b"".join(entries))
    for window_bytes in (1_000, 1 << 22):
        with pytest.raises(MisplacedBatchError, match=f"expected at least {10 * which}$"):
            pylog.scan(directory, window_bytes=window_bytes).to_table()


def test_batches_that_are_decoded_once_more_are_not_taken_for_misplaced(tmp_path: Path) -> None:
    built = [
        wrapper([Stored(10 * number + n, n, None, VALUE) for n in range(10)], magic=1, codec="gzip")
        for number in range(59)
    ]
    empty = wrapper_of(gzip_member(b""), offset=590, magic=1, codec="gzip")
    directory = write_partition(tmp_path, {0: built}, with_index=False)
    with (directory / f"{0:020d}.log").open("ab") as log:
        log.write(empty)
    where = pylog.RecordFilter(min_timestamp=-5)
    scan = pylog.scan(directory, where=where, mode="DROPMALFORMED")
    assert scan.to_table().column("offset").to_pylist() == list(range(590))
    assert "holds no inner message" in scan.damage.ranges[0].reason
    assert len(scan.damage.ranges) == 1
