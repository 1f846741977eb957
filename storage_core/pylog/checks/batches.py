"""Batches: damage, torn tails, sizes, what only v0 and v1 can have, leader epochs."""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.checks.damaged_producers import producers_text
from pylog.checks.repeated_batches import first_repeated
from pylog.checks.swaps import end_of_batches
from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files import disk
from pylog.files.file_names import LEADER_EPOCH_CHECKPOINT
from pylog.files.storage import open_file
from pylog.findings import kinds
from pylog.findings.finding import Effect, Finding, Severity
from pylog.kernels.decode_records import NO_RECORD
from pylog.locations import join, name_of
from pylog.log_file.batch_walk import has_valid_checksum, is_zero, read_header
from pylog.log_file.segment_windows import DEFAULT_WINDOW_BYTES, WindowMemory
from pylog.model import NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP
from pylog.reading.checked_windows import CheckedWindows, ReadOptions
from pylog.reading.record_check import RecordCheck
from pylog.reading.slicing import open_slice, slice_of
from pylog.record.batch_header import (
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
    RECORD_BATCH_OVERHEAD,
    codec_of,
)
from pylog.record.compression import Decompressor
from pylog.record.legacy_batch import wrapped_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from pylog.checks.broker_start import BrokerStart
    from pylog.columnar.decode import DecodedGroup
    from pylog.files.leader_epochs import EpochEntry
    from pylog.model import OffsetPosition
    from pylog.reading.damage import DamagedRange, DamageReport
    from pylog.reading.log_view import LogView
    from pylog.reading.segments import LogSegmentView
    from pylog.record.batch_scan import BatchHeaders, Window


# All batches of a log in one walk: each window is read, checksummed and decoded once.
#
# Whoever looks at batches is shown the same windows. What is damaged is left out of them and
# noted, in two reports: what a broker that scans the log finds as well, and batches whose
# checksum is right while their records break the format, which only whoever decodes them
# notices. Those stay in the windows, since their headers are covered by the checksum.


class LogWalk:
    """Iterates the segments of a log, each of which iterates its windows. One thread, one walk."""

    def __init__(
        self,
        view: LogView,
        damage: DamageReport,
        *,
        max_decompressed_bytes: int,
        on_bytes: Callable[[int], None] | None = None,
        window_bytes: int = DEFAULT_WINDOW_BYTES,
    ) -> None:
        self.view = view
        self.damage = damage
        self.options = ReadOptions(
            window_bytes=window_bytes, max_decompressed_bytes=max_decompressed_bytes
        )
        self._on_bytes = on_bytes
        self.memory = WindowMemory()
        self.timestamps = TimestampFindings()
        self.records = RecordCheck(
            view.topic_partition,
            max_decompressed_bytes=max_decompressed_bytes,
            note=self.timestamps.add,
        )
        # batches whose records cannot be decoded; complete once a segment has been walked
        self.refused = self.records.damage

    def __iter__(self) -> Iterator[SegmentWalk]:
        """Yield the segments in offset order; each is to be walked before the next is asked for."""
        for index in range(len(self.view.segments)):
            yield SegmentWalk(self, index)
        self.records.end_segment()

    def note_bytes(self, size_bytes: int) -> None:
        """Report the bytes of a window as progress."""
        if self._on_bytes is not None:
            self._on_bytes(size_bytes)


class SegmentWalk:
    """Iterates the windows of one segment; see `LogWalk`."""

    def __init__(self, walk: LogWalk, index: int) -> None:
        self._walk = walk
        self.index = index
        # Which one, and its bytes
        self.segment: LogSegmentView = walk.view.segments[index]
        self.slice = slice_of(walk.view, index)
        # Byte and offset after the last sound batch, once all windows have been seen
        self.end_position = 0
        self.next_offset = self.segment.base_offset
        # Which batches of the window that was given last cannot be decoded
        self.is_refused: npt.NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)

    def __iter__(self) -> Iterator[Window]:
        opened = open_slice(self.slice, self._walk.damage)
        if opened is None:
            return
        with opened as source:
            windows = CheckedWindows(
                source,
                self.slice,
                self._walk.options,
                damage=self._walk.damage,
                memory=self._walk.memory,
            )
            for window in windows:
                if window.end_position >= self.slice.end_position:
                    source.ensure_same()
                self.is_refused = self._walk.records.refused_in(self.slice, window)
                self.next_offset = windows.next_offset
                self.end_position = window.end_position
                self._walk.note_bytes(window.size_bytes)
                yield window
            self.next_offset = windows.next_offset  # also after a batch that was left out
            self._walk.records.end_segment()


MOST_SEGMENT_BYTES = 2**31 - 1
"""Positions in a ``.log`` file are int32 to a broker."""
MOST_RELATIVE_OFFSET = 2**31 - 1
"""So are offsets in an index, relative to the segment's."""


def damage_findings(view: LogView, damaged: Iterable[DamagedRange]) -> Iterator[Finding]:
    """Yield an error for each range that cannot be read; a warning if it repeats what was read."""
    places = {each.file_path(): index for index, each in enumerate(view.segments)}
    for each in damaged:
        repeated = None if each.is_unreadable else first_repeated(each)
        if repeated is not None:
            yield _repeats(each, repeated)
            continue
        kind, message, end_offset = kinds.DAMAGED_BATCHES, each.reason, each.end_offset
        effect = action = None
        producers = producers_text(each)
        if producers is not None:
            message += f"; {producers}"
        if each.is_kept:
            message += (
                "; its neighbours prove its place, so that readers that skip damage give its "
                "records, and a repaired copy has them"
            )
        index = places.get(each.path)
        if each.is_unreadable:
            # Its batches may be sound; only who can open the file knows.
            kind = kinds.UNREADABLE
            if disk.is_dir(each.path):
                effect, action = Effect.GONE, "it ignores the folder, and misses the segment"
        elif each.position == 0 and index is not None and not each.is_kept:
            offset = _misnamed_offset(view, index)
            if offset is not None:
                kind = kinds.MISNAMED_SEGMENT
                name = view.segments[index].base_offset
                if end_offset is not None:  # a consumer continues after what it finds there
                    end_offset = max(end_offset, end_of_batches(each.path))
                message = (
                    f"the first batch, which is intact, has offset {offset}, and the file's name "
                    f"says {name}"
                )
        yield kind.found(
            each.path,
            message,
            each.position,
            each.end_position,
            each.next_offset,
            end_offset,
            own_effect=effect,
            own_action=action,
        )


def _repeats(damaged: DamagedRange, offset: int) -> Finding:
    last = damaged.next_offset - 1
    what = f"offsets {offset} to {last} are" if offset < last else f"offset {offset} is"
    return kinds.REPEATED_BATCHES.found(
        damaged.path,
        f"{damaged.reason}: {what} here again",
        damaged.position,
        damaged.end_position,
        offset,
        damaged.next_offset,
        own_effect=Effect.CONSUMERS,
    )


def _misnamed_offset(view: LogView, index: int) -> int | None:
    """Return the offset of a segment's first batch if that alone is wrong about it."""
    segment, limit = view.segments[index], view.next_base_offset(index)
    try:
        with segment.open_log() as source:
            batch = read_header(source, 0, source.size())
            if batch is None or not has_valid_checksum(source, batch):
                return None
    except (CorruptRecordError, SegmentVanishedError, UnreadableFileError):
        return None
    offset = batch.header.offset
    if segment.base_offset <= offset and (limit is None or offset < limit):
        return None
    return offset


def overlap_findings(view: LogView, ends: Sequence[OffsetPosition]) -> Iterator[Finding]:
    """Yield a warning for each two segments that hold the same offsets.

    ``ends`` are the offsets after the last intact batch of each segment, and where they are.
    """
    for index, segment in enumerate(view.segments):
        path, stop = segment.file_path(), ends[index].offset
        for later, end in zip(view.segments[index + 1 :], ends[index + 1 :], strict=True):
            if later.base_offset >= stop:
                break
            is_last = later is view.segments[-1]
            yield _overlap(path, stop, later, end.offset, is_last=is_last)


def _overlap(
    path: str, stop: int, later: LogSegmentView, later_end: int, *, is_last: bool
) -> Finding:
    """Return what consumers get where a file with offsets up to ``stop`` goes on into another."""
    name, other, start = name_of(path), name_of(later.file_path()), later.base_offset
    is_empty, goes_on = later_end == start, is_last and later_end < stop
    effect = Effect.CONSUMERS if is_empty or goes_on else None
    more = f"{name} has more up to {stop - 1}, after which a consumer is out of range"
    if is_empty and is_last:
        message = f"the log ends at offset {start}, where {other} has no batch, and {more}"
    elif is_empty:
        message = (
            f"{other} has no batch, and lies amid its offsets: a consumer that asks for one of "
            f"{start} to {stop - 1} gets those of the file after that"
        )
    else:
        last = min(stop, later_end) - 1
        message = (
            f"offsets {start} to {last} are in {other}, too: a consumer that reads on from {name} "
            "gets the records there, and one that starts at one of these offsets those of the "
            "file with the highest number"
        )
        if goes_on:
            message += f"; the log ends at offset {later_end}, and {more}"
        else:
            stop = last + 1
    return kinds.OVERLAPPING_SEGMENTS.found(
        path, message, next_offset=start, end_offset=stop, own_effect=effect
    )


def size_findings(walk: SegmentWalk) -> Iterator[Finding]:
    """Yield findings about segments that no broker can open, or has to split."""
    segment = walk.segment
    if segment.size_bytes > MOST_SEGMENT_BYTES:
        message = f"file has {segment.size_bytes} bytes, expected at most {MOST_SEGMENT_BYTES}"
        yield kinds.OVERSIZED_SEGMENT.found(segment.file_path(), message)
    relative = walk.next_offset - 1 - segment.base_offset
    if relative > MOST_RELATIVE_OFFSET:
        message = (
            f"last offset is {walk.next_offset - 1}, {relative} above the base offset, expected at "
            f"most {MOST_RELATIVE_OFFSET} above it"
        )
        yield kinds.OFFSET_OVERFLOW.found(
            segment.file_path(),
            message,
            next_offset=segment.base_offset,
            end_offset=walk.next_offset,
        )


def rest_findings(walk: SegmentWalk, damaged: Sequence[DamagedRange]) -> Iterator[Finding]:
    """Yield a warning if bytes follow the last batch of a segment that is not the last one."""
    segment, end = walk.segment, walk.end_position
    is_reported = any(each.end_position >= segment.size_bytes for each in damaged)
    if walk.slice.next_base_offset is None or end >= segment.size_bytes or is_reported:
        return
    rest = segment.size_bytes - end
    with open_file(segment.file_path()) as source:
        are_zeros = is_zero(source, end, segment.size_bytes)
    zero = "zero bytes" if are_zeros else "bytes"
    yield kinds.SEGMENT_REST.found(
        segment.file_path(),
        f"the last whole batch is followed by {rest} {zero}, and another segment follows",
        end,
        segment.size_bytes,
        walk.next_offset,
        walk.next_offset,
        # A client takes them for a batch that is too small to be one.
        own_effect=Effect.CONSUMERS if are_zeros and rest >= LOG_OVERHEAD else None,
    )


def is_filled_empty(headers: BatchHeaders) -> npt.NDArray[np.bool_]:
    """Return which batches have a record count of 0 although they hold something."""
    is_empty = headers.is_v2 & (headers.record_counts == 0) & (headers.codec_ids == 0)
    filled: npt.NDArray[np.bool_] = is_empty & (headers.sizes_bytes > RECORD_BATCH_OVERHEAD)
    return filled


def empty_batch_findings(window: Window) -> Iterator[Finding]:
    """Yield an error for each batch whose record count is 0 although it holds something.

    Kafka, and a reader here, pass over it: compaction leaves empty batches of a header alone.
    """
    headers = window.headers
    for index in np.flatnonzero(is_filled_empty(headers)).tolist():
        message = (
            "batch has a record count of 0, but "
            f"{int(headers.sizes_bytes[index]) - RECORD_BATCH_OVERHEAD} bytes follow its header: "
            "no reader looks at them"
        )
        yield kinds.FILLED_EMPTY_BATCH.in_batch(message, window, index)


def tail_findings(view: LogView, start: BrokerStart | None) -> Iterator[Finding]:
    """Yield one if something other than damage stands after the last batch of a log.

    A crash leaves such bytes. A broker that closed the log in order does not.
    """
    is_clean = start is not None and start.is_clean
    is_refused = start is not None and start.refusal is not None
    if not view.segments or (is_clean and is_refused):
        return
    segment = view.segments[-1]
    end = view.end.end_position
    if end >= segment.size_bytes:
        return
    path = segment.file_path()
    with open_file(path) as source:
        is_preallocated = is_zero(source, end, segment.size_bytes)
    rest = segment.size_bytes - end
    kind, what = kinds.TORN_TAIL, f"{rest} bytes of a batch that is not whole"
    if is_preallocated:
        kind, what = kinds.ZERO_TAIL, f"{rest} zero bytes: the file is preallocated, or has a hole"
    severity, effect = Severity.INFO, None
    if is_clean:
        kind, severity, effect = kinds.UNREADABLE_APPENDS, Severity.WARNING, Effect.CONSUMERS
    yield kind.found(
        path,
        f"the last whole batch is followed by {what}",
        end,
        segment.size_bytes,
        view.log_end_offset,
        severity=severity,
        own_effect=effect,
    )


def with_torn_records(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings with a torn tail as an error where it has cost records that were there.

    A batch that is not whole had been acknowledged to nobody. One below the high
    watermark, or the recovery point, was whole.
    """
    reached = [
        each.end_offset
        for each in findings
        if each.kind in _REACHED and each.severity is Severity.ERROR and each.end_offset is not None
    ]
    if not reached:
        return list(findings)
    what = f"that batch had been written: the log went on to offset {max(reached) - 1}"
    return [
        each._replace(
            severity=Severity.ERROR, message=f"{each.message}; {what}", end_offset=max(reached)
        )
        if each.kind == kinds.TORN_TAIL
        else each
        for each in findings
    ]


_REACHED = (kinds.HIGH_WATERMARK_ABOVE_LOG_END, kinds.RECOVERY_POINT_ABOVE_LOG_END)
_OFFSET_AND_SIZE = struct.Struct(">qi")


class WrappedOffsets(NamedTuple):
    """The first offset in a compressed message of v0 or v1, and how many messages it has."""

    first: int
    messages: int


def _wrapped_offsets(inner: memoryview, last_offset: int, *, is_relative: bool) -> WrappedOffsets:
    """Return what the messages of a wrapper, decompressed, have; its own is the last offset."""
    position = count = 0
    first = last = last_offset
    while len(inner) - position >= LOG_OVERHEAD:
        offset, size = _OFFSET_AND_SIZE.unpack_from(inner, position)
        end = position + LOG_OVERHEAD + size
        if size < 0 or end > len(inner):
            break
        first, last = (offset if not count else first), offset
        position, count = end, count + 1
    # Relative to the first message that there was when they were compressed (KIP-31).
    return WrappedOffsets(last_offset - last + first if is_relative else first, count)


class LegacyFindings:
    """Looks into compressed messages: for their offsets, and for v0 inside of v1. One thread.

    The log cleaner of brokers before 0.10.2 wrote such (KAFKA-4298). All messages in one are of the
    same format then, so that the first one tells.
    """

    def __init__(self, max_decompressed_bytes: int) -> None:
        self._max_decompressed_bytes = max_decompressed_bytes
        self._count = 0
        self._first: Finding | None = None

    @cached_property
    def _decompressor(self) -> Decompressor:
        return Decompressor(self._max_decompressed_bytes)

    def add(self, window: Window) -> dict[int, WrappedOffsets]:
        """Look into the compressed messages of a window; return what each has, by its place."""
        headers = window.headers
        found: dict[int, WrappedOffsets] = {}
        if headers.traits.all_v2:
            return found
        view = window.buffer.data
        for at in np.flatnonzero(
            (headers.magics < MAGIC_VALUE_V2) & (headers.codec_ids != 0)
        ).tolist():
            start, size = int(headers.positions[at]), int(headers.sizes_bytes[at])
            magic, last_offset = int(headers.magics[at]), int(headers.last_offsets[at])
            inner = self._messages(view[start : start + size], int(headers.codec_ids[at]), magic)
            if len(inner) <= MAGIC_OFFSET:
                continue
            found[at] = _wrapped_offsets(inner, last_offset, is_relative=magic == 1)
            if magic == 0 or inner[MAGIC_OFFSET] != 0:
                continue
            self._count += 1
            if self._first is None:
                self._first = kinds.MIXED_WRAPPER.in_batch("", window, at)
        return found

    def _messages(self, entry: memoryview, codec_id: int, magic: int) -> memoryview:
        self._decompressor.buffer.clear()
        try:
            stream = wrapped_stream(entry, magic)
            start, end = self._decompressor.append(codec_of(codec_id, magic), stream, magic)
        except (CorruptRecordError, InvalidRecordError):
            return memoryview(b"")  # a finding of whoever decodes it
        return self._decompressor.buffer.view(start, end)

    def findings(self) -> Iterator[Finding]:
        """Yield one finding if there is such a message, once all windows have been added."""
        if self._first is not None:
            counted = "1 compressed message" if self._count == 1 else f"{self._count} of them"
            message = (
                "a compressed message of format v1 holds messages of format v0, as the cleaner of "
                f"brokers before 0.10.2 left them (KAFKA-4298); {counted} in the log"
            )
            yield self._first._replace(message=message)


_MOST_NAMED = 20


class TimestampFindings:
    """Compares the latest timestamp that a batch's header has with that of its records."""

    def __init__(self) -> None:
        self._named: list[Finding] = []
        self._count = 0
        self._latest: dict[int, int] = {}  # of the batches of one window, by where they begin

    def latest_in(self, window: Window) -> npt.NDArray[np.int64]:
        """Return the latest timestamp of each batch's records, once a window has been added."""
        times = window.headers.max_timestamps
        if self._latest:
            starts = window.headers.positions + window.file_position
            wrong = [each in self._latest for each in starts.tolist()]
            times = times.copy()
            times[wrong] = [self._latest[each] for each in starts[wrong].tolist()]
            self._latest.clear()
        return times

    def add(self, window: Window, group: DecodedGroup) -> None:
        """Look at decoded batches of a window."""
        headers, latest = group.headers, group.columns.latest_timestamps
        wrong = (headers.max_timestamps != latest) & (latest != NO_RECORD)
        if not headers.traits.all_v2:
            # Headers of v0 have none; nor have messages of v0 that old cleaners left in v1.
            is_timed = (headers.magics != 0) & (latest != NO_TIMESTAMP)
            wrong &= headers.is_v2 | is_timed
        places = np.flatnonzero(wrong)
        self._count += places.size
        starts = headers.positions[places] + window.file_position
        self._latest.update(zip(starts.tolist(), latest[places].tolist(), strict=True))
        located = replace(window, headers=headers)
        for at in places[: _MOST_NAMED - len(self._named)].tolist():
            message = (
                f"the header's largest timestamp is {headers.max_timestamps[at]}, and the latest "
                f"of the records is {latest[at]}"
            )
            found = kinds.HEADER_TIMESTAMP.in_batch(message, located, at)
            # A broker looks into no batch whose header is before the time that is looked for.
            if headers.max_timestamps[at] < latest[at]:
                found = found._replace(own_effect=Effect.CONSUMERS)
            self._named.append(found)

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each batch, for the first ones if there are many."""
        yield from self._named[:-1]
        for last in self._named[-1:]:
            more = self._count - len(self._named)
            yield (
                last._replace(message=f"{last.message}; so it is with {more} more")
                if more
                else last
            )


class EpochFindings:
    """Follows the leader epochs of a log, window by window; reports the first of each kind.

    A consumer that continues asks where the epoch of its last record has ended. Where a later one
    is said to have begun before, it begins again there. A leader drops epochs above its own
    (``newest``).

    Source: LeaderEpochFileCache.endOffsetFor, SubscriptionState.maybeCompleteValidation
    (Kafka 4.3).
    """

    def __init__(
        self, view: LogView, entries: Sequence[EpochEntry], newest: int | None = None
    ) -> None:
        self._newest = newest
        self._path = join(view.directory.path, LEADER_EPOCH_CHECKPOINT)
        self._starts = np.array([entry.start_offset for entry in entries], dtype=np.int64)
        self._epochs = np.array([entry.epoch for entry in entries], dtype=np.int64)
        self._latest = NO_PARTITION_LEADER_EPOCH
        self._has_gone_back = self._has_disagreed = False

    def add(self, window: Window) -> Iterator[Finding]:
        """Yield what is wrong with the epochs of these batches."""
        headers = window.headers
        epochs = headers.partition_leader_epochs
        which = np.flatnonzero(epochs != NO_PARTITION_LEADER_EPOCH)
        if not which.size:
            return
        known, offsets = epochs[which], headers.offsets[which]
        before = np.concatenate(([self._latest], known[:-1]))
        back = np.flatnonzero(known < before)
        self._latest = int(known[-1])
        if back.size and not self._has_gone_back:
            self._has_gone_back = True
            at = int(back[0])
            message = f"batch has leader epoch {known[at]}, but the one before it has {before[at]}"
            yield kinds.LEADER_EPOCH_BACK.in_batch(message, window, int(which[at]))
        if self._starts.size and not self._has_disagreed:
            entry = np.searchsorted(self._starts, offsets, side="right") - 1
            wrong = np.flatnonzero((entry >= 0) & (self._epochs[entry] != known))
            if wrong.size:
                self._has_disagreed = True
                yield self._disagreeing(
                    int(entry[wrong[0]]), int(offsets[wrong[0]]), int(known[wrong[0]])
                )

    def _disagreeing(self, entry: int, offset: int, epoch: int) -> Finding:
        stored, start = int(self._epochs[entry]), int(self._starts[entry])
        found = kinds.LEADER_EPOCH_DISAGREES.found(
            self._path,
            f"offset {offset} is in leader epoch {stored} according to the checkpoint, but its "
            f"batch has {epoch}",
            next_offset=offset,
        )
        if stored < epoch or (self._newest is not None and stored > self._newest):
            return found
        return found._replace(next_offset=start, own_effect=Effect.CONSUMERS)
