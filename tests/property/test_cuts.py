"""Any cut of a valid segment keeps exactly the whole batches before the cut."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pylog
from pylog.errors import CorruptRecordError
from pylog.record.batch_scan import find_batches
from tests.support import strategies
from tests.support.batches import Built, batch_v2, joined, plain_records
from tests.support.log_files import segment_path, write_partition, write_segment
from tests.support.reading import as_buffer, scanned

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


def whole_before(batches: list[Built], cut: int) -> list[Built]:
    whole, position = [], 0
    for built in batches:
        position += len(built.data)
        if position > cut:
            break
        whole.append(built)
    return whole


@given(strategies.segments(), st.data())
def test_the_scan_of_a_buffer(batches: list[Built], data: st.DataObject) -> None:
    content = joined(batches)
    cut = data.draw(st.integers(0, len(content)))
    scan = find_batches(as_buffer(content[:cut]))
    whole = whole_before(batches, cut)
    assert scan.valid_bytes == len(joined(whole))
    assert scan.defect is None
    assert scan.headers.last_offsets.tolist() == [built.last_offset for built in whole]


@given(strategies.segments(min_size=1), st.data())
def test_the_last_segment_of_a_log_ends_before_the_cut(
    scratch: Path, batches: list[Built], data: st.DataObject
) -> None:
    base = batches[0].base_offset
    with tempfile.TemporaryDirectory(dir=scratch) as root:
        directory = write_partition(Path(root), {base: batches})
        path = segment_path(directory, base)
        size = path.stat().st_size
        cut = data.draw(st.integers(0, size))
        zeros = data.draw(st.sampled_from((0, 1, 16, 17, 100, 5_000)))
        whole = whole_before(batches, cut)
        # Zeros follow a torn batch only where the cut lies between two.
        tail = bytes(zeros) if cut == len(joined(whole)) else b""
        path.write_bytes(joined(batches)[:cut] + tail)
        assert scanned(directory) == [record for built in whole for record in built.visible]
        view = pylog.open_directory(directory)["orders", 0]
        assert view.log_end_offset == (whole[-1].last_offset + 1 if whole else base)


@given(strategies.segments(min_size=1), st.data())
def test_a_segment_in_the_middle_is_an_error_if_it_misses_records(
    scratch: Path, batches: list[Built], data: st.DataObject
) -> None:
    base, following = batches[0].base_offset, batches[-1].last_offset + 1
    with tempfile.TemporaryDirectory(dir=scratch) as root:
        directory = write_partition(Path(root), {base: batches})
        last = batch_v2(plain_records(following, 2))
        write_segment(directory, following, [last])
        path = segment_path(directory, base)
        cut = data.draw(st.integers(0, path.stat().st_size))
        path.write_bytes(joined(batches)[:cut])
        whole = whole_before(batches, cut)
        # A cut between two batches, and a cut batch that compaction emptied, cannot be noticed.
        if cut == len(joined(whole)):
            records = [record for built in [*whole, last] for record in built.visible]
            assert scanned(directory) == records
        else:
            with pytest.raises(CorruptRecordError, match="may be missing") as caught:
                scanned(directory)
            assert caught.value.path == str(path)
            assert caught.value.position == len(joined(whole))
