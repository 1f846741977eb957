"""``.log.swap`` files that a broker puts in the place of intact segments, and should not.

A broker asks nothing: it deletes every segment whose base offset lies in the range of the ``.swap``
files, and takes ``.swap`` off their names. What compaction, or the splitting of a segment, has
written is a whole file, forced to disk before it gets its name, and each of its records is one of
those that it replaces. So a file is not to be trusted

* that is empty, cut, or damaged;
* that has another record at an offset than the segments in its range, or goes on behind their
  end: but into a gap before the next segment, where it may have what is missing there;
* that lacks the last of their records, and the topic is not compacted.

Source: LogLoader.load, Cleaner.cleanInto (Kafka 4.4).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.files.file_names import DELETED_FILE_SUFFIX, LOG_FILE_SUFFIX, find_segment_file_name
from pylog.files.storage import is_folder, list_directory, open_file
from pylog.locations import join, name_of
from pylog.log_file.batch_walk import OFFSETS_IN_SEGMENT, walk_headers
from pylog.record.batch_header import MAGIC_VALUE_V2
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from pylog.files.byte_source import ByteSource
    from pylog.log_file.batch_walk import PositionedHeader
    from pylog.model import OffsetPosition
    from pylog.reading.segments import LogSegmentView
    from pylog.record.record import Record


class BrokenSwap(NamedTuple):
    """``.log.swap`` files that are not what was made from the segments that they replace."""

    path: str  # the first of them
    reason: str
    # Of what they replace, what is not in them; None if nothing is missing.
    next_offset: int | None
    end_offset: int | None
    foreign: tuple[str, ...] = ()  # those that have other records


def broken_swap(
    segments: Sequence[tuple[LogSegmentView, OffsetPosition]],
    replaced: Sequence[str],
    damaged: Container[str],
    *,
    keeps_records: bool,
) -> BrokenSwap | None:
    """Return what is wrong with the ``.swap`` files among the segments of a log.

    Each segment comes with the end of its last intact batch. ``replaced`` are the names of
    ``.log`` files that go, ascending; ``keeps_records`` tells that no cleaner removes records of
    the log, so that none may be missing.
    """
    swaps = [(each, end) for each, end in segments if each.state]
    if not swaps:
        return None
    directory = swaps[0][0].directory
    originals = sorted([*replaced, *_deleted(directory, swaps)])
    if not originals:
        return None
    paths = [join(directory, name) for name in originals]
    ranges = list(map(offsets_in_batches, paths))
    last = max(end for _, end in ranges)
    held = [
        (start, min(limit, end.offset) if each.state else limit)
        for each, end in segments
        for start, limit in [offsets_in_batches(each.file_path())]
    ]
    rest = _uncovered(ranges, held)
    bases = [each.base_offset for each, _ in segments]
    found = None
    foreign = []
    for segment, end in swaps:
        path = segment.file_path()
        # What comes after it is not replaced by it.
        following = min((base for base in bases if base > segment.base_offset), default=last)
        limit = min(last, following)
        is_whole = 0 < end.position == segment.size_bytes and path not in damaged
        offset = _first_foreign(path, paths, max(last, following)) if end.position else None
        if offset is not None:
            foreign.append(path)
            reason = f"has other records than those, from offset {offset} on"
            found = found or BrokenSwap(path, reason, offset, max(offset + 1, limit))
        elif not is_whole and replaced:
            lost = rest or (None, None)
            found = found or BrokenSwap(path, "is empty, cut, or damaged", *lost)
        elif keeps_records and replaced and rest is not None:
            reason = "lacks the last records of those, though the topic is not compacted"
            found = found or BrokenSwap(path, reason, *rest)
    return None if found is None else found._replace(foreign=tuple(foreign))


def _deleted(
    directory: str, swaps: Sequence[tuple[LogSegmentView, OffsetPosition]]
) -> Iterator[str]:
    """Yield the names of segments in the range of ``.swap`` files that are to be deleted."""
    lowest = swaps[0][0].base_offset
    limit = max(end.offset for _, end in swaps)
    for entry in list_directory(directory):
        name = find_segment_file_name(entry.name)
        if name is None or (name.suffix, name.state) != (LOG_FILE_SUFFIX, DELETED_FILE_SUFFIX):
            continue
        if lowest <= name.base_offset < limit and not is_folder(entry):
            yield entry.name


def end_of_batches(path: str) -> int:
    """Return the offset after all batches of a ``.log`` file that can be found."""
    return offsets_in_batches(path)[1]


def offsets_in_batches(path: str) -> tuple[int, int]:
    """Return the offsets ``[start, end)`` between which all batches that can be found lie.

    Their order does not matter to a broker; an offset far above those that fit the name is damage.
    """
    start = end = 0
    name = find_segment_file_name(name_of(path))
    base = 0 if name is None else name.base_offset
    with open_file(path) as source, suppress(CorruptRecordError):
        for batch in walk_headers(source, 0, source.size(), lowest_offset=None):
            if batch.header.last_offset - base < OFFSETS_IN_SEGMENT:
                start = min(start, batch.header.offset) if end else batch.header.offset
                end = max(end, batch.header.next_offset)
    return start, end


def _uncovered(
    ranges: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]
) -> tuple[int, int] | None:
    """Return from where to where offsets are in some ranges, and in no other; None if none are."""
    left = []
    for one in ranges:
        start, end = one
        for first, limit in sorted(others):
            start = limit if first <= start < limit else start
        for first, limit in sorted(others, reverse=True):
            end = first if first < end <= limit else end
        left += [(start, end)] if start < end else []
    return (min(left)[0], max(end for _, end in left)) if left else None


def _first_foreign(swap: str, originals: Sequence[str], last: int) -> int | None:
    """Return the first offset at which a file has a record that the originals do not have."""
    theirs = _Originals(originals)
    with open_file(swap) as source, suppress(CorruptRecordError, InvalidRecordError):
        for batch in walk_headers(source, 0, source.size()):
            header = batch.header
            if header.magic < MAGIC_VALUE_V2:
                return None  # a compressed message does not say where it begins
            if header.offset >= last:
                return header.offset
            others = theirs.overlapping(header.offset, header.last_offset)
            is_same = any(
                (each.header.offset, each.header.crc) == (header.offset, header.crc)
                for each, _ in others
            )
            if is_same:
                continue
            known = {
                one.offset: _content(one)
                for each, file in others
                if each.header.magic == MAGIC_VALUE_V2
                for one in _records(file, each)
            }
            for record in _records(source, batch):
                if known.get(record.offset, _content(record)) != _content(record):
                    return record.offset
    return None


class _Originals:
    """Batches of some files, in the order of their offsets, asked for from lower to higher ones."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._batches = self._walk(paths)
        self._seen: list[tuple[PositionedHeader, ByteSource]] = []

    def _walk(self, paths: Sequence[str]) -> Iterator[tuple[PositionedHeader, ByteSource]]:
        for path in paths:
            with open_file(path) as source, suppress(CorruptRecordError):
                for batch in walk_headers(source, 0, source.size(), lowest_offset=None):
                    yield batch, source

    def overlapping(self, start: int, last: int) -> list[tuple[PositionedHeader, ByteSource]]:
        """Return the batches with an offset from ``start`` to ``last``."""
        self._seen = [each for each in self._seen if each[0].header.last_offset >= start]
        while not self._seen or self._seen[-1][0].header.last_offset < last:
            following = next(self._batches, None)
            if following is None:
                break
            if following[0].header.last_offset >= start:
                self._seen.append(following)
        return [each for each in self._seen if each[0].header.offset <= last]


def _records(source: ByteSource, batch: PositionedHeader) -> Iterator[Record]:
    return RecordBatch(source.read_at(batch.position, batch.header.size_bytes)).records()


def _content(record: Record) -> tuple[object, ...]:
    return record.timestamp, record.key, record.value, record.headers
