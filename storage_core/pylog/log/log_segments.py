"""The segments of a log by base offset: read without a lock, changed under the log's.

Source: LogSegments (Kafka 4.3).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylog.log.log_segment import LogSegment


class _Sorted(NamedTuple):
    bases: tuple[int, ...]
    segments: tuple[LogSegment, ...]


class LogSegments:
    """A sorted map that is replaced as a whole at every change.

    Any number of readers; each method sees one state. Writers hold the log's lock.
    """

    __slots__ = ("_now",)

    def __init__(self, segments: Iterable[LogSegment] = ()) -> None:
        self._now = _Sorted((), ())
        self._set(segments)

    def _set(self, segments: Iterable[LogSegment]) -> None:
        ordered = tuple(sorted(segments, key=lambda segment: segment.base_offset))
        self._now = _Sorted(tuple(segment.base_offset for segment in ordered), ordered)

    def __len__(self) -> int:
        return len(self._now.bases)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._now.segments)

    def __contains__(self, base_offset: int) -> bool:
        return self.get(base_offset) is not None

    def add(self, segment: LogSegment) -> None:
        """Add a segment; one of the same base offset is replaced."""
        self.replace((), (segment,))

    def remove(self, base_offset: int) -> None:
        """Remove the segment with a base offset, if there is one."""
        self._set(each for each in self._now.segments if each.base_offset != base_offset)

    def replace(self, old: Iterable[LogSegment], new: Iterable[LogSegment]) -> None:
        """Remove and add several segments at once; readers see all of it or nothing."""
        new = list(new)
        gone = {id(segment) for segment in old}
        bases = {segment.base_offset for segment in new}
        kept = [
            each
            for each in self._now.segments
            if id(each) not in gone and each.base_offset not in bases
        ]
        self._set([*kept, *new])

    def get(self, base_offset: int) -> LogSegment | None:
        """Return the segment with exactly this base offset."""
        segment = self.floor_segment(base_offset)
        return segment if segment is not None and segment.base_offset == base_offset else None

    def floor_segment(self, offset: int) -> LogSegment | None:
        """Return the last segment whose base offset is not above ``offset``."""
        now = self._now
        index = bisect_right(now.bases, offset) - 1
        return now.segments[index] if index >= 0 else None

    def higher_segment(self, offset: int) -> LogSegment | None:
        """Return the first segment whose base offset is above ``offset``."""
        now = self._now
        index = bisect_right(now.bases, offset)
        return now.segments[index] if index < len(now.bases) else None

    def values(self, start_offset: int, end_offset: int) -> tuple[LogSegment, ...]:
        """Return the segments that may hold offsets ``[start_offset, end_offset)``."""
        if end_offset < start_offset:
            msg = f"range ends at {end_offset}, before it begins at {start_offset}"
            raise ValueError(msg)
        if start_offset == end_offset:
            return ()
        now = self._now
        first = max(0, bisect_right(now.bases, start_offset) - 1)
        return now.segments[first : bisect_left(now.bases, end_offset)]

    def values_from(self, base_offset: int) -> tuple[LogSegment, ...]:
        """Return the segments whose base offset is at or above ``base_offset``."""
        now = self._now
        return now.segments[bisect_left(now.bases, base_offset) :]

    @property
    def first_segment(self) -> LogSegment:
        """The oldest segment; ``IndexError`` if there is none."""
        return self._now.segments[0]

    @property
    def active_segment(self) -> LogSegment:
        """The newest segment, which is appended to; ``IndexError`` if there is none."""
        return self._now.segments[-1]

    @property
    def base_offsets(self) -> tuple[int, ...]:
        """All base offsets, in order."""
        return self._now.bases

    @property
    def size_bytes(self) -> int:
        """Length of all ``.log`` files."""
        return sum(segment.size_bytes for segment in self._now.segments)
