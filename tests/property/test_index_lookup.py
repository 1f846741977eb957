"""Whatever the index files say, look-ups answer what a linear search answers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pylog
from pylog.model import TimestampOffset
from pylog.reading.offset_resolution import find_max_timestamp, find_offset_for_timestamp
from tests.support import strategies
from tests.support.batches import Built, Stored
from tests.support.log_files import (
    offset_entries,
    offset_index_bytes,
    segment_path,
    time_entries,
    time_index_bytes,
    write_log_start_offsets,
    write_segment,
)
from tests.support.reading import scanned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pylog.reading.log_view import LogView

# Far from 0, so that no bytes drawn at random are an entry that the log bears out.
LATE = st.integers(1_600_000_000_000, 1_600_000_000_300)
SEGMENTS = strategies.segments(strategies.any_batch(LATE), max_size=12)


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


@st.composite
def damaged(draw: st.DrawFn, content: bytes, entry_size: int) -> bytes | None:
    """Draw what may be left of an index file: the truth, less of it, more, or none of it."""
    kind = draw(st.sampled_from(("true", "missing", "cut", "zeros", "garbage", "mutated", "stale")))
    match kind:
        case "true":
            return content
        case "missing":
            return None
        case "cut":
            return content[: draw(st.integers(0, len(content)))]
        case "zeros":
            return content + bytes(draw(st.sampled_from((1, entry_size, 40 * entry_size))))
        case "garbage":
            return draw(st.binary(max_size=10 * entry_size))
        case "mutated":
            return draw(strategies.mutated(content))
    # Entries at the end that point past the log's end: of what a crash took away.
    return content + bytes([0x7F]) * entry_size * draw(st.integers(1, 3))


def write_indexes(directory: Path, base: int, batches: list[Built], data: st.DataObject) -> None:
    every, first = data.draw(st.integers(1, 3)), data.draw(st.booleans())
    entries = offset_entries(batches, every=every, first_offsets=first)
    stamps = time_entries(batches, every=every)
    for suffix, content, size in (
        (".index", offset_index_bytes(entries, base), 8),
        (".timeindex", time_index_bytes(stamps, base), 12),
    ):
        kept = data.draw(damaged(content, size), label=suffix)
        if kept is not None:
            segment_path(directory, base, suffix).write_bytes(kept)


def linear(batches: list[Built], fits: Callable[[Built], bool]) -> int | None:
    """Return the position of the first batch that fits."""
    position = 0
    for built in batches:
        if fits(built):
            return position
        position += len(built.data)
    return None


@given(SEGMENTS, st.data())
def test_find_batch_is_a_linear_search(
    scratch: Path, batches: list[Built], data: st.DataObject
) -> None:
    base = batches[0].base_offset if batches else 0
    with tempfile.TemporaryDirectory(dir=scratch, suffix="-0") as root:
        write_segment(Path(root), base, batches, with_index=False, with_time_index=False)
        write_indexes(Path(root), base, batches, data)
        (view,) = pylog.open_directory(root)
        segment = view.segments[0]
        with segment.open_log() as source:
            for target in [base, *(b.last_offset + near for b in batches for near in (-1, 0, 1))]:
                found = segment.find_batch(source, target, segment.size_bytes)
                expected = linear(batches, lambda built, at=target: built.last_offset >= at)  # type: ignore[misc]
                assert (None if found is None else found.position) == expected
        assert view.log_end_offset == (batches[-1].last_offset + 1 if batches else base)


Log = list[tuple[int, list[Built]]]
"""Segments by base offset."""


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Draw the batches of one to three segments, offsets going up."""
    contents = draw(
        st.lists(st.lists(strategies.any_batch(LATE), max_size=5), min_size=1, max_size=3)
    )
    log: Log = []
    base = draw(st.sampled_from((0, 100)))
    for builders in contents:
        batches = strategies.laid_out(base, builders)
        log.append((base, batches))
        # Compaction empties segments, which keep their names.
        base = batches[-1].last_offset + 1 if batches else base + 1
    return log


def write_log(root: Path, log: Log, data: st.DataObject) -> tuple[LogView, int]:
    directory = root / "orders-0"
    directory.mkdir()
    for base, batches in log:
        write_segment(directory, base, batches, with_index=False, with_time_index=False)
        write_indexes(directory, base, batches, data)
    log_start = 0
    offsets = [record.offset for record in records_of(log)]
    if offsets and data.draw(st.sampled_from((0, 1))):
        log_start = data.draw(st.integers(offsets[0], offsets[-1] + 1))
        write_log_start_offsets(root, {("orders", 0): log_start})
    return pylog.open_directory(root)["orders", 0], log_start


def records_of(log: Log) -> list[Stored]:
    return [record for _, batches in log for built in batches for record in built.records]


@given(logs(), st.data())
def test_offsets_by_timestamp_are_the_linear_definition(
    scratch: Path, log: Log, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory(dir=scratch) as root:
        view, log_start = write_log(Path(root), log, data)
        records = records_of(log)
        stamps = sorted({record.timestamp + near for record in records for near in (0, 1)})
        for stamp in [0, *(each for each in stamps if each >= 0), 2**63 - 1]:
            late = [r for r in records if r.timestamp >= stamp and r.offset >= log_start]
            expected = TimestampOffset(late[0].timestamp, late[0].offset) if late else None
            assert find_offset_for_timestamp(view, stamp) == expected


@given(logs(), st.data())
def test_the_max_timestamp_is_the_linear_definition(
    scratch: Path, log: Log, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory(dir=scratch) as root:
        view, _ = write_log(Path(root), log, data)
        records = records_of(log)
        highest = max((record.timestamp for record in records), default=-1)
        first = next((r for r in records if r.timestamp == highest), None)
        expected = TimestampOffset(highest, first.offset) if first and highest >= 0 else None
        assert find_max_timestamp(view) == expected


@given(logs(), st.data())
def test_a_scan_of_a_range_reads_just_its_records(
    scratch: Path, log: Log, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory(dir=scratch) as root:
        view, log_start = write_log(Path(root), log, data)
        span = st.integers(view.log_start_offset, view.log_end_offset)
        start, end = sorted((data.draw(span), data.draw(span)))
        visible = [record for _, batches in log for built in batches for record in built.visible]
        found = scanned(Path(root), start=start, end=end)
        assert found == [r for r in visible if max(start, log_start) <= r.offset < end]
