"""Which bytes of which files a repaired copy of a log has, and what it lacks.

What is intact, and in its place, is copied as it is. Batches that are intact and do not stand where
they belong are put there: segments that carry each other's names, a run that was written twice,
batches in a wrong order, a batch that shares its first offset with the marker before it, and what
``.deleted``, ``.cleaned`` and ``.swap`` files hold of offsets that are gone. An intact batch is one
whose checksum is right and whose records can be decoded.

The checksum does not cover the base offset. So such a batch is taken only

* where the offsets that it says are not those of a sound batch, but for one that it shares with a
  marker before it: consumers skip a record below the offset that they ask for;
* within what is known to have been in the log;
* if it is not alone between two sound batches that leave just the room for it: then its offset is
  what is wrong, and the copy has it with the right one.

Where segments overlap, the copy has what a consumer gets that reads from the start.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import (
    CorruptCheckpointError,
    CorruptRecordError,
    InvalidRecordError,
    LogDirectoryError,
)
from pylog.files.clean_shutdown import has_clean_shutdown
from pylog.files.file_names import (
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_FILE_SUFFIX,
    RECOVERY_POINT_CHECKPOINT,
    find_segment_file_name,
)
from pylog.files.storage import list_directory, open_file
from pylog.findings import kinds
from pylog.findings.finding import Effect
from pylog.locations import name_of
from pylog.log_file.batch_walk import has_valid_checksum, read_header, walk_headers
from pylog.log_file.segment_windows import SegmentWindows
from pylog.reading.segments import LogSegmentView
from pylog.record.batch_header import MAGIC_VALUE_V2
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pylog.checks.partition_check import PartitionCheck
    from pylog.reading.damage import DamagedRange
    from pylog.reading.log_view import LogView

_NO_LIMIT = 2**63
_MOST_BYTES = 1 << 30
"""A batch that is larger is not looked into."""


class Piece(NamedTuple):
    """Bytes ``[start, end)`` of a ``.log`` file."""

    segment: LogSegmentView
    start: int
    end: int
    base_offset: int | None = None  # that its batch gets, if it says another one


class SegmentCopy(NamedTuple):
    """A segment of the copy, and the pieces of which it consists, in order."""

    base_offset: int
    pieces: list[Piece]

    @property
    def size_bytes(self) -> int:
        """Size of the ``.log`` file that the segment gets."""
        return sum(each.end - each.start for each in self.pieces)


class Rescue(NamedTuple):
    """The pieces of which a repaired copy of a log consists."""

    segments: list[SegmentCopy]
    in_place: list[tuple[int, int]]  # offsets ``[start, end)`` of batches that stood elsewhere
    # Of them, what only files hold that a broker deletes when it starts, by their paths.
    in_leftovers: dict[str, list[tuple[int, int]]]


class _Batch(NamedTuple):
    """A batch that is intact; sorts as it belongs into the log."""

    first_offset: int
    last_offset: int
    is_control: bool
    segment: int
    start: int
    end: int
    is_moved: bool = False  # it says other offsets


def rescue(check: PartitionCheck) -> Rescue:
    """Return the segments of a repaired copy of a log."""
    segments = check.view.segments
    foreign = () if check.start is None else check.start.foreign_swaps
    bases, sound = [], []
    for index, segment in enumerate(segments):
        ranges = list(_sound_ranges(_damaged_in(check, segment), check.segment_ends[index]))
        base, ranges = _consumed(check.view, index, ranges)
        bases.append(base)
        sound.append([] if segment.file_path() in foreign else ranges)
    replaced = [
        (each.base_offset, _held_end(check)) for each in segments if each.file_path() in foreign
    ]
    gone = _united([*_gone(check, check.end_offset, evidence_end(check)), *replaced])
    sources = [*segments, *_leftovers(check, gone)]
    misplaced = {
        batch
        for index, segment in enumerate(sources)
        for batch in (
            _misplaced(check, segment, index)
            if index < len(segments)
            else _intact(segment, index, 0, segment.size_bytes)
        )
    }
    if misplaced:
        known = _sound_batches(segments, sound)
        placed = _placed(check, known, sorted(misplaced), gone, len(segments))
        if placed:
            return Rescue(
                _merged(sources, sorted([*known, *placed])),
                [(each.first_offset, each.last_offset + 1) for each in placed],
                _in_leftovers(sources, placed, len(segments)),
            )
    copies = []
    for index, (segment, ranges) in enumerate(zip(segments, sound, strict=True)):
        is_passed_over = check.view.first_consumed(index) > segment.base_offset
        # An empty one may be what compaction left; the last one says where the log ends.
        is_empty = not _damaged_in(check, segment) or segment is segments[-1]
        if ranges or (is_empty and not is_passed_over):
            pieces = [Piece(segment, start, end) for start, end in ranges]
            copies.append(SegmentCopy(bases[index], pieces))
    return Rescue(copies, [], {})


def _in_leftovers(
    sources: Sequence[LogSegmentView], placed: Iterable[_Batch], segments: int
) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for each in placed:
        if each.segment >= segments and sources[each.segment].state:
            ranges = found.setdefault(sources[each.segment].file_path(), [])
            ranges.append((each.first_offset, each.last_offset + 1))
    return {path: _united(ranges) for path, ranges in found.items()}


def _consumed(
    view: LogView, index: int, sound: list[tuple[int, int]]
) -> tuple[int, list[tuple[int, int]]]:
    """Return what a consumer from the log's start gets of a segment, and its name in the copy."""
    segment, first = view.segments[index], view.first_consumed(index)
    if first <= segment.base_offset:
        return segment.base_offset, sound
    with segment.open_log() as source:
        for place, (start, end) in enumerate(sound):
            for batch in walk_headers(source, start, end):
                if batch.header.last_offset >= first:
                    base = batch.header.base_offset
                    name = max(segment.base_offset, first if base is None else base)
                    return name, [(batch.position, end), *sound[place + 1 :]]
    return segment.base_offset, []


def kept_of_overlaps(view: LogView) -> list[tuple[int, int, str]]:
    """Return offsets ``[start, end)`` that two segments hold, and the file that is copied."""
    consumed = [place for place, _ in view.consumed_segments(view.local_log_start_offset)]
    return [
        (following, limit, name_of(view.segments[place].file_path()))
        for place in consumed
        for following, limit in [(view.next_base_offset(place), view.limit_offset(place))]
        if following is not None and limit is not None and following < limit
    ]


def _leftovers(check: PartitionCheck, gone: list[tuple[int, int]]) -> list[LogSegmentView]:
    """Return files of segments that were deleted, or that a broken ``.swap`` file would replace.

    Not where compaction has removed them, nor retention: those are not gone.
    """
    directory = check.view.directory.path
    read = {each.file_path() for each in check.view.segments}
    is_broken = check.start is not None and check.start.broken_swap is not None
    found = []
    for entry in list_directory(directory) if gone else ():
        name = find_segment_file_name(entry.name)
        if name is None or name.suffix != LOG_FILE_SUFFIX or entry.path in read or entry.is_dir():
            continue
        begins_there = any(start <= name.base_offset < end for start, end in gone)
        if begins_there if name.state else is_broken:
            with open_file(entry.path) as source:
                size = source.size()
            suffixes = frozenset({LOG_FILE_SUFFIX})
            found.append(LogSegmentView(directory, name.base_offset, size, suffixes, name.state))
    return found


def _damaged_in(check: PartitionCheck, segment: LogSegmentView) -> list[DamagedRange]:
    path = segment.file_path()
    return [each for each in check.damaged if each.path == path]


def _sound_ranges(damaged: Iterable[DamagedRange], end: int) -> Iterator[tuple[int, int]]:
    """Yield what lies between damaged ranges, up to the end of the last whole batch."""
    start = 0
    for each in damaged:
        if start < each.position:
            yield start, each.position
        start = each.end_position
    if start < end:
        yield start, end


def _misplaced(check: PartitionCheck, segment: LogSegmentView, index: int) -> Iterator[_Batch]:
    """Yield the intact batches at the beginnings of what is damaged in a segment."""
    for damaged in _damaged_in(check, segment):
        if damaged.is_unreadable:  # a folder
            continue
        found = list(_intact(segment, index, damaged.position, damaged.end_position))
        if len(found) == 1 and found[0].end == damaged.end_position:
            room = (damaged.end_offset or 0) - damaged.next_offset
            if found[0].last_offset - found[0].first_offset + 1 == room:
                if damaged.is_kept:
                    first, last = damaged.next_offset, damaged.next_offset + room - 1
                    yield found[0]._replace(first_offset=first, last_offset=last, is_moved=True)
                continue
        yield from found


def _intact(segment: LogSegmentView, index: int, position: int, end: int) -> Iterator[_Batch]:
    """Yield the intact batches from a byte on, up to the first that is not."""
    with segment.open_log() as source:
        while position < end:
            try:
                batch = read_header(source, position, end)
                if batch is None or not has_valid_checksum(source, batch):
                    return
                header = batch.header
                if header.size_bytes <= _MOST_BYTES:
                    for _ in RecordBatch(source.read_at(position, header.size_bytes)).records():
                        pass
            except (CorruptRecordError, InvalidRecordError):
                return
            is_control = header.magic == MAGIC_VALUE_V2 and header.is_control_batch
            place = index, position, batch.end_position
            yield _Batch(header.offset, header.last_offset, is_control, *place)
            position = batch.end_position


def _sound_batches(
    segments: Sequence[LogSegmentView], sound: list[list[tuple[int, int]]]
) -> list[_Batch]:
    batches = []
    for index, ranges in enumerate(sound):
        if not ranges:
            continue
        with segments[index].open_log() as source:
            for start, end in ranges:
                for window in SegmentWindows(source, start, end):
                    headers, at = window.headers, window.file_position
                    batches += [
                        _Batch(first, last, is_control, index, at + position, at + position + size)
                        for first, last, is_control, position, size in zip(
                            headers.offsets.tolist(),
                            headers.last_offsets.tolist(),
                            headers.is_control.tolist(),
                            headers.positions.tolist(),
                            headers.sizes_bytes.tolist(),
                            strict=True,
                        )
                    ]
    return sorted(batches)


def _placed(
    check: PartitionCheck,
    known: list[_Batch],
    misplaced: list[_Batch],
    gone: list[tuple[int, int]],
    segments: int,
) -> list[_Batch]:
    """Return which of the batches belong into the log; both lists are sorted.

    Those of other files than the ``segments`` first ones only fill what is gone.
    """
    limit = max(check.end_offset, evidence_end(check))
    lowest = min([each.base_offset for each in check.view.segments] + [start for start, _ in gone])
    placed: list[_Batch] = []
    for batch in misplaced:
        first, last = batch.first_offset, batch.last_offset
        fills = any(start <= first and last < end for start, end in gone)
        if first < lowest or last >= limit or (batch.segment >= segments and not fills):
            continue
        after = _after(known, batch)
        is_free = after is None or last < after.first_offset
        for each in (_before(known, batch), _before(placed, batch)):
            if each is not None and each.last_offset >= first:
                shares_marker = each.is_control and each.last_offset == first < last
                is_free = is_free and shares_marker
        if is_free:
            placed.append(batch)
    return placed


def _before(batches: list[_Batch], batch: _Batch) -> _Batch | None:
    index = bisect_right(batches, (batch.first_offset, batch.last_offset, True))
    return batches[index - 1] if index else None


def _after(batches: list[_Batch], batch: _Batch) -> _Batch | None:
    index = bisect_right(batches, (batch.first_offset, batch.last_offset, True))
    return batches[index] if index < len(batches) else None


def _merged(sources: list[LogSegmentView], batches: list[_Batch]) -> list[SegmentCopy]:
    """Return segments that hold all of it, each batch in the segment whose name says so.

    Where a file has got another name, there may be batches before all names, and one across it.
    """
    firsts = [each.first_offset for each in batches]
    names = {each.base_offset for each in sources}

    def is_within_a_batch(base: int) -> bool:
        before = bisect_left(firsts, base) - 1
        return before >= 0 and batches[before].last_offset >= base

    bases = sorted({min(*names, firsts[0]), *names})
    bases = [each for each in bases if not is_within_a_batch(each)]
    copies = [SegmentCopy(base, []) for base in bases]
    for batch in batches:
        pieces = copies[max(0, bisect_right(bases, batch.first_offset) - 1)].pieces
        segment = sources[batch.segment]
        last = pieces[-1] if pieces else None
        if batch.is_moved:
            pieces.append(Piece(segment, batch.start, batch.end, batch.first_offset))
        elif last and last.segment is segment and last[2:] == (batch.start, None):
            pieces[-1] = last._replace(end=batch.end)
        else:
            pieces.append(Piece(segment, batch.start, batch.end))
    return [each for each in copies if each.pieces or each is copies[-1]]


# ---- what there was


class _Claim(NamedTuple):
    """Up to which offset a log reached, according to a side file."""

    name: str
    end_offset: int
    is_exact: bool  # whether a log that ends there cannot have reached further


_NO_CLAIM = _Claim("", 0, is_exact=False)


def _claims(check: PartitionCheck) -> list[_Claim]:
    """Return what side files say of the end of a log; those that name an end, or an epoch's start.

    At a clean stop all of them are written, and are right. Before it, the high watermark follows
    the end within seconds, and others are written when a segment ends.
    """
    view = check.view
    is_clean = has_clean_shutdown(view.directory.log_directory)
    claims = [
        _Claim(name, check.recorded_offsets[name], is_clean or name == HIGH_WATERMARK_CHECKPOINT)
        for name in (RECOVERY_POINT_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT)
        if name in check.recorded_offsets
    ]
    claims += [
        _Claim("the newest producer snapshot", offset, is_clean)
        for offset in sorted(view.producer_snapshot_offsets)[-1:]
    ]
    with suppress(CorruptCheckpointError, LogDirectoryError):
        claims += [
            _Claim(LEADER_EPOCH_CHECKPOINT, each.start_offset, is_exact=False)
            for each in view.leader_epochs[-1:]
        ]
    return claims


def evidence_end(check: PartitionCheck) -> int:
    """Return the highest offset that anything says a log has reached."""
    return max([_held_end(check), *(each.end_offset for each in _claims(check))])


def _held_end(check: PartitionCheck) -> int:
    """Return where batches end that a broken ``.swap`` file replaces, or that no log is beside."""
    ends = [0]
    if check.start is not None and check.start.broken_swap is not None:
        ends.append(check.start.broken_swap.end_offset or 0)
    if not check.view.segments:
        everything = [(0, _NO_LIMIT)]
        for segment in _leftovers(check, everything):
            ends += [each.last_offset + 1 for each in _intact(segment, 0, 0, segment.size_bytes)]
    return max(ends)


def _doubtful(check: PartitionCheck) -> tuple[_Claim, _Claim] | None:
    """Return the highest claim of a log's end if another one contradicts it, and that one."""
    *others, highest = sorted(_claims(check), key=attrgetter("end_offset")) or [_NO_CLAIM]
    if not others or highest.end_offset <= max(check.end_offset, _held_end(check)):
        return None
    is_alone = others[-1].end_offset < highest.end_offset
    against = next((each for each in reversed(others) if each.is_exact), None)
    return (highest, against) if is_alone and against is not None else None


def doubt(check: PartitionCheck) -> str | None:
    """Return what one side file alone says of the end of a log, against what the others say."""
    found = _doubtful(check)
    if found is None:
        return None
    alone, against = found
    return (
        f"{alone.name} alone says that the log reached offset {alone.end_offset}; according to "
        f"{against.name} it reached {against.end_offset}"
    )


def _proved_end(check: PartitionCheck) -> int:
    """Return the offset that a log has reached, without what one file alone says against others."""
    found = _doubtful(check)
    ends = [each.end_offset for each in _claims(check) if found is None or each != found[0]]
    return max([_held_end(check), *ends])


def lacking(
    check: PartitionCheck, in_place: Iterable[tuple[int, int]], end_offset: int
) -> list[tuple[int, int]]:
    """Return the offsets ``[start, end)`` that were in a log, and are not in its copy."""
    end = _proved_end(check)
    gone = _gone(check, end_offset, end)
    for start, stop in in_place:
        gone = [
            part
            for first, last in gone
            for part in ((first, min(last, start)), (max(first, stop), last))
            if part[0] < part[1]
        ]
    return _united(gone)


def _gone(check: PartitionCheck, end_offset: int, evidence: int) -> list[tuple[int, int]]:
    """Return the offsets ``[start, end)`` that findings miss, and those up to an end."""
    gone = [
        (each.next_offset, each.end_offset)
        for each in check.findings
        if each.kind in _LOSSES or each.effect is Effect.GONE
        if each.next_offset is not None and each.end_offset is not None
    ]
    return [*gone, (end_offset, evidence)] if evidence > end_offset else gone


_LOSSES = (
    kinds.DAMAGED_BATCHES,
    kinds.MISNAMED_SEGMENT,
    kinds.MISSING_SEGMENT,
    kinds.OFFSET_GAP,
    kinds.LOST_AT_START,  # to a .swap file
)


def _united(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    united: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if united and start <= united[-1][1]:
            united[-1] = (united[-1][0], max(united[-1][1], end))
        elif start < end:
            united.append((start, end))
    return united
