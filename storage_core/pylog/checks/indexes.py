"""Offset and time indexes: all entries of a file at once, held against the batches.

Readers do without an index that is wrong, so that these are warnings. Of entries that nothing bears
out, a finding names the first of each file and counts them.

A broker that does not build the file again answers by it: it begins a fetch at the last entry that
is not above the offset, and a look-up by time at the last one that is not above the time, in the
first segment whose last entry is not below it. So an offset entry harms if it leads into a batch or
behind the one it should, a time entry if its time is not that of all batches up to it. What such a
file costs consumers is the finding's effect; `pylog.checks.broker_action` takes it back where the
start builds the file again.

Source: LogSegment.read, LogSegment.findOffsetByTimestamp, UnifiedLog.searchOffsetInLocalLog
(Kafka 4.3).
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pylog.checks.missing_time_indexes import MISSING_FILE, without_entries
from pylog.errors import CorruptRecordError, SegmentVanishedError, UnreadableFileError
from pylog.files.file_names import INDEX_FILE_SUFFIX, TIME_INDEX_FILE_SUFFIX
from pylog.files.looks import live_pauses
from pylog.files.offset_index import OffsetIndexEntries
from pylog.files.storage import open_file
from pylog.files.time_index import TimeIndexEntries
from pylog.findings import kinds
from pylog.findings.finding import Effect, Finding
from pylog.log_file.batch_walk import HIGHEST_OFFSET, walk_headers
from pylog.text.words import offsets_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from pylog.files.index_entries import EntryLayout, IndexEntries
    from pylog.reading.damage import DamagedRange
    from pylog.reading.segments import LogSegmentView
    from pylog.record.batch_scan import BatchHeaders, Window


MAX_INDEX_BYTES = 64 * 1024 * 1024
"""Eight million entries, six times the default size of the file: of more none is read."""


class IndexColumns(NamedTuple):
    """The entries before the zero tail, in file order."""

    offsets: npt.NDArray[np.int64]  # int64, shape (entries,); absolute
    # int64, shape (entries,): positions of an offset index, timestamps (ms) of a time index
    values: npt.NDArray[np.int64]
    # why the file cannot be read; what Kafka's own check of it would complain about; or the first
    # entry that is not above the one before it; None if nothing
    defect: str | None
    is_empty_file: bool = False  # of no byte: a broker that is working has it filled with zeros
    tail_slots: int = 0  # of zeros, after the entries


def read_offset_index(path: str, base_offset: int) -> IndexColumns:
    """Return the entries of an ``.index`` file; none if there is no such file."""
    return _read(path, lambda: OffsetIndexEntries.open(path, base_offset))


def read_time_index(path: str, base_offset: int) -> IndexColumns:
    """Return the entries of a ``.timeindex`` file; none if there is no such file."""
    return _read(path, lambda: TimeIndexEntries.open(path, base_offset))


def _read(path: str, opened: Callable[[], IndexEntries[Any]]) -> IndexColumns:
    with opened() as index:
        columns = _read_now(path, index)
    for pause in live_pauses(path):
        if not _may_be_being_written(columns):
            break
        time.sleep(pause)
        with opened() as index:
            columns = _read_now(path, index)
    return columns


def _may_be_being_written(columns: IndexColumns) -> bool:
    """Whether what is wrong is the second half of the last entry, which a broker writes later."""
    # Of an offset index: the last entry of a time index does not count before it is whole.
    return columns.defect is not None and columns.values.size > 1 and columns.values[-1] == 0


def _read_now(path: str, index: IndexEntries[Any]) -> IndexColumns:
    entry = _DTYPES[index.layout]
    data, defect = b"", None
    try:
        wanted = index.entry_count * entry.itemsize
        if wanted > MAX_INDEX_BYTES:
            defect = f"entries take {wanted} bytes, expected at most {MAX_INDEX_BYTES}"
        else:
            data = _read_whole(path, wanted)
    except UnreadableFileError as error:
        defect = error.reason
    whole = len(data) - len(data) % entry.itemsize
    entries = np.frombuffer(data[:whole], dtype=entry)
    offsets = entries["relative_offset"].astype(np.int64) + index.base_offset
    values = entries["value"].astype(np.int64)
    defect = defect or index.find_defect() or _disorder(offsets, values)
    tail_slots = index.slot_count - index.entry_count
    return IndexColumns(offsets, values, defect, not index.slot_count, tail_slots)


def _dtype_of(layout: EntryLayout) -> np.dtype[np.void]:
    """Return the layout as NumPy has it; what is not the relative offset is the value."""
    names = ["value", "value"]
    names[layout.relative_offset_column] = "relative_offset"
    codes = layout.struct.format.removeprefix(">")
    return np.dtype([(name, f">{code}") for name, code in zip(names, codes, strict=True)])


_DTYPES = {each.layout: _dtype_of(each.layout) for each in (OffsetIndexEntries, TimeIndexEntries)}


def _read_whole(path: str, wanted: int) -> bytes:
    if not wanted:
        return b""
    try:
        with open_file(path) as source:
            return source.read_at(0, wanted)
    except SegmentVanishedError:
        return b""


def _disorder(offsets: npt.NDArray[np.int64], values: npt.NDArray[np.int64]) -> str | None:
    """Return which entry is the first that does not go up, as `goes_up` has it for one."""
    if offsets.size < 2:
        return None
    rises = (np.diff(offsets) > 0) & (np.diff(values) > 0)
    if rises.all():
        return None
    slot = int(np.argmin(rises)) + 1
    return (
        f"entry {slot} is ({offsets[slot]}, {values[slot]}), expected both above "
        f"({offsets[slot - 1]}, {values[slot - 1]})"
    )


_ENTRY_BYTES = {
    INDEX_FILE_SUFFIX: OffsetIndexEntries.layout.struct.size,
    TIME_INDEX_FILE_SUFFIX: TimeIndexEntries.layout.struct.size,
}
_KINDS = {
    INDEX_FILE_SUFFIX: (kinds.DAMAGED_INDEX, kinds.WRONG_INDEX),
    TIME_INDEX_FILE_SUFFIX: (kinds.DAMAGED_TIME_INDEX, kinds.WRONG_TIME_INDEX),
}


class IndexFindings:
    """Collects what is wrong with a segment's indexes, window by window. One thread."""

    def __init__(self, segment: LogSegmentView) -> None:
        self._base_offset = segment.base_offset
        self._log_path = segment.file_path()
        self._offset_index = _Entries(segment, INDEX_FILE_SUFFIX)
        self._time_index = _Entries(segment, TIME_INDEX_FILE_SUFFIX)
        self._largest_timestamp = -1
        self._last_offset = segment.base_offset - 1
        # Of each entry of the time index: where a look-up begins by it, and the largest timestamp
        # of the batches before.
        self._begins = self._offset_index.floors(self._time_index)
        # The first batch that is later than the last entry, so that look-ups skip the segment
        self._skipped_from: int | None = None
        self._batches_before = np.full(self._begins.size, -1, dtype=np.int64)

    def add(self, window: Window, times: npt.NDArray[np.int64]) -> None:
        """Hold the entries that are about these batches against them, and the times in these."""
        headers = window.headers
        positions = headers.positions + window.file_position
        self._check_offset_entries(headers, positions)
        self._check_time_entries(headers, times)
        if times.size:
            self._largest_timestamp = max(self._largest_timestamp, int(times.max()))
            self._last_offset = int(headers.last_offsets[-1])

    def findings(
        self,
        end_position: int,
        next_offset: int,
        damaged: Sequence[DamagedRange],
        *,
        is_expected: bool = True,
        is_last: bool = False,
        is_closed: bool = False,
    ) -> Iterator[Finding]:
        """Yield what has been found, once all batches have been seen.

        A broker that works writes into the indexes of the last segment until it is closed.
        """
        held = (self._base_offset, next_offset)
        is_final = is_closed or not is_last
        entries = self._offset_index
        if entries.columns is None:
            if is_expected:
                yield kinds.MISSING_INDEX.found(entries.path, MISSING_FILE)
        else:
            behind = np.flatnonzero(entries.columns.values >= end_position)
            entries.note(behind)
            entries.note_harm(behind, next_offset)
            for each in damaged:
                entries.forget(entries.columns.values, each.position, each.end_position)
        yield from entries.findings(held, is_final=is_final)
        yield from self._unreachable(damaged, end_position, next_offset)
        entries = self._time_index
        if entries.columns is not None:
            entries.note(np.flatnonzero(entries.columns.offsets >= next_offset))
            for each in damaged:
                entries.forget(entries.columns.offsets, each.next_offset, each.end_offset)
            if is_last:
                self._forget_half_written(entries.columns)
            if entries.columns.is_empty_file and self._largest_timestamp >= 0:
                message = (
                    "has no entry, and the largest timestamp of the batches is "
                    f"{self._largest_timestamp}"
                )
                found = kinds.EMPTY_TIME_INDEX.found(entries.path, message)
                latest = self._largest_timestamp
                yield without_entries(found, self._log_path, held, latest, is_last=is_last)
        yield from map(self._with_late_end, entries.findings(held, is_final=is_final))
        if is_final:
            yield from self._early_times(next_offset)

    def _with_late_end(self, found: Finding) -> Finding:
        """Return a finding about a time index with what it costs that the last entry is late.

        A look-up by time does not go on to the next segment then. Entries before it may be late.
        """
        columns = self._time_index.columns
        if columns is None or columns.defect is not None or not columns.values.size:
            return found
        if columns.values[-1] <= self._largest_timestamp:
            return found
        first = int(columns.offsets[max(0, columns.offsets.size - 2)])
        return found._replace(
            next_offset=max(first, self._base_offset), end_offset=None, own_effect=Effect.CONSUMERS
        )

    def _unreachable(
        self, damaged: Sequence[DamagedRange], end_position: int, next_offset: int
    ) -> Iterator[Finding]:
        """Yield one for each damage in which a broker gets stuck that looks for a later batch."""
        for each in damaged:
            start = each.end_offset
            if start is None or each.is_unreadable or each.end_position >= end_position:
                continue
            found = self._offset_index.first_at(each.end_position)
            timed = self._time_index.first_offset_from(start)
            end = max(
                next_offset if found is None else found, next_offset if timed is None else timed + 1
            )
            end = min(end, next_offset)
            if start < end and not _leads_over(self._log_path, each):
                message = (
                    f"batches of {offsets_text(start, end)} are intact, and a broker looks for "
                    "them from a place before the damage on, in which it gets stuck"
                )
                yield kinds.UNREACHABLE_BATCHES.found(
                    self._log_path,
                    message,
                    each.end_position,
                    next_offset=start,
                    end_offset=end,
                    own_effect=Effect.CONSUMERS,
                )

    def _early_times(self, next_offset: int) -> Iterator[Finding]:
        """Yield one if look-ups by time would pass over batches that they should find."""
        columns = self._time_index.columns
        if columns is None or columns.defect is not None or not columns.offsets.size:
            return
        early = np.flatnonzero(self._batches_before > columns.values)
        first = int(early[0]) if early.size else columns.offsets.size - 1
        latest = int(self._batches_before[first])
        starts, end = [], next_offset
        if self._skipped_from is not None:
            latest = self._largest_timestamp
            starts.append(self._skipped_from)
        elif early.size:
            end = min(end, int(columns.offsets[early[-1]]))
        else:
            return
        if early.size:
            before = int(columns.offsets[first - 1]) if first else self._base_offset
            starts.append(max(before, self._base_offset))
        start = min(starts)
        if start >= end:
            start, end = self._base_offset, next_offset
        message = (
            f"entry {first} has timestamp {columns.values[first]}, and a batch that it covers "
            f"{latest}: look-ups by time pass over it"
        )
        yield kinds.WRONG_TIME_INDEX.found(
            self._time_index.path,
            message,
            next_offset=start,
            end_offset=end,
            own_effect=Effect.CONSUMERS,
        )

    def _forget_half_written(self, columns: IndexColumns) -> None:
        """Take back what was noted of a first time index entry of which half was written.

        A broker writes its timestamp before its offset. Until then it seems to be about the base
        offset; a later entry does not count.
        """
        if columns.offsets.tolist() != [self._base_offset] or not self._time_index.is_wrong.any():
            return
        for pause in live_pauses(self._time_index.path):
            time.sleep(pause)
            now = read_time_index(self._time_index.path, self._base_offset)
            if now.offsets[:1].tolist() != [self._base_offset]:
                self._time_index.is_wrong[:] = False
                return

    def _check_offset_entries(
        self, headers: BatchHeaders, positions: npt.NDArray[np.int64]
    ) -> None:
        entries = self._offset_index.columns
        if entries is None or not entries.values.size:
            return
        end = positions[-1] + headers.sizes_bytes[-1]
        which = np.flatnonzero((entries.values >= positions[0]) & (entries.values < end))
        place = np.searchsorted(positions, entries.values[which])
        is_start = place < len(positions)
        is_start[is_start] = positions[place[is_start]] == entries.values[which][is_start]
        place = np.minimum(place, len(positions) - 1)
        offsets = entries.offsets[which]
        # `pylog.files.index_entries` says which offsets a broker stores for a batch; the first one
        # of a compressed v0/v1 wrapper is not in the header.
        last = np.minimum(
            np.searchsorted(headers.last_offsets, offsets), len(headers.last_offsets) - 1
        )
        is_last = headers.last_offsets[last] == offsets
        is_behind = offsets > headers.last_offsets[-1]
        is_first = headers.offsets[place] == offsets
        is_hidden = (headers.record_counts[place] < 0) & (offsets < headers.last_offsets[place])
        fits = (is_last & (last >= place)) | is_behind | is_first | is_hidden
        self._offset_index.note(which[~(is_start & fits)])
        self._offset_index.note_inside(which[~is_start])
        before = np.concatenate(([self._last_offset], headers.last_offsets))[place]
        harms = ~is_start | (before >= offsets)
        # Inside a batch a broker finds no other one, and goes on in the next segment.
        ends = np.where(is_start, before + 1, HIGHEST_OFFSET)
        self._offset_index.note_harm(which[harms], ends[harms])

    def _check_time_entries(self, headers: BatchHeaders, times: npt.NDArray[np.int64]) -> None:
        entries = self._time_index.columns
        if entries is None or not entries.offsets.size:
            return
        lasts = headers.last_offsets
        lowest = headers.offsets[0] if headers.record_counts[0] >= 0 else lasts[0]
        which = np.flatnonzero((entries.offsets >= lowest) & (entries.offsets <= lasts[-1]))
        place = np.searchsorted(lasts, entries.offsets[which])
        self._time_index.note(which[times[place] < entries.values[which]])
        if self._skipped_from is None:
            later = np.flatnonzero(times > entries.values[-1])
            self._skipped_from = int(headers.offsets[later[0]]) if later.size else None
        # A look-up begins at the batch that the offset index has for the entry's offset.
        which = np.flatnonzero((self._begins >= lowest) & (self._begins <= lasts[-1]))
        before = np.concatenate(([self._largest_timestamp], times))
        place = np.searchsorted(lasts, self._begins[which])
        self._batches_before[which] = np.maximum.accumulate(before)[place]


class _Entries:
    """The entries of one index file, and which of them nothing bears out."""

    def __init__(self, segment: LogSegmentView, suffix: str) -> None:
        self.path = segment.file_path(suffix)
        self.columns: IndexColumns | None = None
        self._entry_bytes = _ENTRY_BYTES[suffix]
        self._is_of_times = suffix == TIME_INDEX_FILE_SUFFIX
        self._damaged, self._wrong = _KINDS[suffix]
        if suffix in segment.suffixes:
            read = read_time_index if self._is_of_times else read_offset_index
            self.columns = read(self.path, segment.base_offset)
            self.is_wrong = np.zeros(self.columns.offsets.size, dtype=np.bool_)
            self._is_inside = np.zeros(self.columns.offsets.size, dtype=np.bool_)
            self._harms = np.zeros(self.columns.offsets.size, dtype=np.bool_)
            self._passes_over = np.full(self.columns.offsets.size, -1, dtype=np.int64)

    def note(self, which: npt.NDArray[np.int64]) -> None:
        """Note entries that nothing bears out, by their number."""
        self.is_wrong[which] = True

    def note_inside(self, which: npt.NDArray[np.int64]) -> None:
        """Note entries whose positions lie inside a batch, by their number."""
        self._is_inside[which] = True

    def note_harm(self, which: npt.NDArray[np.int64], ends: npt.NDArray[np.int64] | int) -> None:
        """Note entries by which a broker finds a batch that is too late, or none.

        ``ends`` are the offsets before which it passes over all.
        """
        self._harms[which] = True
        self._passes_over[which] = ends

    def forget(self, values: npt.NDArray[np.int64], start: int | None, end: int | None) -> None:
        """Take back what was noted of entries whose values are in ``[start, end)``."""
        is_inside = np.ones(values.size, dtype=np.bool_) if start is None else values >= start
        if end is not None:
            is_inside &= values < end
        self.is_wrong[is_inside] = False

    def findings(self, held: tuple[int, int], *, is_final: bool) -> Iterator[Finding]:
        """Yield what is wrong with a file as a whole, or else with its entries.

        ``held`` are the offsets that its segment has.
        """
        if self.columns is None:
            return
        defect, tail = self.columns.defect, self.columns.tail_slots * self._entry_bytes
        # In an offset index they lead to the beginning of the file, which is never too late.
        if defect is None and tail and is_final and self._is_of_times:
            defect = (
                f"{tail} bytes of zeros follow its entries, and a broker takes them for entries"
            )
        if defect is not None:
            yield self._damaged.found(
                *(self.path, defect),
                *(None, None, *held),
                own_effect=Effect.CONSUMERS,
            )
            return
        wrong = np.flatnonzero(self.is_wrong)
        if wrong.size:
            first = int(wrong[0])
            offset = int(self.columns.offsets[first])
            value = "timestamp" if self._is_of_times else "position"
            entry = f"offset {offset}, {value} {self.columns.values[first]}"
            message = f"{_counted(wrong.size)} no batch"
            inside = int(self._is_inside[wrong].sum())
            if inside:
                message += f" ({inside} point{'s' * (inside == 1)} into the middle of one)"
            message += f"; the first is entry {first}: {entry}"
            at = first * self._entry_bytes
            found = self._wrong.found(self.path, message, at, at + self._entry_bytes, offset)
            yield self._with_harm(found, wrong[self._harms[wrong]], held)

    def floors(self, timed: _Entries) -> npt.NDArray[np.int64]:
        """Return the offsets of the last entries that are not above those of a time index.

        -1 where there is none, so that a look-up begins at the segment's first batch.
        """
        if timed.columns is None:
            return np.zeros(0, dtype=np.int64)
        if self.columns is None or self.columns.defect is not None:
            return np.full(timed.columns.offsets.size, -1, dtype=np.int64)
        known = np.concatenate(([-1], self.columns.offsets))
        return known[np.searchsorted(self.columns.offsets, timed.columns.offsets, side="right")]

    def first_at(self, position: int) -> int | None:
        """Return the offset of the first entry that leads to ``position`` or behind it."""
        return None if self.columns is None else self._first(self.columns.values >= position)

    def first_offset_from(self, offset: int) -> int | None:
        """Return the offset of the first entry that has ``offset`` or a later one."""
        return None if self.columns is None else self._first(self.columns.offsets >= offset)

    def _first(self, which: npt.NDArray[np.bool_]) -> int | None:
        if self.columns is None or self.columns.defect is not None or not which.any():
            return None
        return int(self.columns.offsets[np.argmax(which)])

    def _with_harm(
        self, found: Finding, harming: npt.NDArray[np.int64], held: tuple[int, int]
    ) -> Finding:
        """Return it with the offsets from the first entry that harms on.

        Up to the one after the last, or to where a consumer goes on that is led too far.
        """
        if self.columns is None or not harming.size:
            return found
        after = int(harming[-1]) + 1
        start = max(int(self.columns.offsets[harming[0]]), held[0])
        end = held[1] if after == self.columns.offsets.size else int(self.columns.offsets[after])
        end = min(max(end, int(self._passes_over[harming].max())), held[1])
        if end <= start:  # no offset of the segment is looked for by them
            return found
        return found._replace(next_offset=start, end_offset=end, own_effect=Effect.CONSUMERS)


def _leads_over(path: str, damaged: DamagedRange) -> bool:
    """Whether sizes of batches lead from the first damaged one to the next intact one."""
    with open_file(path) as source, suppress(CorruptRecordError):
        for batch in walk_headers(source, damaged.position, source.size(), lowest_offset=None):
            if batch.end_position >= damaged.end_position:
                return batch.end_position == damaged.end_position
    return False


def _counted(count: int) -> str:
    """Return ``1 entry fits``, ``2 entries fit``."""
    return "1 entry fits" if count == 1 else f"{count} entries fit"
