from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pylog.files.durable_io import DurableIO
from pylog.indexes.index_entry_writer import IndexEntryWriter
from pylog.indexes.offset_index import OffsetIndex
from pylog.indexes.time_index import TimeIndex
from pylog.record.batch_header import parse_batch_header
from pylog.record.batch_scan import find_batches
from tests.support.batches import Stored, batch_v2

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

BASE = 40
INDEX_BYTES = 1200
INTERVAL = 300


class Written(NamedTuple):
    """What stands in the indexes."""

    offsets: Sequence[tuple[int, int]]
    times: Sequence[tuple[int, int]]
    max_timestamp_so_far: tuple[int, int]


class Segment:
    """The two indexes of a segment and their writer."""

    def __init__(self, directory: Path) -> None:
        io = DurableIO()
        self.offset_index = OffsetIndex(directory / "a.index", BASE, INDEX_BYTES, io)
        self.time_index = TimeIndex(directory / "a.timeindex", BASE, INDEX_BYTES, io)
        self.writer = IndexEntryWriter(self.offset_index, self.time_index, INTERVAL)
        self.writer.reset()

    def add(self, data: bytes) -> None:
        position = 0
        while position < len(data):
            header = parse_batch_header(memoryview(data), position)
            self.writer.add(header, position)
            position += header.size_bytes

    def add_all(self, data: bytes, position: int = 0) -> None:
        self.writer.add_all(find_batches(np.frombuffer(data, dtype=np.uint8)).headers, position)

    @property
    def written(self) -> Written:
        return Written(
            [self.offset_index.entry(at) for at in range(self.offset_index.entries)],
            [self.time_index.entry(at) for at in range(self.time_index.entries)],
            self.writer.max_timestamp_so_far,
        )


def batches_of(facts: list[tuple[int, int]]) -> list[bytes]:
    """Return batches of one record, with a timestamp and a value of so many bytes each."""
    return [
        batch_v2([Stored(BASE + at, timestamp, None, bytes(size))]).data
        for at, (timestamp, size) in enumerate(facts)
    ]


def expected(batches: list[bytes], timestamps: list[int]) -> Written:
    """Return what the rule of the module's docstring says, in the simplest words."""
    offsets: list[tuple[int, int]] = []
    times: list[tuple[int, int]] = []
    largest = (-1, BASE)
    position, last_indexed = 0, 0
    for at, (data, timestamp) in enumerate(zip(batches, timestamps, strict=True)):
        if timestamp > largest[0]:
            largest = (timestamp, BASE + at)
        if position - last_indexed > INTERVAL:
            offsets.append((BASE + at, position))
            if largest[0] > (times[-1][0] if times else -1):
                times.append(largest)
            last_indexed = position
        position += len(data)
    return Written(offsets, times, largest)


@settings(deadline=None)
@given(
    facts=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 400)), min_size=1, max_size=30),
    data=st.data(),
)
def test_entries_follow_the_rule_however_the_batches_come(
    tmp_path_factory: pytest.TempPathFactory,
    facts: list[tuple[int, int]],
    data: st.DataObject,
) -> None:
    batches = batches_of(facts)
    written = expected(batches, [timestamp for timestamp, _ in facts])
    one_by_one = Segment(tmp_path_factory.mktemp("add"))
    one_by_one.add(b"".join(batches))
    assert one_by_one.written == written
    in_windows = Segment(tmp_path_factory.mktemp("add_all"))
    cut = data.draw(st.integers(1, len(batches)))
    head, tail = b"".join(batches[:cut]), b"".join(batches[cut:])
    in_windows.add_all(head)
    if tail:
        in_windows.add_all(tail, len(head))
    assert in_windows.written == written


def test_an_entry_needs_more_bytes_than_the_interval(tmp_path: Path) -> None:
    size = next(n for n in range(INTERVAL) if len(batches_of([(0, n)])[0]) == INTERVAL)
    data = b"".join(batches_of([(10, size)] * 5))
    for name in ("add", "add_all"):
        directory = tmp_path / name
        directory.mkdir()
        segment = Segment(directory)
        getattr(segment, name)(data)
        assert segment.written.offsets == [(42, 2 * INTERVAL), (44, 4 * INTERVAL)]


def test_taking_back_forgets_what_came_since_the_mark(tmp_path: Path) -> None:
    segment = Segment(tmp_path)
    first, second, third = batches_of([(10, 300), (90, 300), (20, 300)])
    segment.add(first)
    segment.writer.mark()
    segment.writer.add(parse_batch_header(memoryview(second)), len(first))
    assert segment.written == ([(41, len(first))], [(90, 41)], (90, 41))
    segment.writer.take_back()
    segment.offset_index.truncate_to(41)
    segment.time_index.truncate_to(41)
    segment.writer.add(parse_batch_header(memoryview(third)), len(first))
    assert segment.written == ([(42, len(first))], [(20, 42)], (20, 42))


def test_bytes_are_counted_anew_after_a_cut(tmp_path: Path) -> None:
    segment = Segment(tmp_path)
    first, second = batches_of([(10, 300), (20, 300)])
    segment.add(first)
    segment.writer.restart_byte_count()
    segment.writer.add(parse_batch_header(memoryview(second)), len(first))
    assert segment.written == ([], [], (20, 41))


def test_the_last_time_entry_is_forced_only_if_there_is_something_new(tmp_path: Path) -> None:
    segment = Segment(tmp_path)
    segment.writer.force_last_time_entry()
    assert segment.written.times == []
    segment.add(b"".join(batches_of([(10, 0), (7, 0)])))
    segment.writer.force_last_time_entry()
    segment.writer.force_last_time_entry()
    assert segment.written.times == [(10, 40)]
    again = IndexEntryWriter(segment.offset_index, segment.time_index, INTERVAL)
    again.maybe_force_last_time_entry()
    assert again.max_timestamp_so_far == (10, 40)
