"""Intact batches that the recovery of a log would drop, and who lets it.

A broker's recovery cuts a log at the first byte that is wrong: the rest of that segment goes, and
so do all later segments. That is right for a broker, which gets the records back from its replicas.
In a directory that may be the only copy it is a loss. So recovery looks at what it is about to
drop, and refuses if there is an intact batch in it; see `pylog.config.RecoveryMode`.

A batch is intact if its checksum is right, whatever its offsets are. What a crash leaves has none:
a torn batch or zeros at the end of the last segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptRecordError, RecoveryRefusedError
from pylog.log_file.resynchronisation import find_next_batch
from pylog.log_file.segment_windows import SegmentWindows
from pylog.record.batch_scan import find_bad_checksum

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylog.files.byte_source import ByteSource
    from pylog.log.log_segment import LogSegment


class IntactRecords(NamedTuple):
    """Intact batches, and how many records they have; wrappers of v0 and v1 count as one."""

    batches: int = 0
    records: int = 0

    def __add__(self, other: IntactRecords) -> IntactRecords:  # type: ignore[override]
        return IntactRecords(self.batches + other.batches, self.records + other.records)


class Damage(NamedTuple):
    """What is wrong with a segment, and from which byte on a broker's recovery drops it."""

    segment: LogSegment
    position: int
    reason: str


def ensure_nothing_intact(damage: Damage, later: Iterable[LogSegment]) -> None:
    """Raise `RecoveryRefusedError` if there are intact batches after the damage or in ``later``."""
    segment = damage.segment
    dropped = _intact_in(segment.log, damage.position, segment.base_offset)
    for each in later:
        dropped += _intact_in(each.log, 0, each.base_offset)
    if dropped.batches:
        raise RecoveryRefusedError(damage.reason, segment.log.path, damage.position, *dropped)


def _intact_in(source: ByteSource, position: int, lowest_offset: int) -> IntactRecords:
    found = IntactRecords()
    for each in _runs_of_intact(source, position, lowest_offset):
        found += each
    return found


def _runs_of_intact(
    source: ByteSource, position: int, lowest_offset: int
) -> Iterator[IntactRecords]:
    """Yield the intact batches between one damage and the next."""
    end = source.size()
    while position < end:
        windows = SegmentWindows(source, position, end)
        try:
            for window in windows:
                bad = find_bad_checksum(window)
                count = len(window.headers) if bad is None else bad.index
                headers = window.headers.select(slice(0, count))
                if count:
                    lowest_offset = max(lowest_offset, int(headers.last_offsets[-1]) + 1)
                    yield IntactRecords(count, int(headers.record_counts.clip(min=1).sum()))
                if bad is not None:
                    position = window.file_position + int(window.headers.positions[bad.index])
                    break
            else:
                position = windows.tail.position
        except CorruptRecordError as error:
            position = error.position if error.position is not None else end
        if position < end:
            position = find_next_batch(source, position, end, lowest_offset=lowest_offset)
